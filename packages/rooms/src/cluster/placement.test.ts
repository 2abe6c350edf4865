import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { defaultRoomConfig } from '../room-service.js';
import type { ClusterPort } from './cluster-port.js';
import { Placement } from './placement.js';
import { SilentMembers } from './silent-members.js';

/** A node a among `members` whose calls take as long, and are answered, as a test says. */
function nodeAmong(members: string[], ask: (type: string) => { tookMs: number; answer: unknown }) {
  const clock = new ManualClock();
  const said: string[] = [];
  const port = {
    self: 'a',
    members: () => members,
    call: (_node: string, { type }: { type: string }, { timeoutMs }: { timeoutMs: number }) =>
      new Promise((resolve, reject) => {
        said.push(type);
        const { tookMs, answer } = ask(type);
        if (timeoutMs < tookMs) clock.setTimeout(() => reject(new Error('too late')), timeoutMs);
        else clock.setTimeout(() => resolve(answer), tookMs);
      }),
    cast: (_node: string, { type }: { type: string }) => void said.push(type),
  } as unknown as ClusterPort;
  const silentMembers = new SilentMembers({ members: port.members, ping: async () => 'pong', log: silentLog, clock });
  const placement = new Placement({ port, silentMembers, log: silentLog, clock });
  const advance = (ms: number) => clock.advanceAsync(ms, () => new Promise((resolve) => setImmediate(resolve)));
  /** Asks for a room. Resolves with the address, or the code of the refusal, and the time to 0.1 s. */
  const create = async (): Promise<[outcome: string, tookMs: number]> => {
    const from = clock.now();
    let outcome: string | undefined;
    void placement.create({ ...defaultRoomConfig, roomId: null }).then(
      ({ address }) => (outcome = address),
      ({ code }: { code: string }) => (outcome = code),
    );
    while (outcome === undefined) await advance(10);
    return [outcome, Math.round((clock.now() - from) / 100) * 100];
  };
  return { said, advance, create, placement, clock };
}

const IDLE = { forwardedTracks: 0, rooms: 0, draining: false };
const CREATED = { ok: true, value: { room: { id: 'r' }, address: 'a:80' } };

test('whoever asked has an answer within 4 s, and no room comes to be after that', async () => {
  let reservations = 0;
  // Everybody answers just in time, and whoever is chosen first has become busier meanwhile.
  const answer = (type: string): unknown => {
    if (type === 'load') return IDLE;
    if (type === 'create') return CREATED;
    reservations += 1;
    return reservations < 3 ? { refused: { ...IDLE, forwardedTracks: 1 } } : { granted: 'it' };
  };
  const { said, advance, create } = nodeAmong(['b', 'c'], (type) => ({ tookMs: 850, answer: answer(type) }));
  const [outcome, tookMs] = await create();
  expect(outcome).toBe('NO_NODE');
  expect(tookMs).toBeLessThanOrEqual(4_000);
  await advance(10_000);
  expect(said.slice(-2)).toEqual(['create', 'withdraw']);
});

test('a node that is alone has the whole time for a creation, and is asked again when that was not enough', async () => {
  let createMs = 2_000;
  const { create } = nodeAmong([], (type) => {
    if (type === 'load') return { tookMs: 0, answer: IDLE };
    return type === 'create' ? { tookMs: createMs, answer: CREATED } : { tookMs: 0, answer: { granted: 'it' } };
  });
  expect(await create()).toEqual(['a:80', 2_000]);
  createMs = 4_300;
  expect(await create()).toEqual(['NO_NODE', 4_000]);
  createMs = 0;
  expect((await create())[0]).toBe('a:80');
});

test('those behind a slow member have an answer in time as well, and cost nothing after it', async () => {
  const answers: Record<string, unknown> = { load: IDLE, reserve: { granted: 'it' }, create: CREATED };
  const { said, advance, placement, clock } = nodeAmong(['b'], (type) => ({
    tookMs: type === 'load' ? 900 : 0,
    answer: answers[type],
  }));
  const ends: { outcome: string; at: number }[] = [];
  for (let request = 0; request < 20; request += 1) {
    void placement.create({ ...defaultRoomConfig, roomId: null }).then(
      () => ends.push({ outcome: 'created', at: clock.now() }),
      ({ code }: { code: string }) => ends.push({ outcome: code, at: clock.now() }),
    );
  }
  while (ends.length < 20) await advance(10);
  expect(ends.map(({ outcome }) => outcome)).toEqual([
    ...Array.from({ length: 4 }, () => 'created'),
    ...Array.from({ length: 16 }, () => 'NO_NODE'),
  ]);
  expect(ends.at(-1)?.at).toBeLessThan(5_000);
  expect(said.filter((type) => type === 'load')).toHaveLength(10);
});
