/** Ends the process, always with a last log line. Exit codes are listed in docs/reference/lifecycle.md. */
import { flushLog, type Log } from '@bloom/log';

/** Exit code after a fault or a second signal. */
export const FAILED = 1;
/** Exit code for wrong settings, before anything starts: EX_CONFIG of sysexits.h. */
export const BAD_CONFIG = 78;

/** Sent by a service manager, by Ctrl-C, and by a terminal that closes. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Ignores write errors of the output: a closed pipe or a full disk costs only log lines. */
export function outliveOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

let reasonLogged = false;
let stuckThreads: () => number = () => 0;

/** Sets the function that counts threads that cannot be ended. */
export function watchStuckThreads(count: () => number): void {
  stuckThreads = count;
}

/** Ends the process. The caller must have logged the reason. */
export function exit(code: number): never {
  reasonLogged = true;
  // process.exit waits for every thread. A stuck one would keep the supervisor from starting the next node.
  if (stuckThreads() > 0) {
    flushLog();
    process.kill(process.pid, 'SIGKILL');
  }
  process.exit(code);
}

/** Logs a fault and ends the process: its state is unknown, so the supervisor must start a new one. */
export function endOnFaults(log: Log): void {
  const end = (event: string, error: unknown): void => {
    log.error(event, { error });
    exit(FAILED);
  };
  process.on('uncaughtException', (error) => end('process.uncaught_exception', error));
  process.on('unhandledRejection', (error) => end('process.unhandled_rejection', error));
  // Every socket and timer is gone without a close: exit code 0 would look like success.
  process.on('beforeExit', () => end('process.nothing_left', new Error('nothing keeps the process running')));
  // Runs when other code than `exit` above ended the process.
  process.on('exit', (code) => {
    if (!reasonLogged) log.error('process.exit', { code });
  });
}

/**
 * Equal signals within this time count as one: service managers and terminals signal every process of a group, and `npm
 * start` forwards what it receives, so that one signal reaches the node several times.
 */
const ONE_SIGNAL_MS = 500;

export interface SignalActions {
  close: () => Promise<void>;
  /** Called on SIGHUP, which otherwise closes the node. */
  reload?: () => Promise<void>;
}

/** Closes in order on the first signal and exits with 0. Exits immediately on the second. */
export function closeOnSignals(log: Log, { close, reload }: SignalActions): void {
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
  for (const signal of SIGNALS) {
    if (signal === 'SIGHUP' && reload !== undefined) process.on(signal, () => void reload());
    else process.on(signal, onSignal);
  }
}
