import { encodeNotification, encodeServerMessage, type Notification } from '@bloom/protocol';
import type { Log } from '@bloom/log';

/** Where an event arose: on this node, or on another member of the cluster that forwarded it. */
export type Source = 'local' | 'remote';

/** One event for all listeners. Its bytes (one `ServerMessage`) are encoded once, on first use. */
export class NotificationEnvelope {
  /** Messages of data channels have subscribers of their own, and are dropped before other events are. */
  readonly kind: 'notification' | 'data';
  #encoded: Uint8Array | undefined;

  constructor(
    readonly notification: Notification,
    readonly source: Source,
  ) {
    this.kind = notification.type === 'dataMessage' ? 'data' : 'notification';
  }

  get bytes(): Uint8Array {
    this.#encoded ??= encodeNotification(this.notification);

    return this.#encoded;
  }
}

/** The metrics report of one node (docs/reference/metrics.md), also encoded once. */
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
 * The event bus of a node. Listeners receive every event in the order of `publish`, hence in order per room. An event
 * that a listener publishes follows the one being delivered.
 */
export class NotificationBus {
  readonly #log: Log;
  readonly #listeners = new Set<EnvelopeListener>();
  readonly #waiting: Envelope[] = [];
  #delivering = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Delivers an event to all listeners. `remote` events are neither sent as webhooks nor forwarded to the cluster again. */
  publish(notification: Notification, source: Source = 'local'): void {
    this.#deliver(new NotificationEnvelope(notification, source));
  }

  publishMetrics(report: unknown, source: Source = 'local'): void {
    this.#deliver(new MetricsEnvelope(report, source));
  }

  /** Adds a listener, which is called synchronously and must not block. Returns a function that removes it. */
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
        // A broken listener must affect neither the other listeners nor the publisher.
        this.#log.error('notifications.listener_failed', { kind: envelope.kind, error });
      }
    }
  }
}
