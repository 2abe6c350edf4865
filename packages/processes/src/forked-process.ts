import type { ChildProcess } from 'node:child_process';
import { type Clock, Timer } from '@bloom/time';
import { launch } from './launch.js';
import { type ProcessUsage, usageOf } from './usage.js';

export interface ForkedProcessOptions<Received> {
  /** Purpose of the process, for the log. */
  kind: string;
  /** The built entry of the process. */
  entry: URL;
  nodeFlags?: readonly string[];
  /** Resident memory beyond which the process is killed, in MiB. */
  memoryMib: number;
  /** Memory in MiB that the process maps for writing without using it. The kernel's limit is raised by this much. */
  reservedMib?: number;
  /** A process that sends nothing for this long counts as hung and is killed. If omitted, it may stay silent. */
  hangMs?: number;
  /** True for work that nobody waits for: it gets only the time that calls and streams leave. */
  isBatch?: boolean;
  /** Kills the process when aborted. */
  signal?: AbortSignal;
  onMessage(message: Received): void;
  /** Called at most once, when the process fails to start, hangs, or ends without a call of `finish`. */
  onCrash(reason: string, cause: EndCause): void;
}

/**
 * Why a process ended: `finish` or a kill, by itself, by a signal, out of memory, silent for too long, or never
 * started.
 */
export type EndCause = 'asked' | 'exit' | 'signal' | 'memory' | 'hung' | 'not_started';

export interface EndedProcess {
  cause: EndCause;
  /** Omits the process's last output, which may contain secrets. */
  reason: string;
  usage: ProcessUsage | undefined;
}

interface Surroundings {
  clock: Clock;
  /** Called once, when the first message has arrived or the process is gone. */
  onStarted(): void;
  /** Called when the process is gone, before `closed` resolves. */
  onEnded(ended: EndedProcess): void;
}

const ERROR_TEXT_LIMIT = 2_000;
/** Checks for a sign of life per period of `hangMs`. */
const LOOKS = 5;
/** Interval of memory checks. Between checks the kernel's own limit applies. */
const MEMORY_LOOK_MS = 1_000;
/** Output of libraries and of V8 when they reach the kernel's limit. */
const OUT_OF_MEMORY = /out of memory|bad_alloc|cannot allocate|allocation failed/i;
/** Maximum number of messages queued until the start. */
const MAX_EARLY = 1_000;

/** A Node.js process for untrusted input or a native library: its faults do not reach the server. */
export class ForkedProcess<Sent extends object, Received> {
  /** Resolves when the process is gone. */
  readonly closed: Promise<void>;
  readonly #options: ForkedProcessOptions<Received>;
  readonly #surroundings: Surroundings;
  readonly #watchdog: Timer;
  readonly #memory: Timer;
  #close: () => void = () => undefined;
  #child: ChildProcess | undefined;
  #early: (() => void)[] = [];
  #errorText = '';
  #ending = false;
  #up = false;
  #gone = false;
  #cause: EndCause | undefined;
  #usage: ProcessUsage | undefined;
  /** Consecutive checks that found no sign of life. */
  #silentLooks = 0;

  /** Does not start the process yet. */
  constructor(options: ForkedProcessOptions<Received>, surroundings: Surroundings) {
    this.#options = options;
    this.#surroundings = surroundings;
    this.#watchdog = new Timer(surroundings.clock);
    this.#memory = new Timer(surroundings.clock);
    this.closed = new Promise((resolve) => {
      this.#close = resolve;
    });
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get kind(): string {
    return this.#options.kind;
  }

  /** Forks the process, unless its owner has already ended it. */
  begin(): void {
    if (this.#gone) return;
    const { entry, nodeFlags = [], memoryMib, reservedMib = 0, signal, hangMs, onMessage } = this.#options;
    const { isBatch = false } = this.#options;
    const child = launch({
      entry,
      nodeFlags,
      dataMib: memoryMib + reservedMib,
      isBatch,
      ...(signal === undefined ? {} : { signal }),
    });
    this.#child = child;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errorText = (this.#errorText + text).slice(-ERROR_TEXT_LIMIT);
    });
    child.on('message', (message) => {
      this.#silentLooks = 0;
      this.#started();
      onMessage(message as Received);
    });
    child.once('error', (error) => {
      // Without a process, no `close` event follows.
      if (child.pid === undefined) this.#end('not_started', error.message);
      else this.#crash(error.message, 'signal');
    });
    child.once('close', (code, killedBy) => {
      const words = this.#errorText.trim();
      const cause = killedBy === null ? 'exit' : 'signal';
      const isFull = !this.#ending && OUT_OF_MEMORY.test(words);
      this.#end(isFull ? 'memory' : cause, `it ended with ${killedBy ?? `code ${code}`}`, words);
    });
    if (hangMs !== undefined) this.#watch(hangMs);
    this.#memory.repeat(MEMORY_LOOK_MS, () => this.#lookAtMemory(memoryMib));
    for (const send of this.#early.splice(0)) send();
  }

  /** Ends the process before it starts. */
  refuse(reason: string): void {
    this.#end('not_started', reason);
  }

  /** Resolves when the message has been sent, so that callers with much to send can wait. Never rejects. */
  send(message: Sent): Promise<void> {
    return new Promise((resolve) => {
      const child = this.#child;
      if (child === undefined && !this.#gone) {
        if (this.#early.length >= MAX_EARLY) this.refuse(`${MAX_EARLY} messages waited for its start`);
        else this.#early.push(() => void this.send(message).then(resolve));
      } else if (child?.connected === true) child.send(message, () => resolve());
      else resolve();
    });
  }

  /** Asks the process to end, and kills it after the limit. Resolves when it is gone. Idempotent. */
  async finish(request: Sent, limitMs: number): Promise<void> {
    if (!this.#ending) {
      this.#ending = true;
      this.#cause ??= 'asked';
      if (this.#child === undefined) this.#end('asked', 'it was no longer needed');
      else void this.send(request);
    }
    const overdue = setTimeout(() => this.kill(), limitMs);
    await this.closed;
    clearTimeout(overdue);
  }

  kill(): void {
    this.#cause ??= 'asked';
    if (this.#child === undefined) this.#end('asked', 'it was killed before its start');
    else this.#child.kill('SIGKILL');
  }

  /** Counts checks, not time, so that a pause of this process does not count as silence of the child. */
  #watch(hangMs: number): void {
    this.#watchdog.repeat(hangMs / LOOKS, () => {
      this.#silentLooks += 1;
      if (this.#silentLooks > LOOKS) this.#stop('hung', `it has sent nothing for ${hangMs} ms`);
    });
  }

  #lookAtMemory(memoryMib: number): void {
    this.#readUsage();
    const residentMib = this.#usage?.residentMib ?? 0;
    if (residentMib <= memoryMib) return;
    this.#stop('memory', `it used ${residentMib} MiB of memory, and may use ${memoryMib}`);
  }

  #readUsage(): void {
    this.#usage = (this.pid === undefined ? undefined : usageOf(this.pid)) ?? this.#usage;
  }

  #stop(cause: EndCause, reason: string): void {
    this.#cause ??= cause;
    this.#crash(reason, cause);
    this.kill();
  }

  #started(): void {
    if (this.#up) return;
    this.#up = true;
    this.#readUsage();
    this.#surroundings.onStarted();
  }

  #end(cause: EndCause, reason: string, words = ''): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#watchdog.stop();
    this.#memory.stop();
    this.#started();
    this.#surroundings.onEnded({ cause: this.#cause ?? cause, reason, usage: this.#usage });
    this.#crash(words === '' ? reason : `${reason}: ${words}`, this.#cause ?? cause);
    for (const send of this.#early.splice(0)) send();
    this.#close();
  }

  #crash(reason: string, cause: EndCause): void {
    if (this.#ending) return;
    this.#ending = true;
    this.#options.onCrash(reason, cause);
  }
}

/** Terminals and service managers send these to every process of the server, which ends its forks in order. */
const SERVER_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Called in a forked process: ignores signals meant for the server, and exits when the server is gone. */
export function followServer(): void {
  for (const signal of SERVER_SIGNALS) process.on(signal, () => undefined);
  process.on('disconnect', () => process.exit(0));
}
