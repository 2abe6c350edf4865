// Loaded by a node under attack, with --expose-gc: what V8 has not collected yet is not memory that the node keeps.
import { isMainThread } from 'node:worker_threads';

// Signals reach the main thread only.
if (isMainThread) process.on('SIGUSR2', () => globalThis.gc());
