import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import {
  type CallEvent,
  type DialOptions,
  type PhoneCall,
  type RegistrationEvent,
  SipPhone,
  type SipPhoneOptions,
} from '@bloom/sip';
import { testResolver } from '@bloom/discovery/testing';
import { pcmAudio, systemNames } from '@bloom/sip/testing';
import { describeWith } from '../harness/needs.js';
import { type Host, Lab } from '../hosts/lab.js';
import { password, type Program, startBaresip, startKamailio, startSipp } from './programs.js';
import { answers, challengesForEver, hangsUp, holds, refuses, ringsUntilCancelled } from './scenarios.js';
import { concat, frequencyOf, readWav, toneFrames, writeWav } from './tone.js';

// Real programs on a busy machine.
jest.setTimeout(30_000);

async function until(what: string, condition: () => boolean, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((wait) => setTimeout(wait, 20));
  }
}

describeWith(['network namespaces', 'phones'], 'the phone and real peers', () => {
  let lab: Lab;
  let proxy: Host;
  let desk: Host;
  let trunk: Host;
  let folder: string;
  let kamailio: Program;
  const phones: SipPhone[] = [];
  const programs: Program[] = [];
  let runs = 0;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bloom-sip-'));
    lab = await Lab.open();
    proxy = lab.addHost('pbx.lab.test');
    desk = lab.addHost('desk.lab.test');
    trunk = lab.addHost('trunk.lab.test');
    kamailio = await startKamailio(proxy, folder, trunk.address);
  });
  afterEach(async () => {
    await Promise.all(phones.splice(0).map((phone) => phone.stop()));
    await Promise.all(programs.splice(0).map((program) => program.stop()));
  });
  afterAll(async () => {
    await kamailio?.stop();
    await lab?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  interface Registered {
    phone: SipPhone;
    registration: RegistrationEvent[];
  }

  async function startPhone(options: Partial<SipPhoneOptions> = {}, secret = password): Promise<Registered> {
    const registration: RegistrationEvent[] = [];
    const phone = new SipPhone({
      address: lab.ownAddress,
      names: systemNames(testResolver({ port: 53, resolvConf: `nameserver ${lab.ownAddress}` })),
      onRegistration: (event) => registration.push(event),
      ...options,
    });
    phones.push(phone);
    await phone.start({ address: 'pbx.lab.test', username: 'room', password: secret });
    await until('an answer of the registrar', () => registration.length > 0);
    return { phone, registration };
  }

  async function sipp(scenario: string, calls = 1, port = 5060): Promise<Program> {
    runs += 1;
    const program = await startSipp(trunk, join(folder, `sipp-${runs}`), { scenario, calls, port });
    programs.push(program);
    return program;
  }

  interface Dialled {
    call: PhoneCall;
    events: CallEvent[];
    heard: Int16Array[];
    types: () => string[];
  }

  async function dial(phone: SipPhone, number: string, options: Partial<DialOptions> = {}): Promise<Dialled> {
    const events: CallEvent[] = [];
    const heard: Int16Array[] = [];
    const call = await phone.dial(number, {
      audio: pcmAudio({ received: (samples) => samples && heard.push(samples), next: toneFrames(440) }),
      onEvent: (event) => events.push(event),
      ...options,
    });
    return { call, events, heard, types: () => events.map((event) => event.type) };
  }

  test.each(['UDP', 'TCP'] as const)(
    'registers with the right password over %s and leaves nothing behind',
    async (transport) => {
      const { phone, registration } = await startPhone({ transport });
      expect(registration).toEqual([{ type: 'registered', expiresSeconds: 300 }]);
      await phone.stop();
      expect(registration.at(-1)).toEqual({ type: 'stopped' });
      const last = phone.trace().at(-1);
      expect(last?.text).toMatch(/^SIP\/2\.0 200 OK/);
      expect(JSON.stringify(phone.trace())).not.toContain(password);
    },
  );

  test('reports a wrong password once and does not retry it', async () => {
    const { phone, registration } = await startPhone({}, 'wrong');
    expect(registration).toMatchObject([{ type: 'failed', final: true, reason: 'unauthorized', status: 401 }]);
    expect(phone.trace().filter((entry) => entry.direction === 'out')).toHaveLength(2);
  });

  test('gives up on a registrar that challenges forever', async () => {
    await sipp(challengesForEver);
    const registration: RegistrationEvent[] = [];
    const phone = new SipPhone({ address: lab.ownAddress, onRegistration: (event) => registration.push(event) });
    phones.push(phone);
    await phone.start({ address: trunk.address, username: 'room', password });
    await until('the end of the loop', () => registration.length > 0);
    expect(registration).toMatchObject([{ type: 'failed', final: true, reason: 'unauthorized' }]);
    expect(phone.trace().filter((entry) => entry.direction === 'out')).toHaveLength(5);
  });

  test('registers again with a restarted registrar at the next refresh', async () => {
    const { registration } = await startPhone({ expiresSeconds: 10 });
    await kamailio.stop();
    kamailio = await startKamailio(proxy, folder, trunk.address);
    await until('the refresh', () => registration.length > 1, 12_000);
    expect(registration.at(-1)).toEqual({ type: 'registered', expiresSeconds: 10 });
  });

  test.each(['UDP', 'TCP'] as const)(
    'calls baresip over %s, and both hear the tone of the other',
    async (transport) => {
      const wav = join(folder, 'tone-1000.wav');
      const next = toneFrames(1000);
      writeWav(wav, concat(Array.from({ length: 1000 }, next)));
      runs += 1;
      const home = join(folder, `baresip-${runs}`);
      const bob = await startBaresip(desk, home, { user: '4930', registrar: proxy.address, play: wav });
      programs.push(bob);

      const { phone } = await startPhone({ transport });
      const { call, events, heard } = await dial(phone, '4930');
      await until('two seconds of sound', () => heard.length > 100);
      expect(events).toContainEqual({ type: 'answered' });
      call.hangUp();
      expect(await call.ended).toMatchObject({ reason: 'hung_up' });
      await until('the phone to hang up', () => bob.output.includes('terminated'));
      await bob.stop();

      const atRoom = frequencyOf(concat(heard.slice(25)));
      const dump = readdirSync(home).find((name) => name.endsWith('-dec.wav'));
      const atDesk = frequencyOf(readWav(join(home, dump ?? 'no dump of what was heard')).subarray(4000));
      console.info(`tones over ${transport}: 1000 Hz heard as ${atRoom.toFixed(1)}, 440 Hz as ${atDesk.toFixed(1)}`);
      expect(Math.abs(atRoom - 1000)).toBeLessThan(20);
      expect(Math.abs(atDesk - 440)).toBeLessThan(8.8);
    },
  );

  test('calls sipp, hears its own tone come back, and hangs up', async () => {
    const { phone } = await startPhone();
    const phoneAtTrunk = await sipp(answers);
    const { call, types, heard } = await dial(phone, '+49 (30) 123-45');
    await until('a second of sound', () => heard.length > 75);
    call.hangUp();
    expect(await call.ended).toMatchObject({ reason: 'hung_up' });
    expect(await phoneAtTrunk.exit()).toBe(0);
    expect(types()).toEqual(['ringing', 'answered', 'media', 'ended']);
    expect(Math.abs(frequencyOf(concat(heard.slice(20))) - 440)).toBeLessThan(8.8);
  });

  test('ends the call when its sound stops, even if the BYE is not answered', async () => {
    const { phone, registration } = await startPhone();
    // At a port of its own: the proxy repeats the BYE for 30 s, and each phone of a later test would answer it.
    const other = await sipp(answers, 1, 5062);
    const { call, heard } = await dial(phone, '201', { mediaTimeoutMs: 1500 });
    await until('sound', () => heard.length > 10);
    await other.stop('SIGKILL');
    expect(await call.ended).toMatchObject({ reason: 'media_timeout' });
    await phone.stop();
    expect(registration.at(-1)).toEqual({ type: 'stopped' });
  });

  test('hears sound soon after it is made', async () => {
    const { phone } = await startPhone();
    await sipp(answers);
    const tone = toneFrames(440);
    let made: number | undefined;
    let back: number | undefined;
    const isLoud = (samples: Int16Array) => samples.some((sample) => Math.abs(sample) > 4000);
    const { call } = await dial(phone, '200', {
      audio: pcmAudio({
        next: () => (made === undefined ? undefined : tone()),
        received: (samples) => {
          if (made !== undefined && samples && isLoud(samples)) back ??= performance.now();
        },
      }),
    });
    await until('silence to come back', () => call.stats().played > 25);
    made = performance.now();
    await until('the tone to come back', () => back !== undefined);
    call.hangUp();
    const delay = (back ?? Number.POSITIVE_INFINITY) - made;
    console.info(`there and back through the phone in ${delay.toFixed(0)} ms`);
    // The sum of both directions; each must stay below 250 ms.
    expect(delay).toBeLessThan(500);
  });

  test('spends less than half a core on twenty calls at once', async () => {
    const other = await sipp(answers, 20);
    const phones = await Promise.all(Array.from({ length: 20 }, () => startPhone()));
    const calls = await Promise.all(phones.map(({ phone }) => dial(phone, '200')));
    await until('sound in all', () => calls.every(({ heard }) => heard.length > 10));
    const before = process.cpuUsage();
    const startedAt = performance.now();
    await new Promise((wait) => setTimeout(wait, 4000));
    const used = process.cpuUsage(before);
    const cores = (used.user + used.system) / 1000 / (performance.now() - startedAt);
    console.info(`20 calls: ${cores.toFixed(2)} cores`);
    for (const { call } of calls) call.hangUp();
    const ends = await Promise.all(calls.map(({ call }) => call.ended));
    expect(ends.every((end) => end.reason === 'hung_up')).toBe(true);
    expect(await other.exit()).toBe(0);
    for (const { heard } of calls) expect(Math.abs(frequencyOf(concat(heard.slice(25))) - 440)).toBeLessThan(8.8);
    expect(cores).toBeLessThan(0.5);
  });

  test.each([
    ['486 Busy Here', 'busy', ''],
    ['603 Decline', 'declined', ''],
    ['480 Temporarily Unavailable', 'unavailable', ''],
    ['503 Service Unavailable', 'server_error', ''],
  ])('ends the call on a response of %s as %s', async (status, expected, more) => {
    const { phone } = await startPhone();
    const other = await sipp(refuses(status, more));
    const { call } = await dial(phone, '200');
    expect(await call.ended).toMatchObject({ reason: expected });
    expect(await other.exit()).toBe(0);
  });

  test('ends the call when the provider does not know the number', async () => {
    const { phone } = await startPhone();
    const { call } = await dial(phone, '404');
    expect(await call.ended).toEqual({ reason: 'not_found', status: 404, text: '404 Not Found' });
  });

  test('cancels an unanswered call after the given time', async () => {
    const { phone } = await startPhone();
    const other = await sipp(ringsUntilCancelled);
    const { call } = await dial(phone, '200', { ringTimeoutMs: 1500 });
    expect(await call.ended).toMatchObject({ reason: 'no_answer' });
    expect(await other.exit()).toBe(0);
  });

  test('cancels the call on hanging up while it rings', async () => {
    const { phone } = await startPhone();
    const other = await sipp(ringsUntilCancelled);
    const { call, types } = await dial(phone, '200');
    await until('ringing', () => types().includes('ringing'));
    call.hangUp();
    expect(await call.ended).toMatchObject({ reason: 'cancelled' });
    expect(await other.exit()).toBe(0);
  });

  test('hears early media before the answer, and the other side hangs up', async () => {
    const { phone } = await startPhone();
    const other = await sipp(hangsUp);
    const { call, events } = await dial(phone, '200');
    expect(await call.ended).toMatchObject({ reason: 'remote_hung_up' });
    expect(await other.exit()).toBe(0);
    expect(events.map((event) => event.type)).toEqual(['media', 'ringing', 'answered', 'media', 'ended']);
    expect(events[0]).toMatchObject({ early: true });
  });

  test('can be held, resumed, queried for options and hung up on', async () => {
    const { phone } = await startPhone();
    const other = await sipp(holds);
    const { call, events } = await dial(phone, '200');
    expect(await call.ended).toMatchObject({ reason: 'remote_hung_up' });
    expect(await other.exit()).toBe(0);
    const held = events.flatMap((event) => (event.type === 'held' ? [event.held] : []));
    expect(held).toEqual([true, false]);
  });
});
