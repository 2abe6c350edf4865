// `npm run chaos`: real nodes under random faults (docs/reference/simulation.md). Needs root on Linux.
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { bundle, isFresh } from '../build/bundling.mjs';
import { root, setUp } from '../setup.mjs';
import { numberOf } from './arguments.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    nodes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    timeline: { type: 'string', default: 'chaos.log' },
  },
});
const minutes = numberOf('minutes', values.minutes, [1, 10_000]);
const nodes = numberOf('nodes', values.nodes, [3, 9]);
const seed = numberOf('seed', values.seed, [0, 2 ** 32 - 1]);

setUp();
// Two folders below the root, like the sources: they find the repository from where they are.
const outdir = join('e2e', 'dist');
if (!isFresh(outdir))
  await bundle({
    script: import.meta.url,
    outdir,
    entryPoints: ['e2e/chaos/main.ts'],
    external: ['@jest/globals'],
  });

console.log(`chaos on ${nodes} nodes for ${minutes} min from the first fault, seed ${seed}`);
const child = spawn(
  process.execPath,
  [join(root, outdir, 'main.js'), ...[minutes, nodes, seed].map(String), resolve(values.timeline)],
  { stdio: 'inherit' },
);
child.on('exit', (code) => (process.exitCode = code ?? 1));
