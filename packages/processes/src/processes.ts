import { availableParallelism } from 'node:os';
import type { Log } from '@bloom/log';
import { type Clock, isPowerOfTwo, systemClock } from '@bloom/time';
import { type EndedProcess, ForkedProcess, type ForkedProcessOptions } from './forked-process.js';

export interface ProcessesOptions {
  log: Log;
  clock?: Clock;
  /** Processes that run at the same time. */
  most?: number;
  /** Processes that start at the same time: each takes a third of a second of a core. Default: one for each core. */
  mostStarting?: number;
  /** Processes that wait for their start. */
  mostWaiting?: number;
}

const MOST = 256;
const MOST_WAITING = 256;
/** A process that has not said anything by then starts no faster for keeping the others waiting. */
const START_MS = 10_000;
/** A longer wait for a start is logged. */
const LONG_WAIT_MS = 5_000;

type AnyProcess = ForkedProcess<object, never>;

/**
 * Every process that a node forks. Those that start wait for their turn, kind after kind, so that many of one kind do not hold up
 * the others.
 */
export class Processes {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #most: number;
  readonly #mostStarting: number;
  readonly #mostWaiting: number;
  readonly #running = new Set<AnyProcess>();
  readonly #starting = new Set<AnyProcess>();
  /** By kind; the kind whose turn it is comes first. */
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

  /** Number of processes that run, wait for their start, and were refused. */
  get counts(): { running: number; waiting: number; refused: number } {
    return { running: this.#running.size, waiting: this.#waitingCount, refused: this.#refused };
  }

  /** Starts a process, at once or when it is its turn. Beyond the limits `onCrash` is called, soon. */
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
    // The caller has no process to speak of yet.
    if (this.#running.size >= this.#most) this.#refuse(entry, `${this.#most} processes run on this node already`);
    else if (this.#waitingCount >= this.#mostWaiting)
      this.#refuse(entry, `${this.#mostWaiting} processes of this node wait for their start already`);
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
      // Its kind goes to the end of the line.
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
    // A refusal has its own line, and what was not needed any more before its start none.
    if (this.#refusals.delete(entry) || (entry.pid === undefined && cause === 'asked')) return;
    const { kind, pid: processId } = entry;
    const seconds = Math.round(ranMs / 1_000);
    const { cpuSeconds, peakMib } = usage ?? {};
    if (cause === 'asked') this.#log.info('child.ended', { kind, processId, cause, seconds, cpuSeconds, peakMib });
    else this.#log.warn('child.ended', { kind, processId, cause, reason, seconds, cpuSeconds, peakMib });
  }
}
