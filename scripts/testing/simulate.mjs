// `npm run simulate`: runs histories of simulated clusters on every core (docs/reference/simulation.md). A history that
// breaks a rule ends the run: it is shortened as far as the rule stays broken, and printed.
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundle, isFresh } from '../build/bundling.mjs';
import { root, setUp } from '../setup.mjs';
import { numberOf } from './arguments.mjs';
import { GARBAGE_COLLECTION } from './jest.mjs';
import { argumentsFor, progressBar, progressOf } from './simulation-progress.mjs';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    seed: { type: 'string' },
    nodes: { type: 'string' },
    standby: { type: 'boolean', default: false },
    faults: { type: 'string' },
  },
});

const count = numberOf('seeds', values.seeds ?? '1000', [1, 10_000_000]);
const first = numberOf('seed', values.seed ?? String(randomInt(2 ** 31)), [0, 2 ** 32 - 1]);
/** What every history of this run has in common. */
const settings = {
  nodes: values.nodes === undefined ? undefined : numberOf('nodes', values.nodes, [2, 20]),
  hasStandbys: values.standby,
  faults: values.faults?.split(','),
};

/** Leaves out the suites that `testing` folders share: they import jest, which refuses to run here. */
const withoutJest = {
  name: 'without-jest',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^@jest\/globals$/ }, ({ path }) => ({ path, external: true, sideEffects: false })),
};

// The bundle is made of what the compiler writes.
setUp();
const outdir = join('apps', 'bloom', 'dist', 'simulation');
const program = join(root, outdir, 'worker.js');
if (!isFresh(outdir))
  await bundle({
    script: import.meta.url,
    outdir,
    entryPoints: ['apps/bloom/src/testing/simulation/worker.ts'],
    plugins: [withoutJest],
  });

/** Interval of the progress where it is not shown on a terminal. */
const REPORT_MS = 60_000;
/** Real time after which a history is named: a task that never gives way cannot be ended by counting tasks. */
const SLOW_MS = 120_000;

const startMs = performance.now();
const running = new Set();
let [done, turns, next, reportedMs] = [0, 0, first, startMs];
const soFar = () => ({ done, count, ms: performance.now() - startMs });

function showLine(text) {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${text}`);
}

function showProgress() {
  if (process.stdout.isTTY) return showLine(progressBar(soFar()));
  if (performance.now() - reportedMs < REPORT_MS) return undefined;
  reportedMs = performance.now();
  return console.log(progressOf(soFar()));
}

/** Gives a worker a seed and resolves with its history. */
function run(worker, order) {
  return new Promise((resolve, reject) => {
    const take = (report) => {
      if ('moves' in report) return showLine(`shortening: ${report.moves} moves are left`);
      end();
      return resolve(report.history);
    };
    const replay = argumentsFor(settings, { seed: order.seed, seeds: 1 });
    const fail = (why) => {
      end();
      reject(new Error(`the worker of seed ${order.seed} ended with ${why}: ${replay}`));
    };
    const late = () => console.log(`seed ${order.seed} has run for ${SLOW_MS / 1_000} s: ${replay}`);
    const timer = order.shrinks ? undefined : setTimeout(late, SLOW_MS);
    const end = () => {
      clearTimeout(timer);
      worker.off('message', take).off('exit', fail);
    };
    worker.on('message', take).on('exit', fail);
    worker.send(order);
  });
}

async function work(worker) {
  while (next < first + count) {
    const seed = next++;
    running.add(seed);
    const history = await run(worker, { ...settings, seed, shrinks: false });
    running.delete(seed);
    done += 1;
    turns += history.turns;
    showProgress();
    const [violation] = history.violations;
    if (violation === undefined) continue;
    showLine('');
    // Shortening takes a while, and may be interrupted.
    console.log(`seed ${seed} breaks a rule: ${violation}\n${argumentsFor(settings, { seed, seeds: 1 })}`);
    return seed;
  }
  return undefined;
}

/** Says how to go on with the seeds that have not run. */
process.once('SIGINT', () => {
  showLine('');
  const seed = Math.min(next, ...running);
  const rest = argumentsFor(settings, { seed, seeds: Math.max(1, first + count - seed) });
  console.log(`stopped: ${progressOf(soFar())}, no rule was broken. To go on: ${rest}`);
  process.exit(130);
});

const workers = Array.from({ length: Math.min(count, availableParallelism()) }, () =>
  fork(program, { execArgv: GARBAGE_COLLECTION }),
);
console.log(`${count} histories from seed ${first} in ${workers.length} processes`);
const broken = (
  await Promise.all(
    workers.map(async (worker) => {
      const seed = await work(worker);
      // The others stop after their current history.
      if (seed !== undefined) next = first + count;
      return seed;
    }),
  )
).filter((seed) => seed !== undefined);
const [seed] = broken.toSorted((a, b) => a - b);
showLine('');
if (seed === undefined) console.log(`${progressOf(soFar())}, ${turns} turns: no rule was broken`);
else {
  const { plan, hash, lines, violations } = await run(workers[0], { ...settings, seed, shrinks: true });
  showLine('');
  console.log(
    [...lines, '', `seed ${seed} breaks a rule with ${plan.moves.length} moves (history ${hash}):`].join('\n'),
  );
  for (const violation of violations) console.log(`  ${violation}`);
  console.log(argumentsFor(settings, { seed, seeds: 1 }));
  process.exitCode = 1;
}
for (const worker of workers) worker.disconnect();
