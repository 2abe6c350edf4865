/** What goes wrong in a history: crashes, restarts, freezes, splits, slow links and wrong clocks. */
import type { Dice } from './dice.js';
import type { VirtualCluster } from './virtual-cluster.js';
import type { VirtualNode } from './virtual-node.js';

/** Where a fault strikes, and the choices it makes. */
interface Strike {
  readonly cluster: VirtualCluster;
  readonly node: VirtualNode;
  readonly dice: Dice;
}

type Fault = (strike: Strike) => void;

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
function split(strike: Strike, directions: readonly (readonly [string, string])[]): void {
  const { cluster } = strike;
  cluster.wasSplit = true;
  for (const [from, to] of directions) cluster.network.block(from, to);
  later(strike, [500, 30_000], () => {
    cluster.note(`heal ${directions.join(' ')}`);
    for (const [from, to] of directions) cluster.network.unblock(from, to);
  });
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
    const { cluster, node } = strike;
    cluster.world.schedule(node.machine, 0, () => node.host.drain('ordered'));
    later(strike, [500, 20_000], () => {
      cluster.note(`${node.machine.host} undrain`);
      cluster.world.schedule(node.machine, 0, () => node.host.undrain('ordered'));
    });
  },
  evacuate: (strike) => {
    const { cluster, node, dice } = strike;
    cluster.world.schedule(node.machine, 0, () => node.evacuate(dice.between(500, 20_000)));
    later(strike, [500, 20_000], () => {
      cluster.note(`${node.machine.host} undrain`);
      cluster.world.schedule(node.machine, 0, () => {
        node.registry.departures.stop();
        node.host.undrain('ordered');
      });
    });
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
  freeze: (strike) => {
    const { cluster, node } = strike;
    const { machine } = node;
    cluster.world.freeze(machine);
    later(strike, [100, 25_000], () => {
      cluster.note(`${machine.host} thaw`);
      cluster.world.thaw(machine);
    });
  },
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
  // A round trip plus a question to the owner fits into the 500 ms that a home has to decide about an id.
  delay: (strike) => {
    const { network } = strike.cluster;
    const { host } = strike.node.machine;
    const other = otherHost(strike);
    network.delay(host, other, strike.dice.between(20, 100));
    later(strike, [1_000, 20_000], () => network.delay(host, other, 0));
  },
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
  clock: ({ node: { machine }, dice }) => {
    machine.wallOffsetMs += dice.pick([-3_600_000, -1_500, -20, 20, 1_500, 3_600_000]);
  },
};

function otherHost({ cluster, node, dice }: Strike): string {
  return dice.pick(cluster.hosts.filter((each) => each !== node.machine.host));
}

/** Returns the kinds of faults of one history: some have them all, others only a few, or none. */
export function someFaults(dice: Dice): readonly string[] {
  const share = dice.pick([0, 0.3, 0.6, 1]);
  return Object.keys(FAULTS).filter(() => dice.random() < share);
}

/** Triggers one of the faults on one random node, unless that node is already frozen, stopping or draining. */
export function disturb(cluster: VirtualCluster, kinds: readonly string[], dice: Dice): void {
  const [node, kind] = [dice.pick(cluster.nodes), dice.pick(kinds)];
  if (node === undefined || kind === undefined || node.machine.frozen || node.host.draining) return;
  cluster.note(`${node.machine.host} ${kind}`);
  cluster.wasDisturbed = true;
  FAULTS[kind]?.({ cluster, node, dice });
}
