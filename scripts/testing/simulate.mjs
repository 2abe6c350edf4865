// `npm run simulate`: runs histories of simulated clusters on every core (docs/reference/simulation.md). A history that
// breaks a rule ends the run: it is shortened as far as the rule stays broken, and printed.
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundle, isFresh } from '../build/bundling.mjs';
import { root } from '../setup.mjs';
import { numberOf } from './arguments.mjs';

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
const hasStandbys = values.standby;
const nodes = values.nodes === undefined ? undefined : numberOf('nodes', values.nodes, [2, 20]);

const faults = values.faults?.split(',');

/** Leaves out the suites that `testing` folders share: they import jest, which refuses to run here. */
const withoutJest = {
  name: 'without-jest',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^@jest\/globals$/ }, ({ path }) => ({ path, external: true, sideEffects: false })),
};

const outdir = join('apps', 'bloom', 'dist', 'simulation');
const program = join(root, outdir, 'worker.js');
if (!isFresh(outdir))
  await bundle({
    script: import.meta.url,
    outdir,
    entryPoints: ['apps/bloom/src/testing/simulation/worker.ts'],
    plugins: [withoutJest],
  });

const startMs = performance.now();
let [done, turns, next] = [0, 0, first];
const perMinute = () => Math.round((done * 60_000) / (performance.now() - startMs));

function showProgress(text) {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${text}`);
}

/** Gives a worker a seed and resolves with its history. */
function run(worker, order) {
  return new Promise((resolve, reject) => {
    const take = (report) => {
      if ('moves' in report) return showProgress(`shortening: ${report.moves} moves are left`);
      worker.off('message', take).off('exit', fail);
      return resolve(report.history);
    };
    const fail = (code) => reject(new Error(`the worker of seed ${order.seed} ended with ${code}`));
    worker.on('message', take).on('exit', fail);
    worker.send(order);
  });
}

async function work(worker) {
  while (next < first + count) {
    const seed = next++;
    const history = await run(worker, { seed, nodes, hasStandbys, faults, shrinks: false });
    done += 1;
    turns += history.turns;
    showProgress(
      `${'#'.repeat(Math.floor((30 * done) / count)).padEnd(30, '.')} ${done} of ${count}, ${perMinute()} a minute`,
    );
    if (history.violations.length > 0) return seed;
  }
  return undefined;
}

console.log(`${count} histories from seed ${first}`);
const workers = Array.from({ length: Math.min(count, availableParallelism()) }, () => fork(program));
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
showProgress('');
if (seed === undefined) console.log(`${done} histories of ${turns} turns, ${perMinute()} a minute: no rule was broken`);
else {
  const { plan, hash, lines, violations } = await run(workers[0], { seed, nodes, hasStandbys, faults, shrinks: true });
  showProgress('');
  console.log(
    [...lines, '', `seed ${seed} breaks a rule with ${plan.moves.length} moves (history ${hash}):`].join('\n'),
  );
  for (const violation of violations) console.log(`  ${violation}`);
  const size = nodes === undefined ? '' : ` --nodes ${nodes}`;
  const standby = hasStandbys ? ' --standby' : '';
  const kinds = faults === undefined ? '' : ` --faults ${faults.join()}`;
  console.log(`npm run simulate -- --seeds 1 --seed ${seed}${size}${standby}${kinds}`);
  process.exitCode = 1;
}
for (const worker of workers) worker.disconnect();
