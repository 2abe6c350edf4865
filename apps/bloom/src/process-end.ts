/**
 * How the process ends, and that it never does so without a word (docs/reference/lifecycle.md). The exit codes are those
 * that a supervisor sees.
 */
import type { Log } from '@bloom/log';

/** Ended by a fault, or by a second signal. */
export const FAILED = 1;
/** EX_CONFIG of sysexits.h: nothing was started, the settings are wrong. */
export const BAD_CONFIG = 78;

/** As a terminal that is closed, a service manager and Ctrl-C say it. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Whoever reads the output may go away (a closed pipe, a full disk): that costs lines of the log and nothing else. */
export function outliveOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

let told = false;
let stuckThreads: () => number = () => 0;

/** Says how many threads of the process nothing can end. */
export function mindStuckThreads(count: () => number): void {
  stuckThreads = count;
}

/** Ends the process after its reason was logged. */
export function exit(code: number): never {
  told = true;
  // An exit in order waits for every thread, and nobody knows how long: a supervisor may not start the next node before.
  if (stuckThreads() > 0) process.kill(process.pid, 'SIGKILL');
  process.exit(code);
}

/** Nobody knows what state the process is in after a fault: say so and let the supervisor start a new one. */
export function endOnFaults(log: Log): void {
  const end = (event: string, error: unknown): void => {
    log.error(event, { error });
    exit(FAILED);
  };
  process.on('uncaughtException', (error) => end('process.uncaught_exception', error));
  process.on('unhandledRejection', (error) => end('process.unhandled_rejection', error));
  // Every socket and timer is gone though nobody closed the node: to go on doing nothing would look like success.
  process.on('beforeExit', () => end('process.nothing_left', new Error('nothing keeps the process running any more')));
  // Somebody else called for it.
  process.on('exit', (code) => {
    if (!told) log.error('process.exit', { code });
  });
}

/**
 * A service manager or a closed terminal signals every process of a group, and `npm start` hands on what it gets: one
 * signal reaches the node several times. What is the same and comes within this time is one signal.
 */
const ONE_SIGNAL_MS = 500;

/** The first signal closes in order and ends with 0, the second one ends at once. */
export function closeOnSignals(log: Log, close: () => Promise<void>): void {
  let first: { signal: NodeJS.Signals; at: number } | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    const at = performance.now();
    if (first !== undefined) {
      if (signal === first.signal && at - first.at < ONE_SIGNAL_MS) return;
      log.warn('node.killed', { signal });
      exit(FAILED);
    }
    first = { signal, at };
    log.info('node.closing', { signal });
    void close().then(() => {
      log.info('node.closed');
      exit(0);
    });
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
}
