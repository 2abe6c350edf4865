export { epochNow, systemClock, type Clock } from './clock.js';
export { isPowerOfTwo, LogThrottle } from './log-throttle.js';
export { Timer } from './timer.js';
export { inTime, sleep, type TimeLimit } from './waiting.js';
