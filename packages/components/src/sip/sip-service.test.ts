import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Component, ReceivedTrack } from '@bloom/rooms';
import { systemClock } from '@bloom/time';
import { silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import { until } from '@bloom/time/testing';
import { TestRoom } from '../testing/room.js';
import { OpusEncoder } from './engine/opus.js';
import { SipService, type SipServiceOptions } from './sip-service.js';
import { TestProvider } from '../testing/sip-provider.js';

// Real processes and sockets, on a machine that is busy with other tests.
jest.setTimeout(30_000);

const entry = new URL('../../dist/sip/engine/phone-main.js', import.meta.url);
const rooms: TestRoom[] = [];
let provider: TestProvider;
let service: SipService;

function start(options: Partial<SipServiceOptions> = {}): void {
  service = new SipService({ processes: new Processes({ log: silentLog }), address: '127.0.0.1', entry, ...options });
}

beforeEach(async () => {
  provider = await TestProvider.open();
  start();
});
const running: Component[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((component) => component.close()));
  await service.settled();
  await provider.close();
  rooms.length = 0;
});

async function phone(id = 'component'): Promise<{ room: TestRoom; component: Component; id: string }> {
  const registrarCredentials = { address: provider.address, username: 'room', password: 'geheim' };
  const prepared = await service.kind.prepare({ registrarCredentials }, { roomId: 'kitchen', videoCodec: null });
  const room = new TestRoom(systemClock);
  const component = prepared.start({ ...room.host, componentId: id });
  running.push(component);
  return { room, component, id };
}

const does = (room: TestRoom): string[] => room.reports.map((report) => report.do);
const audio = (trackId: string, kind: 'audio' | 'video' = 'audio'): ReceivedTrack => ({
  origin: 'ann',
  originType: 'webrtc',
  originMetadata: null,
  track: {
    trackId,
    kind,
    codec: kind === 'audio' ? 'opus' : 'h264',
    metadata: null,
    encodings: [],
    disabledEncodings: [],
  },
});

describe('a SIP component', () => {
  test('prepares a component with the credentials that clients compare, and rejects invalid ones', async () => {
    const given = { address: 'sip.example.com:5070', username: 'u', password: 'p' };
    const prepared = await service.kind.prepare(
      { registrarCredentials: { ...given, more: 1 } },
      { roomId: 'r', videoCodec: null },
    );
    expect(prepared.properties).toEqual({ registrarCredentials: given });
    const refuse = (registrarCredentials: unknown) =>
      service.kind.prepare({ registrarCredentials }, { roomId: 'r', videoCodec: null });
    await expect(refuse(undefined)).rejects.toMatchObject({ message: 'Required field "registrarCredentials" missing' });
    for (const field of ['address', 'username', 'password'])
      await expect(refuse({ ...given, [field]: null })).rejects.toMatchObject({
        code: 'MISSING_OPTION',
        message: `Required field "${field}" missing`,
      });
    for (const address of ['', 'a b', 'host:0', 'http://x', '[1.2.3.4]'])
      await expect(refuse({ ...given, address })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    for (const field of ['username', 'password'])
      await expect(refuse({ ...given, [field]: 'a"\r\nX-Injected: yes' })).rejects.toMatchObject({
        code: 'INVALID_OPTIONS',
        message: 'Invalid request body structure',
      });
  });

  test('continues its call when it gets a signal meant for the server', async () => {
    const { room, component, id } = await phone();
    component.dial?.('1');
    await until(() => room.sent.length > 0);
    const { processId } = service.inspect(id)!.call!;
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.kill(processId!, signal);
    const { length } = room.sent;
    await until(() => room.sent.length > length + 25 || does(room).includes('crashed'));
    expect(does(room)).toEqual(['publish']);
  });

  test('publishes a track in the room while the phone is heard, and reports its state', async () => {
    const { room, component, id } = await phone();
    component.receive?.([audio('ann-voice'), audio('ann-face', 'video')]);
    component.dial?.('+1 (23) 4');
    await until(() => room.sent.length > 20);
    expect(does(room)).toEqual(['publish']);
    // On a busy machine the phone's packets come late or not at all, which leaves whole frames out.
    const steps = room.sent.slice(1).map(({ timestamp }, n) => timestamp - (room.sent[n]?.timestamp ?? 0));
    expect(steps.filter((step) => step <= 0 || step % 960 !== 0)).toEqual([]);
    expect([...room.taps.keys()]).toEqual(['ann-voice']);
    await until(() => (service.inspect(id)?.call?.rtp?.received ?? 0) > 0);
    const shown = service.inspect(id);
    expect(shown).toMatchObject({
      registrar: provider.address,
      username: 'room',
      registration: { state: 'registered', expiresSeconds: 300, failure: null },
      call: { number: '+1234', state: 'answered', held: false, codec: 'PCMA' },
      lastCall: null,
    });
    expect(shown?.trace.map(({ text }) => text.split(' ')[0])).toContain('INVITE');
    expect(JSON.stringify(shown)).not.toContain('geheim');
    component.hangUp?.();
    await until(() => does(room).includes('unpublish'));
    expect(room.deeds).toEqual(['open opus', 'close']);
    expect(room.taps.size).toBe(0);
    expect(service.inspect(id)).toMatchObject({ call: null, lastCall: { number: '+1234', reason: 'hung_up' } });
    await until(() => provider.titles().includes('BYE'));
    await component.close();
    expect(provider.titles().at(-1)).toBe('REGISTER 0');
    expect(service.inspect(id)).toBeUndefined();
    await component.close();
  });

  test('lets the phone hear what is said in the room', async () => {
    const { room, component } = await phone();
    component.receive?.([audio('voice')]);
    component.dial?.('1');
    await until(() => room.sent.length > 3);
    const voice = new OpusEncoder(48_000);
    const before = room.sent.length;
    for (let n = 0; n < 100; n++) {
      const loud = Int16Array.from({ length: 960 }, (_, i) => 12_000 * Math.sin((n * 960 + i) / 17));
      await room.frame('voice', { timestamp: n * 960, data: voice.encode(loud) });
      await new Promise((wait) => setTimeout(wait, 10));
    }
    // The provider echoes: silence takes few bytes of Opus, a tone takes more.
    const bytes = room.sent.slice(before).map(({ data }) => data.length);
    expect(Math.max(...bytes)).toBeGreaterThan(2 * Math.min(...bytes));
  });

  test('calls again after a call that was refused or not answered', async () => {
    const { room, component, id } = await phone();
    provider.answers = 486;
    component.dial?.('1');
    await until(() => service.inspect(id)?.lastCall !== null);
    expect(service.inspect(id)?.lastCall).toMatchObject({ reason: 'busy', status: 486, text: '486 Not Today' });
    provider.answers = 200;
    component.dial?.('2');
    await until(() => room.sent.length > 0);
    // A second number is not dialled while the first is on the line, but one after hanging up is.
    component.dial?.('3');
    component.hangUp?.();
    component.dial?.('4');
    await until(() => service.inspect(id)?.call?.number === '4');
    component.hangUp?.();
    component.hangUp?.();
    await until(() => service.inspect(id)?.call === null);
    expect(does(room)).not.toContain('crashed');
  });

  test('places no call when hung up before the registrar has answered', async () => {
    provider.registers = 0;
    const { component, id } = await phone();
    component.dial?.('1');
    expect(service.inspect(id)?.call).toMatchObject({ number: '1', state: 'waiting' });
    component.hangUp?.();
    await until(() => service.inspect(id)?.lastCall !== null);
    expect(service.inspect(id)?.lastCall).toMatchObject({ reason: 'cancelled' });
    expect(provider.titles()).not.toContain('INVITE');
    provider.registers = 200;
  });

  test('ends the call when the number is invalid', async () => {
    const { room, component } = await phone();
    for (const number of ['', 'five', '+', '1+2', '12;x']) component.dial?.(number);
    expect(does(room)).toEqual(['crashed']);
    expect(provider.titles()).not.toContain('INVITE');
  });

  test('advertises an address behind a router without binding to it', async () => {
    start({ address: '192.0.2.7', ownAddresses: () => ['127.0.0.1'] });
    const { id } = await phone();
    await until(() => service.inspect(id)?.registration.state === 'registered');
    expect(provider.requests[0]?.headers.get('Contact')).toContain('@192.0.2.7:');
  });
});

describe('the processes of calls', () => {
  const processes = (ids: string[]) => ids.map((id) => service.inspect(id)?.call?.processId);

  test('processes serve one call each when few and several when many, and a crash costs only their own calls', async () => {
    start({ mostProcesses: 2 });
    const all = [await phone('a'), await phone('b'), await phone('c')];
    for (const { component, room } of all) {
      component.dial?.('1');
      await until(() => room.sent.length > 0);
    }
    const [a, b, c] = processes(['a', 'b', 'c']);
    expect(a).not.toBe(b);
    expect(c).toBe(a);
    process.kill(a as number, 'SIGABRT');
    await until(() => does(all[0]!.room).includes('crashed') && does(all[2]!.room).includes('crashed'));
    expect(all[0]!.room.reports.at(-1)).toMatchObject({ reason: expect.stringContaining('SIGABRT') });
    const said = all[1]!.room.sent.length;
    await until(() => all[1]!.room.sent.length > said + 5);
    expect(does(all[1]!.room)).toEqual(['publish']);
  });

  test('kills processes that are stuck', async () => {
    start({ hangMs: 4_000 });
    const { room, component, id } = await phone();
    component.dial?.('1');
    await until(() => room.sent.length > 0);
    process.kill(service.inspect(id)?.call?.processId as number, 'SIGSTOP');
    await until(() => does(room).includes('crashed'));
    expect(room.reports.at(-1)).toMatchObject({ reason: expect.stringContaining('4000 ms') });
    await component.close();
    expect(provider.titles().slice(-2)).toEqual(['BYE', 'REGISTER 0']);
  });

  test('processes that cannot be started fail only their own component', async () => {
    start({ entry: new URL('./nowhere.js', import.meta.url) });
    const { room, component } = await phone();
    component.dial?.('1');
    await until(() => does(room).includes('crashed'));
    expect(provider.titles()).not.toContain('INVITE');
  });
});
