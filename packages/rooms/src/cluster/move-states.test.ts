// Every order in which the two sides of a move can hear of each other, with lost messages and deaths at each step.
import { expect, test } from '@jest/globals';
import {
  GIVER,
  type GiverEvent,
  type GiverSays,
  giverSays,
  type GiverState,
  MoveSide,
  TAKER,
  type TakerEvent,
  type TakerState,
} from './move-states.js';

/** Both sides; `dead`: its process has ended. `heard`: messages on their way to the taker, in order. */
interface World {
  readonly giver: GiverState | 'dead';
  readonly taker: TakerState | 'dead';
  readonly heard: readonly TakerEvent[];
  /** The taker has run the room. */
  readonly ran: boolean;
}

const START: World = { giver: 'offering', taker: 'holding', heard: [], ran: false };

function giver(world: World, event: GiverEvent): World {
  if (world.giver === 'dead') return world;
  const side = new MoveSide<GiverState, GiverEvent>(GIVER, world.giver);
  if (!side.on(event)) return world;
  const sent: Partial<Record<GiverState, TakerEvent>> = { kept: 'keep', given: 'take' };
  const message = sent[side.state];

  return { ...world, giver: side.state, heard: message === undefined ? world.heard : [...world.heard, message] };
}

function taker(world: World, event: TakerEvent): World {
  if (world.taker === 'dead') return world;
  const side = new MoveSide<TakerState, TakerEvent>(TAKER, world.taker);
  side.on(event);

  return { ...world, taker: side.state, ran: world.ran || side.state === 'open' };
}

const MEANING: Readonly<Record<GiverSays, TakerEvent | undefined>> = {
  offered: undefined,
  given: 'take',
  unknown: 'keep',
};

/** Returns every world that may follow. A taker that is cut off for minutes is left out: see the last test. */
function next(world: World): World[] {
  const worlds: World[] = [giver(world, 'refused')];
  if (world.taker === 'holding') worlds.push(giver(world, 'accepted'));
  const [message, ...rest] = world.heard;
  if (message !== undefined) worlds.push({ ...world, heard: rest }, taker({ ...world, heard: rest }, message));
  // The taker asks. A giver that has died, and its successor, know nothing.
  if (world.taker === 'holding') {
    const meaning = MEANING[giverSays(world.giver === 'dead' ? undefined : world.giver)];
    if (meaning !== undefined) worlds.push(taker(world, meaning));
  }
  // The giver repeats its decision, and the taker, or its successor, answers.
  if (world.giver === 'given') {
    if (world.taker === 'holding') worlds.push(taker(world, 'take'));
    else worlds.push(giver(world, world.taker === 'open' ? 'opened' : 'unknown'));
    worlds.push(giver(world, 'overdue'));
  }
  worlds.push({ ...world, giver: 'dead' }, { ...world, taker: 'dead', heard: [] });

  return worlds;
}

function allWorlds(): World[] {
  const known = new Map<string, World>();
  const waiting = [START];
  for (let world = waiting.pop(); world !== undefined; world = waiting.pop()) {
    const key = JSON.stringify(world);
    if (known.has(key)) continue;
    known.set(key, world);
    waiting.push(...next(world));
  }

  return [...known.values()];
}

const worlds = allWorlds();
const giverOwns = ({ giver: state }: World): boolean => state === 'offering' || state === 'kept';

test('never has two owners', () => {
  expect(worlds.length).toBeGreaterThan(20);
  expect(worlds.filter((world) => giverOwns(world) && world.ran)).toEqual([]);
});

test('never reports the end of a room that runs', () => {
  expect(worlds.some(({ giver: gives, taker: takes }) => gives === 'parted' && takes === 'open')).toBe(true);
  expect(worlds.filter(({ giver: gives, taker: takes }) => gives === 'lost' && takes === 'open')).toEqual([]);
});

test('loses the room only where a process has ended', () => {
  const lost = worlds.filter(
    ({ giver: gives, taker: takes }) => (gives === 'lost' || gives === 'gone' || gives === 'given') && takes !== 'open',
  );
  for (const { giver: gives, taker: takes } of lost)
    expect(takes === 'dead' || (gives === 'given' && takes === 'holding')).toBe(true);
});

test('always ends: from every step both sides come to rest, and agree', () => {
  const isAtRest = ({ giver: gives, taker: takes }: World): boolean =>
    gives !== 'offering' && gives !== 'given' && takes !== 'holding';
  for (const world of worlds) {
    const reached = new Set([JSON.stringify(world)]);
    const waiting = [world];
    // Without another death.
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop())
      for (const follower of next(one)) {
        const isDeath =
          (follower.giver === 'dead' && one.giver !== 'dead') || (follower.taker === 'dead' && one.taker !== 'dead');
        const key = JSON.stringify(follower);
        if (isDeath || reached.has(key)) continue;
        reached.add(key);
        waiting.push(follower);
      }
    const ends = [...reached].map((key) => JSON.parse(key) as World).filter(isAtRest);
    expect(ends.length).toBeGreaterThan(0);
    for (const { giver: gives, taker: takes } of ends) {
      if (takes === 'open') expect(['gone', 'parted', 'dead']).toContain(gives);
      if (gives === 'kept') expect(takes).not.toBe('open');
    }
  }
});

test('ignores what comes too late', () => {
  const gone = new MoveSide<GiverState, GiverEvent>(GIVER, 'gone');
  expect((['accepted', 'refused', 'unknown', 'overdue'] as const).map((event) => gone.on(event))).not.toContain(true);
  const open = new MoveSide<TakerState, TakerEvent>(TAKER, 'open');
  expect((['take', 'keep', 'overdue'] as const).map((event) => open.on(event))).not.toContain(true);
});

test('gives up for a side that has been cut off for too long', () => {
  const given = new MoveSide<GiverState, GiverEvent>(GIVER, 'given');
  expect([given.on('overdue'), given.state]).toEqual([true, 'parted']);
  const holding = new MoveSide<TakerState, TakerEvent>(TAKER, 'holding');
  expect([holding.on('overdue'), holding.state]).toEqual([true, 'dropped']);
});
