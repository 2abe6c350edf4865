import { cpus } from 'node:os';
import { bloom } from '../sfu/servers/bloom.js';
import { figuresAt, row } from './figures.js';
import { Rooms, type Shape } from './rooms.js';

const ENOUGH = 0.999;

/** More and more packets through one worker, until it delivers no longer what it should. */
export async function capacity(shape: Shape, nodeFlags: string[]): Promise<void> {
  const server = await bloom({ workers: 1, nodeFlags }).start(shape.kind);
  const rooms = new Rooms(server, shape);
  const rows: Record<string, string>[] = [];
  try {
    await rooms.open();
    let best = 0;
    let misses = 0;
    for (let rate = 40_000; rate <= 150_000 && misses < 2; rate += 10_000) {
      const figures = await figuresAt(rooms, rate, { warmUpMs: 1500, windows: 3, windowMs: 1500 });
      rows.push(row(figures));
      process.stderr.write(`${JSON.stringify(rows.at(-1))}\n`);
      if (figures.delivered >= ENOUGH) best = Math.max(best, figures.packetsPerSecond);
      else misses += 1;
    }
    console.table(rows);
    console.log(`most with >= ${ENOUGH * 100} % delivered: ${best.toFixed(0)} packets/s out of one worker`);
    if (cpus().length < 4) console.error('*** SKIPPED 2 workers against 1: it needs 4 cores, two of them for the load');
  } finally {
    await rooms.close();
    await server.close();
  }
}
