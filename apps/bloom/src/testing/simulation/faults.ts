/** What goes wrong in a history: crashes, restarts, freezes, splits, slow links and wrong clocks. */
import type { Dice } from './dice.js';
import { babble } from './garbage.js';
import { orderDrain, withdrawDrain } from './operators.js';
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';

/** Where a fault strikes, and the choices it makes. */
interface Strike {
  readonly cluster: VirtualCluster;
  readonly node: VirtualNode;
  readonly dice: Dice;
}

type Fault = (strike: Strike) => void;

/** How long the home of an id may need to decide about it; it is skipped afterwards. */
const CLAIM_MS = 500;

/** Runs `end`, on no machine, after a random time in the given range. */
function later({ cluster: { world }, dice }: Strike, [low, high]: readonly [number, number], end: () => void): void {
  world.schedule(world.outside, dice.between(low, high), end);
}

function restart(strike: Strike): void {
  const { cluster } = strike;
  const { host } = strike.node.machine;
  later(strike, [500, 15_000], () => {
    if (cluster.node(host) === undefined) cluster.boot(host);
  });
}

/** Loses everything in the given directions for a while. */
function split(
  strike: Strike,
  directions: readonly (readonly [string, string])[],
  ms: readonly [number, number] = [500, 30_000],
): void {
  const { cluster } = strike;
  cluster.wasSplit = true;
  for (const [from, to] of directions) cluster.network.block(from, to);
  later(strike, ms, () => {
    cluster.note(`heal ${directions.join(' ')}`);
    for (const [from, to] of directions) cluster.network.unblock(from, to);
  });
}

function freeze(strike: Strike, { machine }: VirtualNode, ms: readonly [number, number]): void {
  const { cluster } = strike;
  cluster.note(`${machine.host} freezes`);
  if (ms[1] > CLAIM_MS && cluster.nodes.some((other) => other.machine.frozen)) cluster.wasStalled = true;
  cluster.world.freeze(machine);
  later(strike, ms, () => {
    cluster.note(`${machine.host} thaw`);
    cluster.world.thaw(machine);
  });
}

/** Slows a link. A home must still be able to decide about an id, after questions to two owners, within 500 ms. */
function delay(strike: Strike, [from, to]: readonly [string, string], [low, high]: readonly [number, number]): void {
  const { network } = strike.cluster;
  network.delay(from, to, strike.dice.between(low, high));
  later(strike, [1_000, 20_000], () => network.delay(from, to, 0));
}

const FAULTS: Readonly<Record<string, Fault>> = {
  crash: (strike) => {
    strike.cluster.kill(strike.node, true);
    restart(strike);
  },
  powerLoss: (strike) => {
    strike.cluster.kill(strike.node, false);
    restart(strike);
  },
  stop: (strike) => {
    const { cluster, node } = strike;
    cluster.world.schedule(node.machine, 0, () => void node.stop());
    later(strike, [5_000, 6_000], () => {
      cluster.kill(node, true);
      restart(strike);
    });
  },
  drain: (strike) => {
    orderDrain(strike);
    later(strike, [500, 20_000], () => withdrawDrain(strike));
  },
  evacuate: (strike) => {
    const { cluster, node, dice } = strike;
    for (const told of cluster.onEvacuation) told(node);
    orderDrain(strike, Math.ceil(dice.between(0.5, 20)));
    later(strike, [500, 20_000], () => withdrawDrain(strike));
  },
  /** Something else goes wrong within the milliseconds that a move takes, with either of its nodes. */
  badEvacuation: (strike) => {
    const { cluster, node, dice } = strike;
    FAULTS['evacuate']?.(strike);
    const kind = dice.pick(['crash', 'powerLoss', 'stop', 'freeze', 'partition', 'halfOpen', 'reset']);
    const victim = dice.pick([node, dice.pick(cluster.nodes)]);
    later(strike, [0, 40], () => {
      if (!victim.machine.alive || victim.machine.frozen || victim.isStopping) return;
      cluster.note(`${victim.machine.host} ${kind}`);
      FAULTS[kind]?.({ cluster, node: victim, dice });
    });
  },
  /** The node stops as soon as it has given a room away, to nodes that stall and have slow links. */
  hastyStop: (strike) => {
    const { cluster, node, dice } = strike;
    const { world } = cluster;
    for (const from of cluster.hosts) for (const to of cluster.hosts) delay(strike, [from, to], [20, 60]);
    const rooms = node.host.roomIds();
    FAULTS['evacuate']?.(strike);
    const until = world.nowMs + 1_000;
    const watch = (): void => {
      if (!node.machine.alive || node.machine.frozen || node.isStopping || world.nowMs > until) return;
      if (!rooms.some((roomId) => node.relays(roomId))) return void world.schedule(world.outside, 5, watch);
      cluster.note(`${node.machine.host} stop`);
      FAULTS['stop']?.(strike);
      for (const other of cluster.nodes)
        if (other !== node && !other.machine.frozen && dice.random() < 0.7) freeze(strike, other, [1, 250]);
    };
    watch();
  },
  /** The node that gives its rooms away, or another one, is cut off from all or one for longer than a move waits. */
  longCut: (strike) => {
    const { cluster, node, dice } = strike;
    FAULTS['evacuate']?.(strike);
    const { host } = dice.pick([node, dice.pick(cluster.nodes)]).machine;
    const others = cluster.hosts.filter((each) => each !== host);
    const away = dice.pick([others, [dice.pick(others)]]);
    later(strike, [0, 40], () => {
      cluster.note(`${host} cut off from ${away.join()}`);
      cluster.wasCut = true;
      split(
        strike,
        away.flatMap((each) => [[host, each] as const, [each, host] as const]),
        [72_000, 80_000],
      );
    });
  },
  freeze: (strike) => freeze(strike, strike.node, [100, 25_000]),
  partition: (strike) => {
    const { cluster, node, dice } = strike;
    const { host } = node.machine;
    const others = cluster.hosts.filter((other) => other !== host);
    const away = others.filter(() => dice.random() < 0.5);
    const here = [host, ...others.filter((other) => !away.includes(other))];
    split(
      strike,
      here.flatMap((a) => away.flatMap((b) => [[a, b] as const, [b, a] as const])),
    );
  },
  halfOpen: (strike) => split(strike, [[strike.node.machine.host, otherHost(strike)]]),
  reset: (strike) => strike.cluster.network.reset(strike.node.machine.host, otherHost(strike)),
  delay: (strike) => delay(strike, [strike.node.machine.host, otherHost(strike)], [20, 100]),
  mapper: (strike) => {
    const { network } = strike.cluster;
    const { host } = strike.node.machine;
    network.map(host, false);
    later(strike, [500, 20_000], () => network.map(host, true));
  },
  dns: (strike) => {
    const { network } = strike.cluster;
    const { host } = strike.node.machine;
    network.misname(host, otherHost(strike));
    later(strike, [500, 20_000], () => network.misname(host, undefined));
  },
  /** Its event loop is slow. */
  busy: (strike) => {
    const { machine } = strike.node;
    machine.slowMs = strike.dice.between(0.5, 3);
    later(strike, [500, 10_000], () => {
      machine.slowMs = 0;
    });
  },
  /** A process with another cookie dials every node. */
  stranger: (strike) => later(strike, [1_000, 20_000], strike.cluster.visit()),
  /** The node sends garbage to others, and messages in the name of others. */
  garbage: (strike) => {
    const { cluster, node, dice } = strike;
    for (let count = 0; count < 40; count += 1)
      later(strike, [0, 5_000], () => {
        const others = cluster.nodes.filter((other) => other !== node);
        cluster.world.schedule(node.machine, 0, () => babble(node, others, dice));
      });
  },
  clock: ({ node: { machine }, dice }) => {
    machine.wallOffsetMs += dice.pick([-3_600_000, -1_500, -20, 20, 1_500, 3_600_000]);
  },
};

/** Names of all kinds of faults. */
export const KINDS: readonly string[] = Object.keys(FAULTS);

function otherHost({ cluster, node, dice }: Strike): string {
  return dice.pick(cluster.hosts.filter((each) => each !== node.machine.host));
}

/** Returns the kinds of faults of one history: some have them all, others only a few, or none. */
export function someFaults(dice: Dice): readonly string[] {
  const share = dice.pick([0, 0.3, 0.3, 0.3, 0.6, 0.6, 1, 1]);
  return KINDS.filter(() => dice.random() < share);
}

/** Triggers one of the faults on a random node that is not frozen, stopping or draining already. */
export function disturb(cluster: VirtualCluster, kinds: readonly string[], dice: Dice): void {
  const well = cluster.nodes.filter(({ machine, host }) => !machine.frozen && !host.draining);
  const [node, kind] = [dice.pick(well), dice.pick(kinds)];
  if (node === undefined || kind === undefined) return;
  cluster.note(`${node.machine.host} ${kind}`);
  cluster.wasDisturbed = true;
  cluster.faults += 1;
  FAULTS[kind]?.({ cluster, node, dice });
}
