// Calls of a real node: the promises of the API.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { Api } from '../harness/api.js';
import { commandOf, descendants, repository } from '../harness/processes.js';
import { describeWith } from '../harness/needs.js';
import { PhoneLab, Rooms, until } from './phone-lab.js';
import { password } from './programs.js';
import { answers, hangsUp, holds, ringsUntilCancelled } from './scenarios.js';

const run = promisify(execFile);

// Real programs on a busy machine.
jest.setTimeout(60_000);

describeWith(['network namespaces', 'phones'], 'a room and the telephone', () => {
  let phones: PhoneLab;
  let rooms: Rooms;
  let registrar: string;

  beforeAll(async () => {
    phones = await PhoneLab.open();
    registrar = phones.proxy.address;
    rooms = await Rooms.start(phones.nodeEnv);
  });
  afterEach(async () => {
    await rooms.clear();
    await phones.clear();
  });
  afterAll(async () => {
    await rooms?.stop();
    await phones?.close();
  });

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
});
