// Tests calls of a real node: the promises of the API, whatever the provider and the phones do.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { Api } from '../harness/api.js';
import { commandOf, descendants, repository } from '../harness/processes.js';
import { describeWith, testWith } from '../harness/needs.js';
import { type Pair, startPair } from '../hls/pair.js';
import { PhoneLab, Rooms, until } from './phone-lab.js';
import { password } from './programs.js';
import { concat, frequencyOf, readWav, toneFrames, writeWav } from './tone.js';
import { answers, answersOnce, challengesForEver, hangsUp, holds, refuses, ringsUntilCancelled } from './scenarios.js';

const run = promisify(execFile);

// Real programs on a busy machine.
jest.setTimeout(60_000);

describeWith(['network namespaces', 'phones'], 'a room and the telephone', () => {
  let phones: PhoneLab;
  let rooms: Rooms;
  /** Nodes that belong to a single test. */
  const others: Rooms[] = [];
  let registrar: string;

  beforeAll(async () => {
    phones = await PhoneLab.open();
    registrar = phones.proxy.address;
    rooms = await Rooms.start(phones.nodeEnv);
  });
  afterEach(async () => {
    await rooms.clear();
    await Promise.all(others.splice(0).map((other) => other.stop()));
    await phones.clear();
  });
  afterAll(async () => {
    await rooms?.stop();
    await phones?.close();
  });

  async function another(env: Record<string, string> = {}): Promise<Rooms> {
    const other = await Rooms.start({ ...phones.nodeEnv, ...env });
    others.push(other);
    return other;
  }

  const processes = () => descendants(rooms.node.pid).filter((pid) => commandOf(pid).includes('phone-main'));

  test('is a track that ends when the room hangs up, and another track for the next call', async () => {
    const room = await rooms.room();
    const { id, properties } = await rooms.phone(room, registrar);
    expect(properties).toEqual({ registrarCredentials: { address: registrar, username: 'room', password } });
    for (const call of [1, 2]) {
      const other = await phones.sipp(answers);
      await rooms.sdk.dial(room, id, '+49 (30) 123-45.6');
      await rooms.logs(id, 'sip.answered');
      await until('the track', () => rooms.of(id).filter((type) => type === 'trackAdded').length === call);
      const { components } = await rooms.sdk.getRoom(room);
      expect(components[0]?.tracks).toEqual([{ id: expect.any(String), type: 'audio', metadata: null }]);
      await rooms.sdk.hangUp(room, id);
      expect(await other.exit()).toBe(0);
      await until('its end', () => rooms.of(id).filter((type) => type === 'trackRemoved').length === call);
    }
    expect(rooms.of(id)).toEqual(['trackAdded', 'trackRemoved', 'trackAdded', 'trackRemoved']);
    const tracks = rooms.events.flatMap((event) => (event.type === 'trackAdded' ? [event.track.id] : []));
    expect(new Set(tracks).size).toBe(tracks.length);
    expect(await rooms.logs(id, 'sip.call_ended')).toMatchObject({ number: '+4930123456', reason: 'hung_up' });
    await rooms.sdk.hangUp(room, id);
    await until('no process to be left', () => processes().length === 0);
  });

  test('logs a wrong password with the response of the provider, and keeps the component', async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar, 'wrong-horse');
    expect(await rooms.logs(id, 'sip.registration_failed')).toMatchObject({
      answer: '401 Unauthorized',
      reason: 'unauthorized',
    });
    await rooms.sdk.dial(room, id, '123');
    expect(await rooms.logs(id, 'sip.call_failed')).toMatchObject({ answer: expect.stringMatching(/^407 /) });
    expect((await rooms.sdk.getRoom(room)).components).toHaveLength(1);
    expect(rooms.of(id)).toEqual([]);
    expect(rooms.node.log()).not.toContain('wrong-horse');
  });

  test('gives up on a registrar that challenges forever', async () => {
    await phones.sipp(challengesForEver);
    const room = await rooms.room();
    const { id } = await rooms.phone(room, phones.trunk.address);
    expect(await rooms.logs(id, 'sip.registration_failed')).toMatchObject({ reason: 'unauthorized' });
    expect(rooms.of(id)).toEqual([]);
  });

  test('logs a missing registrar, and the room continues without it', async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, `${phones.desk.address}:9`);
    expect((await rooms.sdk.getRoom(room)).components).toHaveLength(1);
    await rooms.sdk.hangUp(room, id);
    await rooms.sdk.deleteComponent(room, id);
  });

  test.each([
    ['486 Busy Here', 'busy'],
    ['603 Decline', 'declined'],
    ['480 Temporarily Unavailable', 'unavailable'],
    ['408 Request Timeout', 'no_answer'],
    ['503 Service Unavailable', 'server_error'],
  ])('ends the call on a response of %s, and can make the next one', async (status, expected) => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar);
    const other = await phones.sipp(refuses(status));
    await rooms.sdk.dial(room, id, '200');
    expect(await rooms.logs(id, 'sip.call_failed')).toMatchObject({ number: '200', reason: expected });
    expect(await other.exit()).toBe(0);
    await rooms.sdk.dial(room, id, '404');
    await until('the second call', () =>
      rooms.log(id).some((line) => line.message === 'sip.call_failed' && line.metadata['answer'] === '404 Not Found'),
    );
    expect(rooms.of(id)).toEqual([]);
  });

  test('cancels the call on hanging up while the phone rings', async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar);
    const other = await phones.sipp(ringsUntilCancelled);
    await rooms.sdk.dial(room, id, '200');
    await rooms.logs(id, 'sip.ringing');
    await rooms.sdk.hangUp(room, id);
    expect(await other.exit()).toBe(0);
    expect(await rooms.logs(id, 'sip.call_ended')).toMatchObject({ reason: 'cancelled' });
    expect(rooms.of(id)).toEqual([]);
  });

  test('hears early media before the answer, and the other side hangs up', async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar);
    const other = await phones.sipp(hangsUp);
    await rooms.sdk.dial(room, id, '200');
    expect(await other.exit()).toBe(0);
    await rooms.tells(id, 'trackRemoved');
    expect(await rooms.logs(id, 'sip.call_ended')).toMatchObject({ reason: 'remote_hung_up' });
    expect(rooms.of(id)).toEqual(['trackAdded', 'trackRemoved']);
  });

  test("keeps the phone's track when held and resumed", async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar);
    const other = await phones.sipp(holds);
    await rooms.sdk.dial(room, id, '200');
    expect(await other.exit()).toBe(0);
    await rooms.tells(id, 'trackRemoved');
    const told = rooms.log(id).map((line) => line.message);
    expect(told.filter((message) => /held|resumed/.test(message))).toEqual(['sip.held', 'sip.resumed']);
    expect(rooms.of(id)).toEqual(['trackAdded', 'trackRemoved']);
  });

  test('dials a second number only after the first call is hung up', async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar);
    const other = await phones.sipp(answers, 2);
    await rooms.sdk.dial(room, id, '200');
    await rooms.tells(id, 'trackAdded');
    await rooms.sdk.dial(room, id, '300');
    expect(await rooms.logs(id, 'sip.dial_ignored')).toMatchObject({ number: '300' });
    await rooms.sdk.hangUp(room, id);
    await rooms.sdk.dial(room, id, '400');
    await until('the second call', () => rooms.log(id).filter((line) => line.message === 'sip.answered').length === 2);
    await rooms.sdk.hangUp(room, id);
    expect(await other.exit()).toBe(0);
    const dialled = rooms.log(id).filter((line) => line.message === 'sip.dialling');
    expect(dialled.map((line) => line.metadata['number'])).toEqual(['200', '400']);
  });

  test('ends only the component on an invalid number', async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar);
    await rooms.sdk.dial(room, id, 'five');
    await rooms.tells(id, 'componentCrashed');
    const { components } = await rooms.sdk.getRoom(room);
    expect(components).toEqual([]);
  });

  test('makes calls after the registrar restarted', async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar);
    await rooms.logs(id, 'sip.registered');
    await phones.restartRegistrar();
    const other = await phones.sipp(answers);
    await rooms.sdk.dial(room, id, '200');
    await rooms.tells(id, 'trackAdded');
    await rooms.sdk.hangUp(room, id);
    expect(await other.exit()).toBe(0);
  });

  test('ends the call and the registration with the room', async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar);
    const other = await phones.sipp(answers);
    await rooms.sdk.dial(room, id, '200');
    await rooms.tells(id, 'trackAdded');
    const before = performance.now();
    await rooms.sdk.deleteRoom(room);
    // Hanging up may take 3 s.
    expect(performance.now() - before).toBeLessThan(2_500);
    expect(await other.exit()).toBe(0);
    await rooms.logs(id, 'sip.unregistered');
    await until('RoomDeleted', () => rooms.events.at(-1)?.type === 'roomDeleted');
    expect(rooms.of(id)).toEqual(['trackAdded', 'trackRemoved']);
  });

  test.each(['SIGKILL', 'SIGABRT', 'SIGSTOP'] as const)(
    'ends the component on %s to the process of a call',
    async (signal) => {
      const room = await rooms.room();
      const { id } = await rooms.phone(room, registrar);
      const other = await phones.sipp(answers);
      await rooms.sdk.dial(room, id, '200');
      await rooms.tells(id, 'trackAdded');
      const [pid] = processes();
      process.kill(pid as number, signal);
      await rooms.tells(id, 'componentCrashed', 15_000);
      expect(rooms.of(id)).toEqual(['trackAdded', 'trackRemoved', 'componentCrashed']);
      // The other side is hung up on, and the room continues.
      expect(await other.exit()).toBe(0);
      expect((await rooms.sdk.getRoom(room)).components).toEqual([]);
      await until('no process to be left', () => processes().length === 0);
    },
  );

  testWith(['nightly'], 'a phone whose sound stops coming is hung up on', async () => {
    const room = await rooms.room();
    const { id } = await rooms.phone(room, registrar);
    const other = await phones.sipp(answers);
    await rooms.sdk.dial(room, id, '200');
    await rooms.tells(id, 'trackAdded');
    await other.stop('SIGKILL');
    await rooms.tells(id, 'trackRemoved', 75_000);
    expect(await rooms.logs(id, 'sip.call_ended')).toMatchObject({ reason: 'media_timeout' });
  });

  test('responds as documented', async () => {
    const api = new Api(rooms.node.url);
    const room = await rooms.room();
    const add = async (options: unknown) => {
      const { status, body } = await api.request('POST', `/room/${room}/component`, { type: 'sip', options });
      return [status, body.errors];
    };
    expect(await add({})).toEqual([400, 'Required field "registrarCredentials" missing']);
    const whole = { address: registrar, username: 'room', password };
    for (const field of ['address', 'username', 'password']) {
      const registrarCredentials = { ...whole, [field]: undefined };
      expect(await add({ registrarCredentials })).toEqual([400, `Required field "${field}" missing`]);
    }
    for (const address of ['', 'a b', 'host:0', 'host:70000', 'http://x', 5])
      expect(await add({ registrarCredentials: { ...whole, address } })).toEqual([
        400,
        'Invalid request body structure',
      ]);
    const { id } = await rooms.phone(room, registrar);
    const refusal = await api.request('POST', `/room/${room}/component/${id}/subscribe`, { origins: [] });
    expect([refusal.status, refusal.body.errors]).toEqual([
      400,
      'Subscribe mode is supported only for HLS and Recording components',
    ]);
    expect((await api.request('DELETE', `/sip/${room}/${id}/call`)).status).toBe(204);
    const structure = await api.request('POST', `/sip/${room}/${id}/call`, {});
    expect(structure.status).toBe(400);
    expect(structure.body.errors).toBe('Invalid request body structure');
    await rooms.sdk.deleteComponent(room, id);
    const gone = await api.request('POST', `/sip/${room}/${id}/call`, { phoneNumber: '1' });
    expect(gone.status).toBe(400);
    expect(gone.body.errors).toBe(`Component ${id} does not exist`);
  });

  test('calls with the example of the guide, and ends when the other side hangs up', async () => {
    const guide = readFileSync(join(repository, 'docs', 'guide', 'phone-calls.md'), 'utf8');
    const code = (/^```js no-test\n([\s\S]*?)^```$/m.exec(guide)?.[1] ?? '')
      .replaceAll('http://127.0.0.1:5002', rooms.node.url)
      .replace('sip.example.com', registrar)
      .replace('4930123', 'room');
    // Inside the repository, so that imports find the packages.
    const folder = mkdtempSync(join(repository, 'e2e', '.guide-'));
    try {
      const file = join(folder, 'example.mjs');
      writeFileSync(file, code);
      const other = await phones.sipp(hangsUp);
      const env = { ...process.env, SIP_PASSWORD: password };
      const { stdout } = await run(process.execPath, [file], { timeout: 20_000, env });
      expect(stdout).toBe('on the line\n');
      expect(await other.exit()).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('hangs up before a node that is told to end', async () => {
    const own = await another();
    const room = await own.room();
    const { id } = await own.phone(room, registrar);
    const other = await phones.sipp(answers);
    await own.sdk.dial(room, id, '200');
    await own.tells(id, 'trackAdded');
    process.kill(own.node.pid, 'SIGTERM');
    expect(await other.exit()).toBe(0);
    await own.logs(id, 'sip.unregistered');
    await until('the end of the node', () => own.node.log().includes('node.closed'));
  });
});

describeWith(['network namespaces', 'phones', 'ffmpeg'], 'a telephone call whose room moves to another node', () => {
  let phones: PhoneLab;
  let pair: Pair;
  let from: Rooms;
  let to: Rooms;

  beforeAll(async () => {
    phones = await PhoneLab.open();
    const addresses: Record<string, string> = { one: phones.lab.addOwnAddress(), two: phones.lab.ownAddress };
    pair = await startPair((alive) => ({
      ...phones.nodeEnv,
      JF_SIP_IP: addresses[alive] as string,
      JF_STRUCTURED_LOGGING: 'true',
    }));
    from = new Rooms(pair.two);
    to = new Rooms(pair.one);
    await to.listen();
  });
  afterEach(() => phones.clear());
  afterAll(async () => {
    to?.end();
    await pair?.stop();
    await phones?.close();
  });

  /** Calls a number from a room with a tone on the second node. */
  async function call(number: string): Promise<{ room: string; id: string; track: string | undefined }> {
    const room = await pair.roomOnTwo();
    await from.sdk.addComponent(room, 'file', { filePath: 'tone.ogg' });
    const { id } = await from.phone(room, phones.proxy.address);
    await from.sdk.dial(room, id, number);
    await to.tells(id, 'trackAdded');

    return { room, id, track: await trackOf(room, id) };
  }

  async function trackOf(room: string, id: string): Promise<string | undefined> {
    const { components } = await to.sdk.getRoom(room);

    return components.find((component) => component.id === id)?.tracks?.[0]?.id;
  }

  /** Returns when a node logged an event, in Unix milliseconds: both have the clock of this machine. */
  function timeOf(rooms: Rooms, id: string, message: string): number {
    return Date.parse(rooms.log(id).find((line) => line.message === message)?.time ?? '');
  }

  async function move(room: string): Promise<void> {
    const ask = () => pair.one.api.request('POST', `/room/${room}/move`, { node: pair.one.name });
    // A busy machine may miss the time limits of a move.
    for (let answer = await ask(); answer.status !== 200; answer = await ask()) {
      if (answer.status !== 503 && answer.status !== 409) throw new Error(answer.body.errors);
      await delay(200);
    }
  }

  test('goes on there with the same phone and the same track', async () => {
    const wav = join(phones.folder, 'moved.wav');
    writeWav(wav, concat(Array.from({ length: 1500 }, toneFrames(1000))));
    const bob = await phones.baresip('4930', wav);
    const { room, id, track } = await call('4930');
    // What the phone hears is judged by its recording.
    await delay(2_000);
    await move(room);
    await to.logs(id, 'sip.call_moved');
    await delay(3_000);
    expect(await trackOf(room, id)).toBe(track);
    expect(to.of(id)).toEqual(['trackAdded']);
    expect(bob.program.output).not.toContain('terminated');
    expect(await from.logs(id, 'sip.call_ended')).toMatchObject({ reason: 'moved' });
    await to.sdk.hangUp(room, id);
    await until('the phone to be hung up', () => bob.program.output.includes('terminated'));
    expect(await to.logs(id, 'sip.call_ended')).toMatchObject({ reason: 'hung_up' });
    await to.tells(id, 'trackRemoved');
    await bob.program.stop();
    const heard = readWav(bob.recording());
    expect(Math.abs(frequencyOf(heard.slice(-8_000)) - 440)).toBeLessThan(8.8);
    const pauseMs = timeOf(to, id, 'sip.call_moved') - timeOf(from, id, 'sip.call_ended');
    console.info(`the call was on neither node for ${pauseMs} ms`);
    expect(pauseMs).toBeLessThan(3_000);
  });

  test('is hung up, with a line in the log, where the provider refuses the change', async () => {
    const other = await phones.sipp(answersOnce);
    const { room, id } = await call('200');
    await move(room);
    expect(await to.logs(id, 'sip.call_not_moved')).toMatchObject({ number: '200', answer: '488 Not Acceptable Here' });
    expect(await other.exit()).toBe(0);
    expect((await to.sdk.getRoom(room)).components.map((component) => component.id)).toContain(id);
  });
});
