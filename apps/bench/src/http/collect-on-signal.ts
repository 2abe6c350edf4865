// Preloaded into the node that is measured: SIGUSR2 makes it collect all garbage, so that its live memory can be read.
import { isMainThread } from 'node:worker_threads';

if (isMainThread) process.on('SIGUSR2', () => globalThis.gc?.());
