import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { defaultRoomConfig } from '../room-service.js';
import type { ClusterPort } from './cluster-port.js';
import { Placement } from './placement.js';
import { SilentMembers } from './silent-members.js';

/**
 * Node `a` among `members`. `ask` sets the duration and the result of each call, `takes` whether links accept messages.
 */
function nodeAmong(
  members: string[],
  ask: (type: string, node: string) => { tookMs: number; answer: unknown },
  takes = () => true,
) {
  const clock = new ManualClock();
  const said: string[] = [];
  const port = {
    self: 'a',
    members: () => members,
    received: () => 0,
    call: (node: string, { type }: { type: string }, { timeoutMs }: { timeoutMs: number }) =>
      new Promise((resolve, reject) => {
        said.push(type);
        const { tookMs, answer } = ask(type, node);
        if (timeoutMs < tookMs) clock.setTimeout(() => reject(new Error('too late')), timeoutMs);
        else clock.setTimeout(() => resolve(answer), tookMs);
      }),
    cast: (_node: string, { type }: { type: string }) => {
      said.push(type);
      return takes();
    },
  } as unknown as ClusterPort;
  const { members: listed, received } = port;
  const ping = async () => 'pong';
  const silentMembers = new SilentMembers({ members: listed, ping, received, log: silentLog, clock });
  const placement = new Placement({ port, silentMembers, log: silentLog, clock, newId: randomUUID });
  const advance = (ms: number) => clock.advanceAsync(ms, () => new Promise((resolve) => setImmediate(resolve)));
  /** Creates a room. Resolves with the address, or the code of the refusal, and the time rounded to 0.1 s. */
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

test('answers within 4 s, and never leaves a room behind after that', async () => {
  let reservations = 0;
  // Every node answers just in time, and the first choice has become busier by then.
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

test('withdraws an abandoned creation as soon as the link accepts it, while the node still remembers it', async () => {
  let taken = false;
  const { said, advance, create, clock } = nodeAmong(
    ['b'],
    (type, node) => {
      if (type === 'load') return { tookMs: 0, answer: { ...IDLE, rooms: node === 'a' ? 1 : 0 } };
      const late = type === 'create' && node === 'b';
      return { tookMs: late ? 60_000 : 0, answer: type === 'create' ? CREATED : { granted: 'it' } };
    },
    () => taken,
  );
  const withdrawn = (): number => said.filter((type) => type === 'withdraw').length;
  expect((await create())[0]).toBe('a:80');
  await advance(20_000);
  const before = withdrawn();
  expect(before).toBeGreaterThan(10);
  taken = true;
  await advance(20_000);
  expect(withdrawn()).toBe(before + 1);

  taken = false;
  await create();
  const from = clock.now();
  await advance(120_000);
  const all = withdrawn();
  await advance(120_000);
  expect(withdrawn()).toBe(all);
  expect(clock.now() - from).toBe(240_000);
});

test('gives a lone node the full time for a creation, and asks it again when that was not enough', async () => {
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

test('makes a burst wait once for a slow member and spreads it over the others', async () => {
  const rooms: Record<string, number> = { a: 0, b: 0, c: 10 };
  const { said, advance, placement, clock } = nodeAmong(['b', 'c'], (type, node) => {
    if (type === 'reserve') return { tookMs: 10, answer: { granted: 'it' } };
    if (type === 'create') rooms[node]! += 1;
    const answer = type === 'create' ? CREATED : { ...IDLE, rooms: rooms[node] };
    return { tookMs: type === 'load' && node === 'c' ? 900 : 10, answer };
  });
  const ends: { outcome: string; at: number }[] = [];
  const request = (): void =>
    void placement.create({ ...defaultRoomConfig, roomId: null }).then(
      () => ends.push({ outcome: 'created', at: clock.now() }),
      ({ code }: { code: string }) => ends.push({ outcome: code, at: clock.now() }),
    );
  request();
  await advance(100);
  for (let i = 1; i < 20; i += 1) request();
  while (ends.length < 20) await advance(10);

  expect(ends.every(({ outcome }) => outcome === 'created')).toBe(true);
  expect(ends.at(-1)?.at).toBeLessThan(2_800);
  expect(rooms).toEqual({ a: 10, b: 10, c: 10 });
  // All three nodes, twice, and each time the node that got the previous room.
  expect(said.filter((type) => type === 'load')).toHaveLength(6 + 18);
});

test('refuses requests that run out of time before their turn at that moment', async () => {
  const { advance, placement, clock } = nodeAmong(['b'], (type) => {
    if (type === 'load') return { tookMs: 0, answer: IDLE };
    return { tookMs: type === 'create' ? 2_000 : 0, answer: type === 'create' ? CREATED : { granted: 'it' } };
  });
  const ends: { outcome: string; at: number }[] = [];
  for (let request = 0; request < 20; request += 1) {
    void placement.create({ ...defaultRoomConfig, roomId: null }).then(
      () => ends.push({ outcome: 'created', at: clock.now() }),
      ({ code }: { code: string }) => ends.push({ outcome: code, at: clock.now() }),
    );
  }
  while (ends.length < 20) await advance(10);
  expect(ends.at(-1)).toMatchObject({ outcome: 'NO_NODE' });
  expect(ends.at(-1)?.at).toBeLessThan(5_000);
});

/** Reserves a place for a room that moves. Node `b` refuses if `refuses`, although it reports no load; `c` grants. */
async function reserved(avoided: string[], { members = ['b', 'c'], refuses = false, former = [] as string[] } = {}) {
  const node = nodeAmong(members, (type, name) => {
    if (type === 'load') return { tookMs: 0, answer: name === 'c' ? { ...IDLE, rooms: 1 } : IDLE };
    return { tookMs: 0, answer: refuses && name === 'b' ? { refused: IDLE } : { granted: `at ${name}` } };
  });
  const place = node.placement.reserveElsewhere('r', { avoided: new Set(avoided), former });
  await node.advance(100);

  return place;
}

test('never sends a room that moves to a node that it has just left', async () => {
  expect(await reserved([], { former: ['b'] })).toEqual({ node: 'c', reservation: 'at c' });
  expect(await reserved(['c'], { former: ['b'] })).toEqual({ node: 'c', reservation: 'at c' });
  expect(await reserved([], { former: ['b', 'c'] })).toBeUndefined();
});

test('finds another place for a room that moves when a member never grants what it offers', async () => {
  expect(await reserved([], { refuses: true })).toEqual({ node: 'c', reservation: 'at c' });
});

test('avoids a member for rooms that move, unless there is no other', async () => {
  expect(await reserved([])).toMatchObject({ node: 'b' });
  expect(await reserved(['b'])).toMatchObject({ node: 'c' });
  expect(await reserved(['b'], { members: ['b'] })).toMatchObject({ node: 'b' });
});
