/**
 * Preloaded into every server thread (`--import`, with `--expose-gc`): on SIGUSR2 each thread collects its garbage and
 * writes the bytes of its heap and buffers to a file named after it.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads';

const folder = new URL(import.meta.url).searchParams.get('folder');
if (folder !== null) {
  const channel = new BroadcastChannel('bloom bench heap');
  const report = (): void => {
    (globalThis as { gc?: () => void }).gc?.();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync(join(folder, `thread-${threadId}`), `${heapUsed} ${external}`);
  };
  channel.addEventListener('message', report);
  channel.unref();
  if (isMainThread) {
    process.on('SIGUSR2', () => {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel of threads has none
      channel.postMessage('report');
      report();
    });
  }
}
