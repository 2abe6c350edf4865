/* oxlint-disable unicorn/require-post-message-target-origin -- a port of a thread has none */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { printTable, printVerdict } from '../report.js';
import { quantile } from '../sfu/measure.js';
import { bloom } from '../sfu/servers/bloom.js';
import { figuresAt, row } from './figures.js';
import type { CrowdOptions } from './crowd.js';
import { Rooms, type Shape } from './rooms.js';

const JOINS_PER_SECOND = 5;

/** Measures latency and the lateness of each thread at half a core of media, first alone, then with joining clients. */
export async function joining(shape: Shape, nodeFlags: string[], packetsPerSecondOut: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-joining-'));
  const preload = new URL(`../soak/loop-delay.js?folder=${encodeURIComponent(folder)}`, import.meta.url).href;
  const server = await bloom({ workers: 1, nodeFlags: [...nodeFlags, `--import=${preload}`] }).start(shape.kind);
  const rooms = new Rooms(server, shape);
  try {
    await rooms.open();
    const steady = await figuresAt(rooms, packetsPerSecondOut, { warmUpMs: 6000, windows: 5 });
    const lines = () => readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'));
    const before = lines().map((each) => each.length);
    const crowd = new Worker(new URL('./crowd.js', import.meta.url), {
      workerData: { port: server.port, roomId: server.room(), joinsPerSecond: JOINS_PER_SECOND } satisfies CrowdOptions,
    });
    const from = performance.now();
    const busy = await figuresAt(rooms, packetsPerSecondOut, { warmUpMs: 2000, windows: 10 });
    const elapsedSeconds = (performance.now() - from) / 1000;
    const answer = once(crowd, 'message') as Promise<[number]>;
    crowd.postMessage('stop');
    const rate = (await answer)[0] / elapsedSeconds;
    await crowd.terminate();
    printTable(`latency at ${packetsPerSecondOut} packets/s out, alone and with joins`, [
      { load: 'media alone', ...row(steady) },
      { load: `and ${rate.toFixed(1)} joins/s`, ...row(busy) },
    ]);
    printVerdict('added latency alone, p50', steady.p50Ms, { must: 0.6, aim: 0.4, unit: ' ms' });
    printVerdict('added latency alone, p99', steady.p99Ms, { must: 5, aim: 2, unit: ' ms' });
    readdirSync(folder).forEach((name, thread) => {
      const p99s = (lines()[thread] ?? []).map((line) => Number(line.split(' ')[0]));
      const ms = (values: number[], q: number) => quantile(values, q).toFixed(1);
      const [alone, crowded] = [p99s.slice(1, before[thread]), p99s.slice(before[thread])];
      console.log(
        `${name}: p99 of the event-loop delay, medians of 5 s each: ${ms(alone, 0.5)} ms alone; worst with joins ${ms(crowded, 1)} ms`,
      );
      printVerdict(`${name}: the same median with joins`, quantile(crowded, 0.5), { must: 15, aim: 6, unit: ' ms' });
    });
  } finally {
    await rooms.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
