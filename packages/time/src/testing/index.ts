export { codePoint } from './code-point.js';
export { fuzzRuns } from './code-point.js';
export { heldBytes } from './held-bytes.js';
export { ManualClock } from './manual-clock.js';
export { operationsOf } from './operations.js';
export { until } from './manual-clock.js';
