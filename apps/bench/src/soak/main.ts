/**
 * `npm run bench:soak -- [--minutes 5] [--subscribers 40] [--pps 1000] [--json file]`: one room under steady load (by
 * default about 40 % of a core) for minutes or hours. Exits with status 1 if memory grows by more than 5 % or the 99th
 * percentile of a thread's event-loop delay reaches 20 ms. Memory means heaps and buffers after a collection, which is
 * forced after the warm-up and at the end; runs of an hour also compare resident memory of the last quarter with the
 * second, since V8 takes many minutes to fill its pages. An idle process is measured beside the server: if it is late
 * too, the machine is too busy for a verdict, and a warning is printed.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { HeapReports } from '../load/heap-reports.js';
import { Publisher } from '@bloom/participant';
import { connection } from '../sfu/client.js';
import { provenance } from '../report.js';
import { median, quantile } from '../sfu/measure.js';
import { enterPrivateNetwork } from '../sfu/private-network.js';
import { cpuMicros, rss, NODE_FLAGS } from '../sfu/process.js';
import { bloom } from '../sfu/servers/bloom.js';
import { Sink } from '../sfu/sink.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    subscribers: { type: 'string', default: '40' },
    pps: { type: 'string', default: '1000' },
    json: { type: 'string' },
  },
});
enterPrivateNetwork();

const MEMORY_BOUND = 0.05;
const DELAY_BOUND_MS = 20;
const SAMPLE_MS = 5000;
const MINUTES_TO_JUDGE_RESIDENT = 60;
const samples = Math.max(12, Math.round((Number(values.minutes) * 60_000) / SAMPLE_MS));
/** Samples omitted at the start, while code is compiled and memory pools are filled. */
const warmUp = Math.max(4, Math.min(24, Math.floor(samples / 5)));
const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

const folder = mkdtempSync(join(tmpdir(), 'bloom-soak-'));
const idleFolder = mkdtempSync(join(tmpdir(), 'bloom-soak-idle-'));
const preloadFor = (to: string) =>
  `--import=${new URL(`./loop-delay.js?folder=${encodeURIComponent(to)}`, import.meta.url).href}`;
const idle = spawn(process.execPath, [preloadFor(idleFolder), '-e', 'setInterval(() => {}, 1000)'], {
  stdio: 'ignore',
});
const reports = new HeapReports();
const server = await bloom({
  workers: 1,
  nodeFlags: [...NODE_FLAGS, preloadFor(folder), ...reports.nodeFlags],
}).start('video');
const publisher = new Publisher('video', 1200);
const connections = [connection()];
const memory: number[] = [];
const shares: number[] = [];
let sink: Sink | undefined;
try {
  await server.publish(connections[0]!, publisher);
  publisher.start(30);
  for (let joined = 0; joined < Number(values.subscribers); joined += 1) {
    const receiver = connection();
    connections.push(receiver);
    await server.subscribe(receiver);
  }
  sink = new Sink(connections.slice(1));
  publisher.start(Number(values.pps));
  let from = { cpu: cpuMicros(server.pid), at: performance.now() };
  let packets = 0;
  let sent = 0;
  let heapMiB = Number.NaN;
  for (let sample = 0; sample < samples; sample += 1) {
    await sleep(SAMPLE_MS);
    const now = { cpu: cpuMicros(server.pid), at: performance.now() };
    memory.push(rss(server.pid) / 1024 / 1024);
    shares.push((now.cpu - from.cpu) / ((now.at - from.at) * 1000));
    from = now;
    if (sample + 1 === warmUp) {
      heapMiB = await reports.read(server.pid);
      [packets, sent] = [sink.packets, publisher.sent];
    }
    process.stderr.write(
      `${((sample + 1) * SAMPLE_MS) / 1000} s: ${memory.at(-1)?.toFixed(1)} MiB, ${shares.at(-1)?.toFixed(2)} cores\n`,
    );
  }
  const delivered = (sink.packets - packets) / ((publisher.sent - sent) * Number(values.subscribers));
  const heapAtEndMiB = await reports.read(server.pid);
  const steady = memory.slice(warmUp);
  const quarter = Math.max(1, Math.floor(steady.length / 4));
  const minutes = (samples * SAMPLE_MS) / 60_000;
  const resident = median(steady.slice(-quarter)) / median(steady.slice(quarter, 2 * quarter)) - 1;
  const held = heapAtEndMiB / heapMiB - 1;
  const threads = delaysIn(folder);
  const idleP99Ms = delaysIn(idleFolder)[0]?.p99Ms ?? Number.NaN;
  const result = {
    provenance: provenance(),
    minutes,
    cores: median(shares.slice(warmUp)),
    delivered,
    invalid: sink.invalid,
    residentMiB: median(steady),
    residentGrowthPercent: resident * 100,
    afterCollectionMiB: [heapMiB, heapAtEndMiB],
    afterCollectionGrowthPercent: held * 100,
    threads,
    idleP99Ms,
  };
  console.log(JSON.stringify(result, null, 2));
  if (values.json) writeFileSync(values.json, `${JSON.stringify({ ...result, memory, shares }, null, 2)}\n`);
  const slow = threads.filter(({ p99Ms }) => !(p99Ms < DELAY_BOUND_MS));
  const tooBusy = idleP99Ms >= DELAY_BOUND_MS / 2;
  const grown = [
    { what: 'what heaps and buffers hold', growth: held },
    ...(minutes < MINUTES_TO_JUDGE_RESIDENT ? [] : [{ what: 'resident memory', growth: resident }]),
  ].filter(({ growth }) => !(growth <= MEMORY_BOUND));
  for (const { what, growth } of grown) console.error(`*** ${what} grew by ${(growth * 100).toFixed(1)} %`);
  for (const { thread, p99Ms } of slow)
    console.error(`*** ${thread}: p99 of the event-loop delay ${p99Ms.toFixed(1)} ms`);
  if (tooBusy) console.error(`*** NOT JUDGED: an idle process beside it was ${idleP99Ms.toFixed(1)} ms late as well`);
  process.exitCode = grown.length > 0 || (slow.length > 0 && !tooBusy) ? 1 : 0;
} finally {
  publisher.stop();
  await sink?.close();
  for (const pc of connections) await pc.close();
  await server.close();
  reports.close();
  idle.kill();
  for (const each of [folder, idleFolder]) rmSync(each, { recursive: true, force: true });
}
process.exit();

/** Returns the medians and maxima of each thread's 5-second percentiles, after the warm-up. */
function delaysIn(from: string): { thread: string; p99Ms: number; worstP99Ms: number }[] {
  return readdirSync(from).map((name) => {
    const lines = readFileSync(join(from, name), 'utf8').trim().split('\n').slice(warmUp);
    const p99s = lines.map((line) => Number(line.split(' ')[0]));
    return { thread: name, p99Ms: median(p99s), worstP99Ms: quantile(p99s, 1) };
  });
}
