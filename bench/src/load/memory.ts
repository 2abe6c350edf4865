import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connection } from '../sfu/client.js';
import { rss } from '../sfu/process.js';
import { bloom } from '../sfu/servers/bloom.js';
import { Rooms, type Shape, sleep } from './rooms.js';

const AT_ONCE = 5;

/** What a peer that does nothing takes, and what is left of a thousand that have gone. */
export async function memory(shape: Shape, nodeFlags: string[], joins: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-memory-'));
  const preload = new URL(`./heap-report.js?folder=${encodeURIComponent(folder)}`, import.meta.url).href;
  const flags = [...nodeFlags, '--expose-gc', `--import=${preload}`];
  const server = await bloom({ workers: 1, nodeFlags: flags }).start(shape.kind);
  const rooms = new Rooms(server, { ...shape, rooms: 1, subscribers: 10 });
  const read = async (): Promise<{ heapMiB: number; rssMiB: number }> => {
    for (let round = 0; round < 3; round += 1) {
      process.kill(server.pid, 'SIGUSR2');
      await sleep(700);
    }
    let bytes = 0;
    for (const name of readdirSync(folder)) {
      const [heap, external] = readFileSync(join(folder, name), 'utf8').split(' ').map(Number);
      bytes += (heap ?? 0) + (external ?? 0);
    }
    return { heapMiB: bytes / 2 ** 20, rssMiB: rss(server.pid) / 2 ** 20 };
  };
  const comeAndGo = async (count: number): Promise<void> => {
    for (let done = 0; done < count; done += AT_ONCE) {
      const group = Array.from({ length: AT_ONCE }, () => connection());
      const left = await Promise.all(group.map((pc) => server.visit(pc)));
      await Promise.all(group.map((pc) => pc.close()));
      await Promise.all(left.map((leave) => leave()));
      if (done % 100 === 0) process.stderr.write(`${done} of ${count}\n`);
    }
  };
  try {
    await rooms.open();
    await comeAndGo(100);
    const before = await read();
    await comeAndGo(joins);
    const after = await read();
    for (let i = 0; i < 100; i += 1) await rooms.join();
    const crowded = await read();
    const perPeer = (key: 'heapMiB' | 'rssMiB') => ((crowded[key] - after[key]) * 1024) / 100;
    console.log(
      `heap and buffers after ${joins} joins and leaves: ${before.heapMiB.toFixed(1)} -> ${after.heapMiB.toFixed(1)} MiB, ` +
        `${((after.heapMiB / before.heapMiB - 1) * 100).toFixed(1)} %; RSS ${before.rssMiB.toFixed(0)} -> ${after.rssMiB.toFixed(0)} MiB`,
    );
    console.log(
      `one idle peer of 100: ${perPeer('rssMiB').toFixed(0)} KiB of RSS, ${perPeer('heapMiB').toFixed(0)} KiB of heap and buffers`,
    );
  } finally {
    await rooms.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
