/* oxlint-disable unicorn/require-post-message-target-origin -- a BroadcastChannel of threads has none */
// Preloaded into every thread of a node. The first SIGUSR2 kills its first media worker, the second makes its last one
// hang, and the third makes its last one wait in native code, where it cannot be interrupted.
import { spawnSync } from 'node:child_process';
import { BroadcastChannel, isMainThread, threadId, workerData } from 'node:worker_threads';

const channel = new BroadcastChannel('worker faults');
if (isMainThread) {
  const workers = [];
  channel.addEventListener('message', ({ data }) => data.started && workers.push(data.started));
  const sorted = () => workers.toSorted((a, b) => a - b);
  process.once('SIGUSR2', () => {
    channel.postMessage({ kill: sorted()[0] });
    process.once('SIGUSR2', () => {
      channel.postMessage({ hang: sorted().at(-1) });
      process.once('SIGUSR2', () => channel.postMessage({ stick: sorted().at(-1) }));
    });
  });
} else if (workerData?.portRange !== undefined) {
  channel.addEventListener('message', ({ data }) => {
    if (data.kill === threadId) process.exit(1);
    while (data.hang === threadId);
    if (data.stick === threadId) spawnSync('sleep', ['60']);
  });
  channel.postMessage({ started: threadId });
}
channel.unref();
