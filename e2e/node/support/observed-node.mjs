// Runs a node in a process that reports what it holds. Started with --expose-gc and an IPC channel; media stays in the
// same thread, so that there is one heap.
import { randomBytes } from 'node:crypto';
import { loadConfig } from '@bloom/config';
import { silentLog } from '@bloom/log';
import { startNode } from '../../../apps/bloom/dist/node.js';

const world = { cwd: process.cwd(), hostname: 'observed', cores: 1, randomBytes };
const { settings } = loadConfig(process.env, world);
const node = await startNode({ settings, log: silentLog, mediaInProcess: true });
process.on('message', async () => {
  for (let i = 0; i < 4; i += 1) {
    globalThis.gc();
    await new Promise((done) => setTimeout(done, 50));
  }
  const handles = {};
  for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1;
  process.send({ heapBytes: process.memoryUsage().heapUsed, handles });
});
process.on('disconnect', () => node.close().then(() => process.exit(0)));
process.send({ url: node.url });
