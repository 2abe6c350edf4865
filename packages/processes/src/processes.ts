import { availableParallelism } from 'node:os';
import type { Log } from '@bloom/log';
import { type Clock, isPowerOfTwo, systemClock } from '@bloom/time';
import { type EndedProcess, ForkedProcess, type ForkedProcessOptions } from './forked-process.js';

export interface ProcessesOptions {
  log: Log;
  clock?: Clock;
  /** Maximum number of running processes. */
  most?: number;
  /** Maximum number of processes starting at once: each uses a core for a third of a second. Default: one per core. */
  mostStarting?: number;
  /** Maximum number of processes waiting to start. */
  mostWaiting?: number;
}

const MOST = 256;
const MOST_WAITING = 256;
/** A process that has not sent a message after this time no longer delays the start of the next one. */
const START_MS = 10_000;
/** A longer wait for a start is logged. */
const LONG_WAIT_MS = 5_000;

type AnyProcess = ForkedProcess<object, never>;

/**
 * Every process that a node forks. Processes wait for their start by kind, in turn, so that many of one kind do not
 * delay the others.
 */
export class Processes {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #most: number;
  readonly #mostStarting: number;
  readonly #mostWaiting: number;
  readonly #running = new Set<AnyProcess>();
  readonly #starting = new Set<AnyProcess>();
  /** Keyed by kind; the first kind is next. */
  readonly #waiting = new Map<string, AnyProcess[]>();
  readonly #refusals = new Set<AnyProcess>();
  readonly #queuedAtMs = new WeakMap<AnyProcess, number>();
  #refused = 0;
  #delayed = 0;

  constructor(options: ProcessesOptions) {
    this.#log = options.log;
    this.#clock = options.clock ?? systemClock;
    this.#most = options.most ?? MOST;
    this.#mostStarting = options.mostStarting ?? Math.max(2, availableParallelism());
    this.#mostWaiting = options.mostWaiting ?? MOST_WAITING;
  }

  /** Number of processes that are running, waiting to start, and refused. */
  get counts(): { running: number; waiting: number; refused: number } {
    return { running: this.#running.size, waiting: this.#waitingCount, refused: this.#refused };
  }

  /** Starts a process now or when its turn comes. Beyond the limits, `onCrash` is called soon afterwards. */
  start<Sent extends object, Received>(options: ForkedProcessOptions<Received>): ForkedProcess<Sent, Received> {
    const startedAtMs = this.#clock.now();
    const child = new ForkedProcess<Sent, Received>(options, {
      clock: this.#clock,
      onStarted: () => {
        this.#starting.delete(entry);
        this.#pump();
      },
      onEnded: (ended) => {
        this.#forget(entry);
        this.#logEnd(entry, ended, this.#clock.now() - startedAtMs);
        this.#pump();
      },
    });
    const entry = child as unknown as AnyProcess;
    // The caller does not have the process yet, so refuse it later.
    if (this.#running.size >= this.#most) this.#refuse(entry, `${this.#most} processes already run on this node`);
    else if (this.#waitingCount >= this.#mostWaiting)
      this.#refuse(entry, `${this.#mostWaiting} processes of this node already wait for their start`);
    else {
      const line = this.#waiting.get(options.kind);
      if (line === undefined) this.#waiting.set(options.kind, [entry]);
      else line.push(entry);
      this.#queuedAtMs.set(entry, startedAtMs);
      this.#pump();
    }

    return child;
  }

  get #waitingCount(): number {
    let count = 0;
    for (const line of this.#waiting.values()) count += line.length;

    return count;
  }

  #pump(): void {
    while (this.#starting.size < this.#mostStarting && this.#running.size < this.#most) {
      const [first] = this.#waiting;
      if (first === undefined) return;
      const [kind, line] = first;
      const entry = line.shift()!;
      // The kind moves to the end of the queue.
      this.#waiting.delete(kind);
      if (line.length > 0) this.#waiting.set(kind, line);
      this.#noteWait(entry);
      this.#running.add(entry);
      this.#starting.add(entry);
      const overdue = this.#clock.setTimeout(() => {
        this.#starting.delete(entry);
        this.#pump();
      }, START_MS);
      void entry.closed.then(() => this.#clock.clearTimeout(overdue));
      entry.begin();
    }
  }

  #noteWait(entry: AnyProcess): void {
    const waitedMs = this.#clock.now() - this.#queuedAtMs.get(entry)!;
    if (waitedMs < LONG_WAIT_MS) return;
    this.#delayed += 1;
    if (!isPowerOfTwo(this.#delayed)) return;
    const waiting = this.#waitingCount;
    this.#log.warn('child.start_delayed', { kind: entry.kind, waitedMs: Math.round(waitedMs), waiting });
  }

  #forget(entry: AnyProcess): void {
    this.#running.delete(entry);
    this.#starting.delete(entry);
    const line = this.#waiting.get(entry.kind);
    const at = line?.indexOf(entry) ?? -1;
    if (line === undefined || at < 0) return;
    line.splice(at, 1);
    if (line.length === 0) this.#waiting.delete(entry.kind);
  }

  #refuse(entry: AnyProcess, reason: string): void {
    this.#refused += 1;
    if (isPowerOfTwo(this.#refused)) {
      this.#log.warn('child.refused', { kind: entry.kind, reason, refused: this.#refused });
    }
    this.#refusals.add(entry);
    queueMicrotask(() => entry.refuse(reason));
  }

  #logEnd(entry: AnyProcess, { cause, reason, usage }: EndedProcess, ranMs: number): void {
    // A refusal has its own log line, and a process that its owner ended before the start needs none.
    if (this.#refusals.delete(entry) || (entry.pid === undefined && cause === 'asked')) return;
    const { kind, pid: processId } = entry;
    const seconds = Math.round(ranMs / 1_000);
    const { cpuSeconds, peakMib } = usage ?? {};
    if (cause === 'asked') this.#log.info('child.ended', { kind, processId, cause, seconds, cpuSeconds, peakMib });
    else this.#log.warn('child.ended', { kind, processId, cause, reason, seconds, cpuSeconds, peakMib });
  }
}
