// Calls of a real node whose provider, phones or processes fail.
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { commandOf, descendants } from '../harness/processes.js';
import { describeWith, testWith } from '../harness/needs.js';
import { PhoneLab, Rooms, until } from './phone-lab.js';
import { answers, challengesForEver, refuses } from './scenarios.js';

// Real programs on a busy machine.
jest.setTimeout(60_000);

describeWith(['network namespaces', 'phones'], 'a room and a telephone that fails', () => {
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

  async function another(): Promise<Rooms> {
    const other = await Rooms.start(phones.nodeEnv);
    others.push(other);
    return other;
  }

  const processes = () => descendants(rooms.node.pid).filter((pid) => commandOf(pid).includes('phone-main'));

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
