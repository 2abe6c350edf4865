import { printTable, printVerdict } from '../report.js';
import { connection, stopReading } from '../sfu/client.js';
import { quantile } from '../sfu/measure.js';
import { cpuMicros, rss } from '../sfu/process.js';
import { bloom } from '../sfu/servers/bloom.js';
import { Publisher } from '@bloom/participant';
import { sleep } from './rooms.js';

const PACKETS_PER_SECOND = 20;
const JOINS_PER_SECOND = 20;
/** Rows of the table. */
const STEPS = 6;

/**
 * Lets a crowd join one room across two media workers, 20 each second, while it receives 20 packets per second. Nobody
 * reads the packets or reports them: for thousands that would take several times what the server needs.
 */
export async function rush(subscribers: number, nodeFlags: string[]): Promise<void> {
  const server = await bloom({ workers: 2, nodeFlags }).start('video');
  const rows: Record<string, string>[] = [];
  const all: number[] = [];
  let failed = 0;
  try {
    const publisher = new Publisher('video', 1200);
    await server.publish(connection(), publisher);
    publisher.start(PACKETS_PER_SECOND);
    const join = async (times: number[]): Promise<void> => {
      const pc = connection();
      const from = performance.now();
      try {
        await server.subscribe(pc);
        times.push(performance.now() - from);
        stopReading(pc);
      } catch (error) {
        failed += 1;
        process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      }
    };

    const step = Math.ceil(subscribers / STEPS);
    for (let joined = 0; joined < subscribers; joined += step) {
      const times: number[] = [];
      const from = { at: performance.now(), cpu: cpuMicros(server.pid) };
      const joins: Promise<void>[] = [];
      for (let i = 0; i < step; i += 1) {
        joins.push(join(times));
        await sleep(from.at + ((i + 1) * 1_000) / JOINS_PER_SECOND - performance.now());
      }
      await Promise.all(joins);
      all.push(...times);
      const seconds = (performance.now() - from.at) / 1_000;
      rows.push({
        joins: `${joined + 1}-${joined + step}`,
        'joins/s': (times.length / seconds).toFixed(1),
        'p50 / p99, ms': `${quantile(times, 0.5).toFixed(0)} / ${quantile(times, 0.99).toFixed(0)}`,
        cores: ((cpuMicros(server.pid) - from.cpu) / 1_000_000 / seconds).toFixed(2),
        'RSS MiB': (rss(server.pid) / 2 ** 20).toFixed(0),
      });
      process.stderr.write(`${JSON.stringify(rows.at(-1))}\n`);
    }
    publisher.stop();
    printTable(`${subscribers} subscribers come to one room, ${JOINS_PER_SECOND} each second`, rows);
    printVerdict('joins that failed', failed, { must: 0, aim: 0 });
    printVerdict('time of a join, p99', quantile(all, 0.99), { must: 1_000, aim: 300, unit: ' ms' });
  } finally {
    await server.close();
  }
}
