import type { Log } from './log.js';

/** Logs the warnings of Node.js in this thread instead of printing them, so that every line has one form. */
export function logWarnings(log: Log): void {
  // Removes the listener that prints them.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.warn('process.warning', { name, message }));
}
