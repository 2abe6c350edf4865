import { type ChildProcess, fork } from 'node:child_process';
import { type Clock, systemClock, Timer } from '@bloom/time';

export interface ForkedProcessOptions<Received> {
  /** The built entry of the process. */
  entry: URL;
  nodeFlags?: readonly string[];
  /** A process that sends nothing for this long hangs, and is killed; absent: it may be silent. */
  hangMs?: number;
  clock?: Clock;
  /** Kills it when aborted. */
  signal?: AbortSignal;
  onMessage(message: Received): void;
  /** It does not start, hangs or has ended, without `finish` having been called. Called once at most. */
  onCrash(reason: string): void;
}

const ERROR_TEXT_LIMIT = 2_000;
/** Looks for a sign of life in one period of `hangMs`. */
const LOOKS = 5;

/** A Node.js process for work on what strangers send, or in a native library: its faults do not reach the server. */
export class ForkedProcess<Sent extends object, Received> {
  /** Resolves when the process is gone. */
  readonly closed: Promise<void>;
  readonly #child: ChildProcess;
  readonly #onCrash: (reason: string) => void;
  readonly #watchdog: Timer;
  #errorText = '';
  #ending = false;
  /** Looks in a row that found no sign of life. */
  #silentLooks = 0;

  constructor(options: ForkedProcessOptions<Received>) {
    const { entry, nodeFlags = [], hangMs, signal, onMessage, onCrash } = options;
    this.#onCrash = onCrash;
    this.#watchdog = new Timer(options.clock ?? systemClock);
    this.#child = fork(entry, {
      serialization: 'advanced',
      // The process reads what strangers send: it gets nothing of the server's environment.
      env: {},
      execArgv: [...nodeFlags],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      ...(signal === undefined ? {} : { signal, killSignal: 'SIGKILL' }),
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errorText = (this.#errorText + text).slice(-ERROR_TEXT_LIMIT);
    });
    this.#child.on('message', (message) => {
      this.#silentLooks = 0;
      onMessage(message as Received);
    });
    this.closed = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.#crash(error.message);
        // Without a process there is no `close`.
        if (this.#child.pid === undefined) resolve();
      });
      this.#child.once('close', (code, killedBy) => {
        this.#watchdog.stop();
        const words = this.#errorText.trim();
        this.#crash(`it ended with ${killedBy ?? `code ${code}`}${words === '' ? '' : `: ${words}`}`);
        resolve();
      });
    });
    if (hangMs !== undefined) this.#watch(hangMs);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Resolves when the message has left, which a sender of much waits for. Never rejects. */
  send(message: Sent): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#child.connected) resolve();
      else this.#child.send(message, () => resolve());
    });
  }

  /** Asks the process to end, and kills it after the limit. Resolves when it is gone. Idempotent. */
  async finish(request: Sent, limitMs: number): Promise<void> {
    if (!this.#ending) {
      this.#ending = true;
      void this.send(request);
    }
    const overdue = setTimeout(() => this.kill(), limitMs);
    await this.closed;
    clearTimeout(overdue);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Counts looks, not time: after a pause of this process itself, a look finds what has come meanwhile. */
  #watch(hangMs: number): void {
    this.#watchdog.repeat(hangMs / LOOKS, () => {
      this.#silentLooks += 1;
      if (this.#silentLooks <= LOOKS) return;
      this.#crash(`it has sent nothing for ${hangMs} ms`);
      this.kill();
    });
  }

  #crash(reason: string): void {
    if (this.#ending) return;
    this.#ending = true;
    this.#onCrash(reason);
  }
}
