import { cpus } from 'node:os';
import { printTable, printVerdict } from '../report.js';
import { bloom } from '../sfu/servers/bloom.js';
import { figuresAt, row } from './figures.js';
import { Rooms, type Shape } from './rooms.js';

const ENOUGH = 0.999;
const LATE_MS = 50;
const TRIES = 3;

/** Raises one worker's packet rate until it no longer delivers. */
export async function capacity(shape: Shape, nodeFlags: string[]): Promise<void> {
  const server = await bloom({ workers: 1, nodeFlags }).start(shape.kind);
  const rooms = new Rooms(server, shape);
  const rows: Record<string, string>[] = [];
  try {
    await rooms.open();
    let best = 0;
    let misses = 0;
    for (let rate = 50_000; rate <= 150_000 && misses < 2; rate += 20_000) {
      let enough = false;
      // A hiccup of the machine is not the server's limit, so each rate gets several tries.
      for (let attempt = 0; attempt < TRIES && !enough; attempt += 1) {
        const figures = await figuresAt(rooms, rate, { warmUpMs: 1000, windows: 2, windowMs: 1500 });
        rows.push(row(figures));
        process.stderr.write(`${JSON.stringify(rows.at(-1))}\n`);
        // Late packets do not count: an earlier queue could hide current losses.
        enough = figures.delivered >= ENOUGH && figures.p50Ms < LATE_MS;
        if (enough) best = Math.max(best, figures.packetsPerSecond);
      }
      misses = enough ? 0 : misses + 1;
    }
    printTable(
      `capacity of one media worker: the best of at most ${TRIES} tries at each rate; one missed rate is passed over, the second ends the run`,
      rows,
    );
    printVerdict(
      `packets/s out of one worker with >= ${ENOUGH * 100} % delivered and a median latency below ${LATE_MS} ms`,
      Math.round(best),
      { must: 90_000, aim: 120_000, better: 'more' },
    );
    if (cpus().length < 4) console.error('*** SKIPPED 2 workers against 1: it needs 4 cores, two of them for the load');
  } finally {
    await rooms.close();
    await server.close();
  }
}
