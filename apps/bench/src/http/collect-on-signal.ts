// Preloaded into the measured node: on SIGUSR2 it collects all garbage, so that its live memory can be read.
import { isMainThread } from 'node:worker_threads';

if (isMainThread) process.on('SIGUSR2', () => globalThis.gc?.());
