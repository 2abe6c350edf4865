/**
 * `npm run bench:hls -- [--only compose,viewers] [--viewers 500] [--people 4] [--seconds 30] [--json file]`: cost of
 * composing a stream, and of its viewers for the node. Exits with 1 if a target is missed. Needs ffmpeg for the
 * pictures.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { address, startBenchNode, token, type BenchNode } from '../http/node.js';
import { latencyText, type Result, summary, table } from '../http/result.js';
import { provenance } from '../report.js';
import { cpuMicros, rss } from '../sfu/process.js';
import { compositorOf, makeSources, streamedRoom } from './stream.js';
import { type Seen, Viewer } from './viewer.js';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'compose,viewers' },
    viewers: { type: 'string', default: '500' },
    people: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '30' },
    json: { type: 'string' },
  },
});
const seconds = Number(values.seconds);
const MAX_COMPOSE_CORES = 0.6;
const MAX_NODE_CORES = 0.5;
/** Part target of the playlist plus 100 ms. */
const MAX_RELOAD_MS = 334 + 100;

/** Returns the cores that each process uses while `run` runs. */
async function coresOf<P extends string>(
  pids: Readonly<Record<P, number>>,
  run: () => Promise<unknown>,
): Promise<Record<P, number>> {
  const names = Object.keys(pids) as P[];
  const before = names.map((name) => cpuMicros(pids[name]));
  const begun = performance.now();
  await run();
  const elapsedMicros = (performance.now() - begun) * 1_000;
  const cores = names.map((name, i) => [name, (cpuMicros(pids[name]) - before[i]!) / elapsedMicros] as const);

  return Object.fromEntries(cores) as Record<P, number>;
}

async function measureComposing(node: BenchNode): Promise<Result[]> {
  const people = Number(values.people);
  await streamedRoom(node, people);
  const compositor = compositorOf(node.pid);
  await delay(3_000);
  const { cores } = await coresOf({ cores: compositor }, () => delay(Math.min(20, seconds) * 1_000));

  return [
    {
      what: `${people} x 1280x720 and their sound composed at 30 pictures/s`,
      values: { cores, rssBytes: rss(compositor) },
      measured: `${cores.toFixed(2)} cores, ${Math.round(rss(compositor) / 1_048_576)} MB`,
      target: `< ${MAX_COMPOSE_CORES} cores`,
      met: cores < MAX_COMPOSE_CORES,
    },
  ];
}

async function measureViewers(node: BenchNode): Promise<Result[]> {
  const count = Number(values.viewers);
  const roomId = await streamedRoom(node, 1);
  const alone = await coresOf({ node: node.pid }, () => delay(5_000));
  const seen: Seen = { reloads: [], parts: [], bytes: 0, failures: [] };
  const viewers: Viewer[] = [];
  for (let i = 0; i < count; i += 1) {
    viewers.push(new Viewer({ port: node.port, host: address, token, roomId }, seen));
    if (i % 50 === 49) await delay(100);
  }
  await delay(3_000);
  seen.reloads.length = 0;
  seen.parts.length = 0;
  seen.bytes = 0;
  const cores = await coresOf({ node: node.pid, viewers: process.pid }, () => delay(seconds * 1_000));
  const [reloads, parts] = [summary(seen.reloads), summary(seen.parts)];
  const megabits = (seen.bytes * 8) / seconds / 1_000_000;
  await Promise.all(viewers.map((viewer) => viewer.close()));
  const failures = [...new Set(seen.failures)];
  for (const failure of failures.slice(0, 5)) console.error(failure);
  const expected = count * seconds * 3;

  return [
    {
      what: `${count} viewers of one low-latency stream`,
      values: { cores: cores.node, coresWithoutViewers: alone.node, megabits, viewerCores: cores.viewers },
      measured: `${cores.node.toFixed(2)} cores (${alone.node.toFixed(2)} without), ${Math.round(megabits)} Mbit/s`,
      target: `< ${MAX_NODE_CORES} cores`,
      met: cores.node < MAX_NODE_CORES,
    },
    {
      what: 'playlist reload that waits for the next part',
      values: { ...reloads },
      measured: latencyText(reloads),
      target: `p99 < ${MAX_RELOAD_MS} ms, all of ${expected}`,
      met: reloads.p99 < MAX_RELOAD_MS && failures.length === 0 && reloads.count >= 0.98 * expected,
    },
    {
      what: 'part',
      values: { ...parts },
      measured: latencyText(parts),
      target: '-',
      met: parts.count > 0,
    },
  ];
}

const measurements: Record<string, (node: BenchNode) => Promise<Result[]>> = {
  compose: measureComposing,
  viewers: measureViewers,
};

const cores = availableParallelism();
const pinned = cores > 1 && spawnSync('taskset', ['-V']).status === 0;
const results: Result[] = [];
const load = loadavg()[0] ?? 0;
for (const name of values.only.split(',')) {
  const measure = measurements[name];
  if (measure === undefined) {
    console.error(`--only ${name}: unknown, choose from ${Object.keys(measurements).join(', ')}`);
    process.exit(64);
  }
  process.stderr.write(`${name} ...\n`);
  const node = await startBenchNode(undefined);
  makeSources(node.resources, 20 + seconds * 2);
  // The viewers take one core; the node and its compositor have the rest.
  if (pinned) spawnSync('taskset', ['-a', '-c', '-p', String(cores - 1), String(process.pid)]);
  try {
    results.push(...(await measure(node)));
  } catch (error) {
    const ended = node.ended();
    throw ended === undefined ? error : new Error(`the node ended with ${ended}`, { cause: error });
  } finally {
    await node.stop();
    if (pinned) spawnSync('taskset', ['-a', '-c', '-p', `0-${cores - 1}`, String(process.pid)]);
  }
}

const machine = `${cores} cores, viewers ${pinned ? 'on one of them' : 'anywhere'}; other load at the start ${load.toFixed(1)}`;
console.log(`\n${provenance()}\n\n${table(results)}\n\n${machine}`);
if (values.json !== undefined)
  writeFileSync(values.json, `${JSON.stringify({ provenance: provenance(), machine, results }, null, 2)}\n`);
if (results.some(({ met }) => !met)) process.exitCode = 1;
