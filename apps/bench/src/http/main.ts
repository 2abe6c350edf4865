/**
 * `npm run bench:http -- [--only listing,mixed,subscribers] [--seconds 60] [--rooms 2000] [--rate 500] [--json file]`:
 * the HTTP API and the server websocket of one node process, which gets a separate core on a machine with two.
 * `--cluster 5 [--creations 200]` instead measures creations per second through that number of nodes, which share the
 * machine with the client. Exits with 1 if a target is missed.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { provenance } from '../report.js';
import { measureCreations } from './creations.js';
import { measureListing } from './listing.js';
import { measureMixed } from './mixed.js';
import { type BenchNode, startBenchNode } from './node.js';
import { type Result, table } from './result.js';
import { measureSubscribers } from './subscribers.js';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'listing,mixed,subscribers' },
    seconds: { type: 'string', default: '60' },
    rooms: { type: 'string', default: '2000' },
    rate: { type: 'string', default: '500' },
    cluster: { type: 'string' },
    creations: { type: 'string', default: '200' },
    json: { type: 'string' },
  },
});
const seconds = Number(values.seconds);
const eventSeconds = Math.min(20, seconds);
const cores = availableParallelism();
// The node gets one core, this process the others.
const pinned = values.cluster === undefined && cores > 1 && spawnSync('taskset', ['-V']).status === 0;
if (pinned) spawnSync('taskset', ['-a', '-c', '-p', `1-${cores - 1}`, String(process.pid)]);

const measurements: Record<string, readonly ((node: BenchNode) => Promise<Result[]>)[]> = {
  listing: [(node) => measureListing(node, Number(values.rooms))],
  mixed: [(node) => measureMixed(node, { rate: Number(values.rate), seconds })],
  subscribers: [
    (node) => measureSubscribers(node, { subscribers: 1_000, rate: 100, seconds: eventSeconds }),
    (node) => measureSubscribers(node, { subscribers: 100, rate: 1_000, seconds: eventSeconds }),
  ],
};

const results: Result[] = [];
const load = loadavg()[0] ?? 0;
if (values.cluster !== undefined) {
  const options = { nodes: Number(values.cluster), rate: Number(values.creations), seconds: eventSeconds };
  process.stderr.write(`creations through ${options.nodes} nodes ...\n`);
  results.push(...(await measureCreations(options)));
}
for (const name of values.cluster === undefined ? values.only.split(',') : []) {
  const chosen = measurements[name];
  if (chosen === undefined) {
    console.error(`--only ${name}: unknown, choose from ${Object.keys(measurements).join(', ')}`);
    process.exit(64);
  }
  for (const measure of chosen) {
    process.stderr.write(`${name} ...\n`);
    const node = await startBenchNode(pinned ? 0 : undefined);
    try {
      results.push(...(await measure(node)));
    } catch (error) {
      const ended = node.ended();
      throw ended === undefined ? error : new Error(`the node ended with ${ended}`, { cause: error });
    } finally {
      await node.stop();
    }
  }
}

const machine = `${cores} cores, node ${pinned ? 'on one of them' : 'not pinned to one'}; other load at the start ${load.toFixed(1)}`;
console.log(`\n${provenance()}\n\n${table(results)}\n\n${machine}`);
if (values.json !== undefined)
  writeFileSync(values.json, `${JSON.stringify({ provenance: provenance(), machine, results }, null, 2)}\n`);
if (results.some(({ met }) => !met)) process.exitCode = 1;
