export { codePoint } from './code-point.js';
export { fuzzRuns } from './fuzz-runs.js';
export { ManualClock } from './manual-clock.js';
export { operationsOf } from './operations.js';
export { until } from './until.js';
