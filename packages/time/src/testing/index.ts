export { fuzzRuns } from './fuzz-runs.js';
export { ManualClock } from './manual-clock.js';
export { operations } from './operations.js';
