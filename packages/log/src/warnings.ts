import type { Log } from './log.js';

/** Logs this thread's Node.js warnings instead of printing them, so that every line has the same format. */
export function logWarnings(log: Log): void {
  // Removes Node's own listener, which prints them.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn('process.warning', { name, message }));
}
