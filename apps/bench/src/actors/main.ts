// `npm run bench:actors -- [--package DIR] [--rounds N] [--seconds N]`: cost of a local message, and cost of a trace
// for the node. `--package` loads the actor runtime of another build for comparison in the same run. Exits with status
// 1 if a trace costs the node more than promised.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { ActorRef, ActorSystem, Behaviour, openActorSystem as Open } from '@bloom/actors';
import { silentLog } from '@bloom/log';
import { provenance } from '../report.js';

const { values } = parseArgs({
  options: {
    package: { type: 'string' },
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '12' },
  },
});

type Echo = {
  hit: (message: object) => void;
  ask: (message: { n: number }) => number;
  probe: (message: { at: number }) => void;
  hatch: (message: object) => void;
};

const BURST = 20_000;
const MANY = 1_000;
/** Messages per millisecond of the flood: 100,000 a second. */
const PER_MS = 100;
/** One in this many messages is measured. */
const PROBED = 20;

// Builds up to release 0.2.0 call it `createActorSystem`.
const { createActorSystem, openActorSystem = createActorSystem } = (await import(
  values.package === undefined ? '@bloom/actors' : pathToFileURL(join(values.package, 'dist', 'index.js')).href
)) as { createActorSystem: typeof Open; openActorSystem?: typeof Open };

const latencies: number[] = [];
const echo: Behaviour<Echo, { hits: number }> = {
  kind: 'echo',
  init: () => ({ hits: 0 }),
  handlers: {
    hit: (state) => {
      state.hits++;
    },
    ask: (_state, { n }) => n,
    probe: (_state, { at }) => void latencies.push(performance.now() - at),
    hatch: (_state, _message, context) => {
      for (let i = 0; i < MANY; i++) context.spawn(echo);
    },
  },
};
const mailbox = { limit: 1_000_000 };

/** Returns nanoseconds per message. */
async function burst(system: ActorSystem): Promise<number> {
  const ref = system.spawn(echo, { mailbox });
  const from = performance.now();
  for (let i = 0; i < BURST; i++) system.cast(ref, { type: 'hit' });
  await system.call(ref, { type: 'ask', n: 1 });
  const took = performance.now() - from;
  await system.stop(ref);
  return (took * 1e6) / BURST;
}

async function roundTrip(system: ActorSystem, children = false): Promise<number> {
  const ref = system.spawn(echo);
  if (children) await system.call(ref, { type: 'hatch' });
  const calls = 5_000;
  const from = performance.now();
  for (let n = 0; n < calls; n++) await system.call(ref, { type: 'ask', n });
  const took = performance.now() - from;
  await system.stop(ref);
  return (took * 1e6) / calls;
}

async function spread(system: ActorSystem): Promise<number> {
  const refs = Array.from({ length: MANY }, () => system.spawn(echo));
  const all = async (): Promise<void> => {
    for (const ref of refs) system.cast(ref, { type: 'hit' });
    await system.call(refs.at(-1) as ActorRef<Echo>, { type: 'ask', n: 1 });
  };
  await all();
  const rounds = 20;
  const from = performance.now();
  for (let round = 0; round < rounds; round++) await all();
  const took = performance.now() - from;
  await Promise.all(refs.map((ref) => system.stop(ref)));
  return (took * 1e6) / (MANY * rounds);
}

/** Returns nanoseconds per actor that starts and ends. */
async function creation(system: ActorSystem): Promise<number> {
  const parent = system.spawn(echo);
  const from = performance.now();
  await system.call(parent, { type: 'hatch' });
  await system.stop(parent);
  return ((performance.now() - from) * 1e6) / MANY;
}

interface Flood {
  /** p99 of the time from sending to handling, in ms. */
  p99: number;
  /** p99 of the event loop's delay, in ms: the delay of all other work on the node. */
  loopP99: number;
  sent: number;
}

/** Floods an actor for this long. */
async function flood(system: ActorSystem, ref: ActorRef<Echo>, ms: number): Promise<Flood> {
  latencies.length = 0;
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  const from = performance.now();
  let sent = 0;
  for (let now = from; now - from < ms; now = performance.now()) {
    const due = Math.floor((now - from) * PER_MS);
    for (; sent < due; sent++) {
      if (sent % PROBED === 0) system.cast(ref, { type: 'probe', at: performance.now() });
      else system.cast(ref, { type: 'hit' });
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  await system.call(ref, { type: 'ask', n: 1 });
  loop.disable();
  return { p99: quantile(latencies, 0.99), loopP99: loop.percentile(99) / 1e6, sent };
}

function quantile(numbers: readonly number[], q: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

function compare(what: string, results: Record<'traced' | 'untraced', number[]>, must?: number): void {
  const [traced, untraced] = [quantile(results.traced, 0.5), quantile(results.untraced, 0.5)];
  const ratio = traced / untraced;
  const reached = must === undefined || ratio <= must;
  if (!reached) process.exitCode = 1;
  const verdict = must === undefined ? '' : `${reached ? 'reached' : 'MISSED'} (must ${must})`;
  console.log(
    `| ${what} | ${untraced.toFixed(3)} untraced | ${traced.toFixed(3)} traced | ${ratio.toFixed(2)}x ${verdict} |`,
  );
}

async function dispatch(): Promise<void> {
  const system = openActorSystem({ log: silentLog });
  const measures = {
    'burst to one actor': burst,
    'call and answer': (on: ActorSystem) => roundTrip(on),
    'call and answer of a parent of 1,000': (on: ActorSystem) => roundTrip(on, true),
    'one each to 1,000 actors': spread,
    'start and end, per actor': creation,
  };
  for (const [name, measure] of Object.entries(measures)) {
    await measure(system);
    const results: number[] = [];
    for (let round = 0; round < Number(values.rounds); round++) results.push(await measure(system));
    console.log(`| ${name}, ns | ${quantile(results, 0.5).toFixed(0)} | ${Math.min(...results).toFixed(0)} |`);
  }
  await system.close();
}

/** Alternates half-seconds with and without a trace, so that other load on the machine affects both alike. */
async function trace(): Promise<void> {
  const system = openActorSystem({ log: silentLog });
  const ref = system.spawn(echo, { mailbox });
  await flood(system, ref, 1_000);
  const p99s: Record<'traced' | 'untraced', number[]> = { traced: [], untraced: [] };
  const loops: Record<'traced' | 'untraced', number[]> = { traced: [], untraced: [] };
  let [events, dropped, sent] = [0, 0, 0];
  for (let i = 0; i < Number(values.seconds) * 2; i++) {
    const traced = i % 2 === 0;
    const options = { match: (path: string) => path === ref.path, limit: 1_000_000, withinMs: 60_000 };
    const running = traced ? system.trace(options, () => {}) : undefined;
    const result = await flood(system, ref, 500);
    running?.stop();
    p99s[traced ? 'traced' : 'untraced'].push(result.p99);
    loops[traced ? 'traced' : 'untraced'].push(result.loopP99);
    events += running?.events ?? 0;
    dropped += running?.dropped ?? 0;
    if (traced) sent += result.sent;
  }
  compare("the node's event loop, p99 at 100,000 messages/s to one actor, ms", loops, 1.1);
  compare('from sending to handling in that actor, p99, ms', p99s);
  console.log(`| of ${sent} messages | ${events} shown | ${dropped} counted as dropped |`);
  await system.close();
}

console.log(`${provenance()}\n`);
console.log('| measure | median | best |\n|---|---|---|');
await dispatch();
if (values.package === undefined) await trace();
