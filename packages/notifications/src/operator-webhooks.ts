import type { OutgoingHttpHeaders } from 'node:http';
import { printableUrl, type Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { awakeClock, type Clock } from '@bloom/time';
import { openWebhookPoster, type WebhookPoster } from './webhook-post.js';
import { WebhookQueue } from './webhook-queue.js';

const TIMEOUT_MS = 5_000;
const RETRIES = 3;

export interface OperatorWebhooksOptions {
  urls: readonly string[];
  /** Returns the headers of a request with this body. */
  headers: (body: Uint8Array) => OutgoingHttpHeaders | Promise<OutgoingHttpHeaders>;
  log: Log;
  metrics: Pick<Metrics, 'webhookFailed' | 'webhookDropped'>;
  clock?: Clock;
  /** Delays between attempts; tests replace it. */
  delay?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Posts the events of every room to URLs that the operator has set: one ordered queue per room and URL, so that a slow
 * receiver delays nobody else's events.
 */
export class OperatorWebhooks {
  readonly #options: OperatorWebhooksOptions;
  readonly #clock: Clock;
  /** By room id. A room that takes the id of an earlier one continues its queues, so their events stay in order. */
  readonly #queues = new Map<string, readonly WebhookQueue[]>();
  readonly #abort = new AbortController();
  readonly #poster: WebhookPoster;
  #closed = false;

  constructor(options: OperatorWebhooksOptions) {
    this.#options = options;
    const { headers, clock = awakeClock } = options;
    this.#clock = clock;
    this.#poster = openWebhookPoster({ timeoutMs: TIMEOUT_MS, headers, clock });
  }

  /** Sends an event of a room, after its earlier ones. Ignored after `close`. */
  push(roomId: string, body: Uint8Array): void {
    if (this.#closed) return;
    const queues = this.#queues.get(roomId) ?? this.#newQueues(roomId);
    for (const queue of queues) queue.push(body);
  }

  /** Forgets a room that has ended, once its events are sent. */
  end(roomId: string): void {
    const queues = this.#queues.get(roomId);
    if (queues === undefined) return;
    void this.#idle(queues).then(() => {
      if (queues.every(({ size }) => size === 0)) this.#queues.delete(roomId);
    });
  }

  /** Events waiting or being sent. */
  get pending(): number {
    return [...this.#queues.values()].flat().reduce((sum, { size }) => sum + size, 0);
  }

  /** Sends pending events for at most `timeoutMs`; further events are ignored. */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    this.#closed = true;
    const overdue = this.#clock.setTimeout(() => this.#abort.abort(), timeoutMs);
    await this.#idle([...this.#queues.values()].flat());
    this.#clock.clearTimeout(overdue);
    this.#abort.abort();
    this.#queues.clear();
    this.#poster.close();
  }

  async #idle(queues: readonly WebhookQueue[]): Promise<void> {
    await Promise.all(queues.map((queue) => queue.idle()));
  }

  #newQueues(roomId: string): readonly WebhookQueue[] {
    const { urls, log, metrics, delay } = this.#options;
    const queues = urls.map(
      (url) =>
        new WebhookQueue({
          url,
          post: this.#poster.post,
          clock: this.#clock,
          retries: RETRIES,
          log: log.child({ roomId, url: printableUrl(url) }),
          signal: this.#abort.signal,
          metrics,
          ...(delay === undefined ? {} : { delay }),
        }),
    );
    this.#queues.set(roomId, queues);

    return queues;
  }
}
