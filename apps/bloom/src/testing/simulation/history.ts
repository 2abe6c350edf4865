/** One history of a simulated cluster. The seed determines its clients, its faults and everything else. */
import { Dice } from './dice.js';
import { disturb, someFaults } from './faults.js';
import { checkMemory, closeAll } from './leftovers.js';
import { People } from './people.js';
import type { PlantedFault } from './planted-faults.js';
import { Requests } from './requests.js';
import { VirtualCluster } from './virtual-cluster.js';
import { EndlessHistory } from './virtual-world.js';

/** Period in which faults begin. The last ones end within 30 s. */
const TROUBLE_MS = 60_000;
/** Dead links are detected within 10 s, and dials are repeated at least every 15 s. */
const HEALING_MS = 75_000;
const START_MS = 3_000;
/** Ranges of the time between two faults. Only the slow pace leaves a standby the time in which it has to take over. */
const PACES = [
  [1_000, 10_000],
  [300, 3_000],
] as const;

/** Something that a client does or that goes wrong. Its own seed decides about its details. */
export interface Move {
  readonly atMs: number;
  readonly what: 'request' | 'person' | 'fault';
  readonly seed: number;
}

/** A history before it has run. Without some of its moves it is another one, which may break the same rule. */
export interface Plan {
  readonly seed: number;
  /** Number of hosts; drawn by the seed if undefined. */
  readonly nodes?: number | undefined;
  readonly faults: readonly string[];
  /** Rooms have standbys. */
  readonly hasStandbys?: boolean | undefined;
  /** Most tasks; a history that needs more breaks a rule. Default: far more than any needs. */
  readonly maxTurns?: number | undefined;
  readonly moves: readonly Move[];
}

export interface History {
  readonly plan: Plan;
  readonly hash: string;
  readonly lines: readonly string[];
  readonly violations: readonly string[];
  readonly turns: number;
}

export function planHistory(seed: number, nodes?: number, hasStandbys?: boolean): Plan {
  const dice = new Dice(seed ^ 0x5eed);
  const moves: Move[] = [];
  const repeat = (what: Move['what'], untilMs: number, [low, high]: readonly [number, number]): void => {
    for (let atMs = dice.between(low, high); atMs < untilMs; atMs += dice.between(low, high))
      moves.push({ atMs, what, seed: dice.word() });
  };
  const faults = someFaults(dice);
  repeat('request', TROUBLE_MS + 30_000, [10, 1_500]);
  repeat('person', TROUBLE_MS + 30_000, [10, 3_000]);
  repeat('fault', TROUBLE_MS, dice.pick(PACES));
  return { seed, nodes, faults, hasStandbys, moves: moves.toSorted((a, b) => a.atMs - b.atMs) };
}

/** Runs a history, with a fault in every node if one is given. Equal plans give equal histories. */
export async function runHistory(plan: Plan, fault?: PlantedFault): Promise<History> {
  const cluster = new VirtualCluster({ ...plan, fault });
  const { world } = cluster;
  const requests = new Requests(cluster);
  const people = new People(cluster);
  const run: Readonly<Record<Move['what'], (dice: Dice) => void>> = {
    request: (dice) => requests.ask(dice),
    person: (dice) => people.act(dice),
    fault: (dice) => disturb(cluster, plan.faults, dice),
  };
  for (const { atMs, what, seed } of plan.moves)
    world.schedule(world.outside, START_MS + atMs, () => run[what](new Dice(seed)));
  try {
    await world.run(START_MS + TROUBLE_MS + 30_000 + HEALING_MS);
    await requests.end();
    checkMemory(cluster);
    await closeAll(cluster);
  } catch (error) {
    if (!(error instanceof EndlessHistory)) throw error;
    cluster.broken(error.message);
  }
  cluster.end();
  const { hash, lines, violations } = cluster;

  return { plan, hash, lines, violations, turns: world.turns };
}
