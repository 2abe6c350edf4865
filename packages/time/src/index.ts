export { Allowance, type Rate } from './allowance.js';
export { Allowances } from './allowances.js';
export { AwakeClock, awakeClock } from './awake-clock.js';
export { epochNow, systemClock, type Clock } from './clock.js';
export { isPowerOfTwo, LogThrottle } from './log-throttle.js';
export { spread } from './spread.js';
export { Timer } from './timer.js';
export { inTime, sleep, type TimeLimit } from './waiting.js';
