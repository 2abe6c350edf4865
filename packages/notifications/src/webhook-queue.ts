import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { type Clock, isPowerOfTwo, sleep } from '@bloom/time';
import { WebhookError, type PostWebhook } from './webhook-post.js';

/** Events, and their bytes, that may wait for one receiver. */
export const MAX_BACKLOG = 1_000;
export const MAX_BACKLOG_BYTES = 4 * 1024 * 1024;
/**
 * Above this no data channel messages are added: clients send those, and they must neither displace nor delay other
 * events.
 */
const MAX_DATA_BACKLOG = 50;
const MAX_DATA_BACKLOG_BYTES = 1024 * 1024;

const FIRST_BACK_OFF_MS = 500;
const LONGEST_BACK_OFF_MS = 30_000;

/** Returns the milliseconds before retry `n`, counted from 1: doubles each time, up to 30 s. */
export function backOffMs(n: number): number {
  return Math.min(LONGEST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** Math.min(n - 1, 16));
}

export interface WebhookQueueOptions {
  url: string;
  post: PostWebhook;
  clock: Clock;
  retries: number;
  /** Bound to the room and the printable form of the URL. */
  log: Log;
  metrics?: Pick<Metrics, 'webhookFailed' | 'webhookDropped'>;
  /** Discards pending events when aborted. */
  signal: AbortSignal;
  delay?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Events of a room that moves, for its next node. */
export interface Backlog {
  waiting: readonly Uint8Array[];
  /** The receiver may be reading another event, which precedes them. */
  inFlight: boolean;
}

interface Current {
  bytes: Uint8Array;
  /** Failed attempts. */
  failures: number;
}

/** The events of one room for one URL: a bounded queue, sent in order, one request at a time. */
export class WebhookQueue {
  readonly #options: WebhookQueueOptions;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  /** The event being sent, or waiting for its next attempt. */
  #current: Current | undefined;
  /** A request with the current event is under way. */
  #posting = false;
  #running = false;
  #paused = false;
  /** What the last `pause` has returned; null once it has been taken up or given away. */
  #offered: { waiting: ReadonlySet<Uint8Array>; inFlight: Uint8Array | undefined } | null = null;
  /** Consecutive events that were given up. */
  #failed = 0;
  #idleCallbacks: (() => void)[] = [];
  #postedCallbacks: (() => void)[] = [];

  constructor(options: WebhookQueueOptions) {
    this.#options = options;
  }

  /** Events waiting or being sent. */
  get size(): number {
    return this.#waiting.length + (this.#current === undefined ? 0 : 1);
  }

  get hasRoomForData(): boolean {
    return this.#waiting.length < MAX_DATA_BACKLOG && this.#waitingBytes < MAX_DATA_BACKLOG_BYTES;
  }

  /**
   * Adds an event. When the backlog is full the oldest event is dropped: the latest ones matter most, above all the end
   * of the room.
   */
  push(bytes: Uint8Array): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.byteLength;
    while (this.#waiting.length > 1 && (this.#waiting.length > MAX_BACKLOG || this.#waitingBytes > MAX_BACKLOG_BYTES)) {
      this.#dropOldest();
    }
    this.#start();
  }

  /** Puts events before those that wait. */
  putFirst(events: readonly Uint8Array[]): void {
    this.#waiting.unshift(...events);
    for (const { byteLength } of events) this.#waitingBytes += byteLength;
    this.#start();
  }

  /** Begins no further request, and returns what is left. */
  pause(): Backlog {
    this.#paused = true;
    const current = this.#current?.bytes;
    const waiting = current === undefined || this.#posting ? [...this.#waiting] : [current, ...this.#waiting];
    this.#offered = { waiting: new Set(waiting), inFlight: this.#posting ? current : undefined };

    return { waiting, inFlight: this.#posting };
  }

  resume(): void {
    this.#paused = false;
    this.#offered = null;
    this.#start();
  }

  /**
   * Forgets what `pause` has returned, and goes on with later events. Resolves with the event that was in flight if it
   * has not arrived and is to be sent again, otherwise with null.
   */
  async give(): Promise<Uint8Array | null> {
    if (this.#posting) await new Promise<void>((resolve) => this.#postedCallbacks.push(resolve));
    const { waiting, inFlight } = this.#offered ?? { waiting: new Set<Uint8Array>() };
    const current = this.#current?.bytes;
    const failed = current !== undefined && current === inFlight ? current : null;
    if (current !== undefined && (failed !== null || waiting.has(current))) this.#current = undefined;
    const kept = this.#waiting.filter((bytes) => !waiting.has(bytes));
    this.#waiting.splice(0, Number.POSITIVE_INFINITY, ...kept);
    this.#waitingBytes = kept.reduce((sum, { byteLength }) => sum + byteLength, 0);
    this.resume();
    this.#settle();

    return failed;
  }

  /** Resolves when nothing is waiting or being sent. */
  idle(): Promise<void> {
    return this.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#idleCallbacks.push(resolve));
  }

  #dropOldest(): void {
    this.#waitingBytes -= this.#waiting.shift()?.byteLength ?? 0;
    this.#options.metrics?.webhookDropped();
    // Log one line at the first drop; the total is logged once the receiver has caught up.
    if (this.#dropped === 0) this.#options.log.warn('webhook.backlog_full', { waiting: this.#waiting.length });
    this.#dropped += 1;
  }

  #start(): void {
    if (!this.#running && !this.#paused && this.size > 0) void this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    const { clock, signal } = this.#options;
    const delay = this.#options.delay ?? ((ms: number) => sleep(ms, { clock, signal }));
    this.#running = true;
    while (!this.#paused) {
      const current = (this.#current ??= this.#next());
      if (current === undefined) break;
      const isOver = await this.#send(current);
      if (isOver) this.#current = undefined;
      for (const resolve of this.#postedCallbacks.splice(0)) resolve();
      // An abort ends the delay early.
      if (!isOver) await delay(backOffMs(current.failures), signal).catch(() => undefined);
    }
    this.#running = false;
    this.#settle();
  }

  #next(): Current | undefined {
    const bytes = this.#waiting.shift();
    this.#waitingBytes -= bytes?.byteLength ?? 0;

    return bytes === undefined ? undefined : { bytes, failures: 0 };
  }

  /** Reports that nothing is left. */
  #settle(): void {
    if (this.size > 0) return;
    if (this.#dropped > 0) {
      this.#options.log.warn('webhook.events_dropped', { events: this.#dropped });
      this.#dropped = 0;
    }
    for (const resolve of this.#idleCallbacks.splice(0)) resolve();
  }

  /** Sends an event once. Returns false if it is to be sent again. */
  async #send(current: Current): Promise<boolean> {
    const { url, post, retries, log, metrics, signal } = this.#options;
    this.#posting = true;
    try {
      signal.throwIfAborted();
      await post(url, current.bytes, signal);
      this.#failed = 0;
      return true;
    } catch (error) {
      const attempt = ++current.failures;
      const cause = causeOf(error);
      if (attempt <= retries && !signal.aborted) {
        log.warn('webhook.will_retry', { attempt, cause });
        return false;
      }
      this.#failed += 1;
      // Log the 1st, 2nd, 4th, 8th ... failure only, because clients can cause any number of events.
      if (isPowerOfTwo(this.#failed)) log.warn('webhook.failed', { attempt, cause, events: this.#failed });
      metrics?.webhookFailed();
      return true;
    } finally {
      this.#posting = false;
    }
  }
}

function causeOf(error: unknown): string {
  if (error instanceof WebhookError) return error.message;

  return error instanceof Error && error.name === 'AbortError' ? 'the server stops' : String(error);
}
