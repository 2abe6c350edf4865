export { Backoff } from './backoff.js';
export { followServer } from './forked-process.js';
export type { ForkedProcess, ForkedProcessOptions } from './forked-process.js';
export { startDetached } from './launch.js';
export { Processes, type ProcessesOptions } from './processes.js';
