import { encodeNotification, encodeServerMessage, type Notification } from '@bloom/protocol';
import type { Log } from '@bloom/log';

/** Where an event occurred: on this node, or on another cluster member that forwarded it. */
export type Source = 'local' | 'remote';

const KINDS: Partial<Record<Notification['type'], 'data' | 'recording'>> = {
  dataMessage: 'data',
  recordingUploaded: 'recording',
  recordingFailed: 'recording',
};

/** One event, shared by all listeners. Its bytes (one `ServerMessage`) are encoded once, on first use. */
export class NotificationEnvelope {
  /** Data channel messages, which are dropped before other events, and recordings have subscriptions of their own. */
  readonly kind: 'notification' | 'data' | 'recording';
  #encoded: Uint8Array | undefined;

  constructor(
    readonly notification: Notification,
    readonly source: Source,
  ) {
    this.kind = KINDS[notification.type] ?? 'notification';
  }

  get bytes(): Uint8Array {
    this.#encoded ??= encodeNotification(this.notification);

    return this.#encoded;
  }
}

/** The metrics report of one node (docs/reference/metrics.md), also encoded only once. */
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
 * The event bus of a node. Listeners receive every event in the order of `publish`, so events are in order within a
 * room. An event published by a listener follows the one being delivered.
 */
export class NotificationBus {
  readonly #log: Log;
  readonly #listeners = new Set<EnvelopeListener>();
  readonly #waiting: Envelope[] = [];
  #delivering = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Delivers an event to all listeners. `remote` events are not sent as webhooks or forwarded to the cluster again. */
  publish(notification: Notification, source: Source = 'local'): void {
    this.#deliver(new NotificationEnvelope(notification, source));
  }

  publishMetrics(report: unknown, source: Source = 'local'): void {
    this.#deliver(new MetricsEnvelope(report, source));
  }

  /** Adds a listener, which is called synchronously and must not block. Returns an unsubscribe function. */
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
