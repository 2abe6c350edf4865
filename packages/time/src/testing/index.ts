export { ManualClock } from './manual-clock.js';
export { operations } from './operations.js';
