export { Backoff } from './backoff.js';
export { followServer } from './follow-server.js';
export type { ForkedProcess, ForkedProcessOptions } from './forked-process.js';
export { startDetached } from './launch.js';
export { Processes, type ProcessesOptions } from './processes.js';
