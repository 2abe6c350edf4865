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

/** The events of one room for one URL: a bounded queue, sent in order, one request at a time. */
export class WebhookQueue {
  readonly #options: WebhookQueueOptions;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  #sending = false;
  /** Consecutive events that were given up. */
  #failed = 0;
  #idleCallbacks: (() => void)[] = [];

  constructor(options: WebhookQueueOptions) {
    this.#options = options;
  }

  /** Events waiting or being sent. */
  get size(): number {
    return this.#waiting.length + (this.#sending ? 1 : 0);
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

    if (!this.#sending) void this.#sendAll();
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

  async #sendAll(): Promise<void> {
    this.#sending = true;
    for (let bytes = this.#waiting.shift(); bytes !== undefined; bytes = this.#waiting.shift()) {
      this.#waitingBytes -= bytes.byteLength;
      await this.#sendOne(bytes);
    }
    this.#sending = false;

    if (this.#dropped > 0) {
      this.#options.log.warn('webhook.events_dropped', { events: this.#dropped });
      this.#dropped = 0;
    }
    for (const resolve of this.#idleCallbacks.splice(0)) resolve();
  }

  async #sendOne(bytes: Uint8Array): Promise<void> {
    const { url, post, clock, retries, log, metrics, signal } = this.#options;
    const delay = this.#options.delay ?? ((ms: number) => sleep(ms, { clock, signal }));

    for (let attempt = 0; ; attempt += 1) {
      try {
        signal.throwIfAborted();
        await post(url, bytes, signal);
        this.#failed = 0;
        return;
      } catch (error) {
        const last = attempt >= retries || signal.aborted;
        const cause = causeOf(error);
        if (last) {
          this.#failed += 1;
          // Log the 1st, 2nd, 4th, 8th ... failure only, because clients can cause any number of events.
          if (isPowerOfTwo(this.#failed))
            log.warn('webhook.failed', { attempt: attempt + 1, cause, events: this.#failed });
          metrics?.webhookFailed();
          return;
        }
        log.warn('webhook.will_retry', { attempt: attempt + 1, cause });
      }

      // An abort ends the delay early, and the next iteration returns.
      await delay(backOffMs(attempt + 1), signal).catch(() => undefined);
    }
  }
}

function causeOf(error: unknown): string {
  if (error instanceof WebhookError) return error.message;

  return error instanceof Error && error.name === 'AbortError' ? 'the server stops' : String(error);
}
