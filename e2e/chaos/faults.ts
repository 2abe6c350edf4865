// What goes wrong in a run of chaos: the faults of the simulation, as far as one machine can make them.
import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../cluster/until.js';
import { commandOf } from '../harness/processes.js';
import type { Random } from '../hostile/harness/random.js';
import type { Subject } from './subject.js';

/** A fault of one node, from its begin to its end. */
interface Strike {
  readonly subject: Subject;
  /** A node whose connection to the first one may suffer too. */
  readonly other: Subject;
  /** Returns a random time, in ms. */
  between(low: number, high: number): number;
}

async function restart({ node }: Subject): Promise<void> {
  node.start();
  await until(`${node.name} answers again`, async () => (await node.distribution()) !== undefined);
}

/** Applies a rule of iptables to what arrives at a node, for a time. */
async function filtered({ node: { host } }: Subject, rule: readonly string[], ms: number): Promise<void> {
  const [command = '', ...inside] = host.commandOf('iptables');
  execFileSync(command, [...inside, '-I', 'INPUT', ...rule]);
  await delay(ms);
  execFileSync(command, [...inside, '-D', 'INPUT', ...rule]);
}

const FAULTS = {
  crash: async ({ subject, between }) => {
    await subject.node.kill();
    subject.process += 1;
    await delay(between(500, 15_000));
    await restart(subject);
  },
  stop: async ({ subject }) => {
    await subject.node.stop();
    subject.process += 1;
    await restart(subject);
  },
  drain: async ({ subject: { node }, between }) => {
    await node.api.request('POST', '/node/drain', {});
    await delay(between(500, 20_000));
    await node.api.request('DELETE', '/node/drain');
  },
  freeze: async ({ subject: { node }, between }) => {
    node.freeze();
    await delay(between(100, 20_000));
    node.thaw();
  },
  unplug: async ({ subject: { node }, between }) => {
    node.host.linkDown();
    await delay(between(500, 20_000));
    node.host.linkUp();
  },
  halfOpen: ({ subject, other, between }) =>
    filtered(subject, ['-s', other.node.host.address, '-j', 'DROP'], between(500, 20_000)),
  loss: ({ subject, between }) =>
    filtered(
      subject,
      ['-m', 'statistic', '--mode', 'random', '--probability', '0.03', '-j', 'DROP'],
      between(500, 20_000),
    ),
  reset: ({ subject, other }) =>
    filtered(subject, ['-s', other.node.host.address, '-p', 'tcp', '-j', 'REJECT', '--reject-with', 'tcp-reset'], 300),
  mapperCrash: async ({ subject: { node } }) => {
    for (const pid of node.host.pids()) if (commandOf(pid).includes('port-mapper')) process.kill(pid, 'SIGKILL');
  },
} satisfies Readonly<Record<string, (strike: Strike) => Promise<void>>>;

/** Faults that trouble a second node too. */
const PAIRS: ReadonlySet<string> = new Set(['halfOpen', 'reset']);

const KINDS = Object.keys(FAULTS) as (keyof typeof FAULTS)[];

export interface Disturbance {
  readonly kind: string;
  readonly troubled: readonly Subject[];
  /** Runs the fault; resolves when it has ended. */
  run(): Promise<void>;
}

/** Returns a random fault of a node without one, or undefined if every node has one. */
export function nextFault(subjects: readonly Subject[], random: Random): Disturbance | undefined {
  const well = subjects.filter(({ isTroubled }) => !isTroubled);
  const kind = random.pick(KINDS);
  const subject = random.pick(well);
  const other = random.pick(well.filter((each) => each !== subject));
  if (subject === undefined || other === undefined) return undefined;
  const between = (low: number, high: number): number => low + random.next() * (high - low);

  return {
    kind,
    troubled: PAIRS.has(kind) ? [subject, other] : [subject],
    run: () => FAULTS[kind]({ subject, other, between }),
  };
}
