import { encodeNotification, encodeServerMessage, type Notification } from '@bloom/protocol';
import type { Log } from '@bloom/log';

/** Where an event arose: on this instance, or on another member of the cluster that passed it on. */
export type Source = 'local' | 'remote';

/** One event on its way to everybody; its bytes (one `ServerMessage`) are made once, when somebody asks first. */
export class NotificationEnvelope {
  readonly kind = 'notification';
  #encoded: Uint8Array | undefined;

  constructor(
    readonly notification: Notification,
    readonly source: Source,
  ) {}

  get bytes(): Uint8Array {
    this.#encoded ??= encodeNotification(this.notification);

    return this.#encoded;
  }
}

/** The metrics report of one instance (docs/reference/metrics.md); encoded once as well. */
export class MetricsEnvelope {
  readonly kind = 'metrics';
  #encoded: Uint8Array | undefined;

  constructor(
    /** Any JSON value. */
    readonly report: unknown,
    readonly source: Source,
  ) {}

  get bytes(): Uint8Array {
    this.#encoded ??= encodeServerMessage({ type: 'metricsReport', metrics: this.report });

    return this.#encoded;
  }
}

export type Envelope = NotificationEnvelope | MetricsEnvelope;
export type EnvelopeListener = (envelope: Envelope) => void;

/**
 * The event bus of an instance. Listeners get every event in the order of `publish`, so in order per room, also when a
 * listener publishes: its event goes after the one being delivered.
 */
export class NotificationBus {
  readonly #log: Log;
  readonly #listeners = new Set<EnvelopeListener>();
  readonly #waiting: Envelope[] = [];
  #delivering = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Tells everybody of an event; `remote` events are not sent as webhooks and not passed on to the cluster again. */
  publish(notification: Notification, source: Source = 'local'): void {
    this.#deliver(new NotificationEnvelope(notification, source));
  }

  publishMetrics(report: unknown, source: Source = 'local'): void {
    this.#deliver(new MetricsEnvelope(report, source));
  }

  /** Listeners are called synchronously and must not block; the returned function ends the subscription. */
  subscribe(listener: EnvelopeListener): () => void {
    this.#listeners.add(listener);

    return () => {
      this.#listeners.delete(listener);
    };
  }

  #deliver(envelope: Envelope): void {
    this.#waiting.push(envelope);
    if (this.#delivering) return;

    this.#delivering = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) this.#deliverOne(next);
    } finally {
      this.#delivering = false;
    }
  }

  #deliverOne(envelope: Envelope): void {
    for (const listener of this.#listeners) {
      try {
        listener(envelope);
      } catch (error) {
        // One broken listener must not cost the others the event, nor the publisher its operation.
        this.#log.error('notifications.listener_failed', { kind: envelope.kind, error });
      }
    }
  }
}
