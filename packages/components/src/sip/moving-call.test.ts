// The calls of a room that leaves one node and is continued by another.
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createLogger, silentLog } from '@bloom/log';
import { Processes } from '@bloom/processes';
import type { Component, ComponentHost } from '@bloom/rooms';
import { systemClock } from '@bloom/time';
import { until as untilWithin } from '@bloom/time/testing';
import { TestRoom } from '../testing/room.js';
import { TestProvider } from '../testing/sip-provider.js';
import { SipService } from './sip-service.js';

// Real processes and sockets, on a machine that is busy with other tests.
jest.setTimeout(30_000);

/** A phone's process alone may take 10 s to start there. */
const until = (condition: () => boolean): Promise<number> => untilWithin(condition, 25_000);

type Resumed = NonNullable<ComponentHost['resumed']>;

const entry = new URL('../../dist/sip/engine/phone-main.js', import.meta.url);
let provider: TestProvider;
let services: SipService[];
let running: Component[];

interface Phone {
  service: SipService;
  room: TestRoom;
  component: Component;
  log: string[];
}

beforeEach(async () => {
  provider = await TestProvider.open();
  services = [];
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map((component) => component.close()));
  await Promise.all(services.map((service) => service.settled()));
  await provider.close();
});

/** Starts the phone of one node. */
async function phone(resumed?: Resumed, isFenced = () => false): Promise<Phone> {
  const service = new SipService({ processes: new Processes({ log: silentLog }), address: '127.0.0.1', entry });
  services.push(service);
  const registrarCredentials = { address: provider.address, username: 'room', password: 'geheim' };
  const prepared = await service.kind.prepare({ registrarCredentials }, { roomId: 'kitchen', videoCodec: null });
  const room = new TestRoom(systemClock);
  const log: string[] = [];
  const component = prepared.start({
    ...room.host,
    isFenced,
    ...(resumed === undefined ? {} : { resumed }),
    log: createLogger({ level: 'info', sink: (line) => void log.push(line) }),
  });
  running.push(component);

  return { service, room, component, log };
}

/** Returns a phone with an answered call. */
async function calling(isFenced?: () => boolean): Promise<Phone> {
  const from = await phone(undefined, isFenced);
  from.component.dial?.('+1234');
  await until(() => from.room.sent.length > 3);

  return from;
}

/** Returns what the other node is told of it. */
function resumedFrom({ room, component }: Phone): Resumed {
  component.freeze?.(true);
  const published = room.reports.flatMap((report) => (report.do === 'publish' ? report.tracks : []));

  return JSON.parse(JSON.stringify({ tracks: published, progress: component.progress?.() })) as Resumed;
}

const invites = () => provider.requests.filter(({ method }) => method === 'INVITE');
const isInspected = ({ service }: Phone) => service.inspect('component');

describe('the call of a room that moves', () => {
  test('goes on at the other node, as the same call and the same track', async () => {
    const from = await calling();
    const resumed = resumedFrom(from);
    expect(JSON.stringify(resumed)).not.toContain('geheim');
    await from.component.close(true);
    expect(provider.titles()).not.toContain('BYE');
    expect(from.log.join('\n')).toMatch(/sip\.call_ended.*moved/);
    const to = await phone(resumed);
    await until(() => to.room.sent.length > 20);
    expect(to.room.reports).toMatchObject([{ do: 'publish', tracks: [{ trackId: resumed.tracks[0]!.trackId }] }]);
    const [first, second] = invites();
    expect(invites()).toHaveLength(2);
    expect(second?.headers.get('Call-ID')).toBe(first?.headers.get('Call-ID'));
    expect(second?.headers.get('To')).toContain(';tag=provider');
    const { startedAt, answeredAt } = resumed.progress.call!;
    expect(isInspected(to)?.call).toMatchObject({ number: '+1234', state: 'answered', startedAt, answeredAt });
    expect(to.log.filter((line) => line.includes('sip.call_moved'))).toHaveLength(1);
    to.component.hangUp?.();
    await until(() => isInspected(to)?.call === null);
    expect(isInspected(to)?.lastCall).toMatchObject({ number: '+1234', reason: 'hung_up' });
    await until(() => provider.titles().includes('BYE'));
  });

  test('is not hung up by a node that its standby may have replaced', async () => {
    const from = await calling(() => true);
    await from.component.close();
    expect(provider.titles()).not.toContain('BYE');
  });

  test('is hung up, with a line in the log, if the provider does not accept the other node', async () => {
    const from = await calling();
    const resumed = resumedFrom(from);
    await from.component.close(true);
    provider.answers = 488;
    const to = await phone(resumed);
    await until(() => provider.titles().includes('BYE'));
    await until(() => isInspected(to)?.call === null);
    expect(isInspected(to)?.lastCall).toMatchObject({ reason: 'not_moved', status: 488, text: '488 Not Today' });
    const lines = to.log.filter((line) => /sip\.call/.test(line));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/warn.*sip\.call_not_moved.*488 Not Today/);
    expect(to.room.reports).toEqual([]);
  });

  test('is hung up when its room ends during the move, and goes on when it stays', async () => {
    const from = await calling();
    expect(resumedFrom(from).progress.call).toBeDefined();
    from.component.freeze?.(false);
    const said = from.room.sent.length;
    await until(() => from.room.sent.length > said + 5);
    expect(resumedFrom(from).progress.call).toBeDefined();
    await from.component.close();
    expect(provider.titles().slice(-2)).toEqual(['BYE', 'REGISTER 0']);
  });

  test('is hung up there if its component is removed before it has come over', async () => {
    const from = await calling();
    const resumed = resumedFrom(from);
    await from.component.close(true);
    const to = await phone(resumed);
    await to.component.close();
    expect(provider.titles()).toEqual(expect.arrayContaining(['BYE', 'REGISTER 0']));
    expect(to.room.reports).toEqual([]);
  });

  test('moves on if its room leaves the other node before it has come over', async () => {
    const from = await calling();
    const resumed = resumedFrom(from);
    await from.component.close(true);
    const second = await phone(resumed);
    expect(resumedFrom(second).progress).toEqual(resumed.progress);
    await second.component.close(true);
    const third = await phone(resumed);
    await until(() => third.room.sent.length > 5);
    expect(provider.titles()).not.toContain('BYE');
    expect(invites()).toHaveLength(2);
  });

  test('is cancelled if it was not answered yet, and one that is being hung up stays so', async () => {
    provider.answers = 0;
    const from = await phone();
    from.component.dial?.('1');
    await until(() => invites().length > 0);
    const { progress } = resumedFrom(from);
    expect(progress).toEqual({});
    await from.component.close(true);
    expect(from.log.join('\n')).toMatch(/sip\.call_ended.*cancelled/);
    provider.answers = 200;
    // Answered after the other node was told that there is no call.
    const late = await phone();
    late.component.freeze?.(true);
    late.component.dial?.('2');
    await until(() => late.room.sent.length > 0);
    await late.component.close(true);
    expect(provider.titles().slice(-2)).toEqual(['BYE', 'REGISTER 0']);
    const other = await calling();
    other.component.hangUp?.();
    expect(resumedFrom(other).progress).toEqual({});
  });
});
