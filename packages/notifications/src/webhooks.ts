import { createHmac } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { printableUrl, type Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { type Notification, UPLOAD_REPORTS } from '@bloom/protocol';
import { awakeClock, type Clock, Timer } from '@bloom/time';
import type { NotificationBus } from './bus.js';
import { openWebhookPoster, type WebhookPoster } from './webhook-post.js';
import { type Backlog, WebhookQueue } from './webhook-queue.js';

export interface WebhooksOptions {
  bus: NotificationBus;
  log: Log;
  metrics?: Pick<Metrics, 'webhookFailed' | 'webhookDropped' | 'dataEventsDropped'>;
  /** `JF_WEBHOOK_RETRIES` */
  retries?: number;
  /** `JF_WEBHOOK_SECRET` */
  secret?: string | null;
  /** Milliseconds from sending a request to receiving the status. Default 5,000. */
  timeoutMs?: number;
  /** Dates the signatures and limits the waiting; tests replace it. Default `awakeClock`. */
  clock?: Clock;
  /** Sends the requests; a simulation replaces it. Default: HTTP. */
  poster?: WebhookPoster;
  /** Delays between attempts; tests replace it. */
  delay?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Most bytes of undelivered events that move with a room; as much again is encoded in its state. */
const MAX_MOVED_BYTES = 1024 * 1024;
/** A request of another node may end this much later than its time limit. */
const MARGIN_MS = 1_000;

interface Registration {
  readonly url: string;
  readonly queue: WebhookQueue;
  /** Announced events that may still follow the end of the room. */
  holds: number;
  ended: boolean;
  /** Runs while the room's former node may still be sending an event. */
  awaiting?: Timer | undefined;
}

/**
 * Sends the events of each room to the URL it was created with: one ordered queue per room, so that a slow receiver
 * delays only its own room (docs/reference/notifications.md, "Webhooks").
 */
export class Webhooks {
  readonly #options: WebhooksOptions;
  /** Queues of current rooms, by room id. */
  readonly #current = new Map<string, Registration>();
  /** Queues of ended rooms whose last events have not been delivered yet. */
  readonly #leaving = new Map<Registration, string>();
  readonly #abort = new AbortController();
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #poster: WebhookPoster;
  readonly #unsubscribe: () => void;

  constructor(options: WebhooksOptions) {
    this.#options = options;
    const { timeoutMs = 5_000, secret = null, clock = awakeClock } = options;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    const headers = (body: Uint8Array): OutgoingHttpHeaders => ({
      'content-type': 'application/x-protobuf',
      ...(secret === null ? {} : signatures(secret, body, clock.wall())),
    });
    this.#poster = options.poster ?? openWebhookPoster({ timeoutMs, headers, clock });
    this.#unsubscribe = options.bus.subscribe((envelope) => {
      if (envelope.kind !== 'metrics' && envelope.source === 'local') {
        this.#route(envelope.notification, () => envelope.bytes);
      }
    });
  }

  /**
   * Registers the URL of a room. Must be called before the room's first event is published. `backlog`: what the former
   * node of a room that has moved here has not sent. If an event is in flight there, the others wait for `release`, for
   * one second longer than a request can take.
   */
  register(roomId: string, url: string, backlog?: Backlog): void {
    const replaced = this.#current.get(roomId);
    if (replaced !== undefined) this.#end(roomId, replaced);

    // A receiver cannot tell rooms with the same id apart: the end of the old one must not arrive after the start of
    // the new.
    const [last] = [...this.#leaving].find(([before, id]) => id === roomId && before.url === url) ?? [];
    const queue = last?.queue ?? this.#newQueue(roomId, url);
    const registration: Registration = { url, queue, holds: 0, ended: false };
    this.#current.set(roomId, registration);
    if (backlog === undefined) return;
    if (backlog.inFlight) {
      queue.pause();
      registration.awaiting = new Timer(this.#clock);
      registration.awaiting.start(this.#timeoutMs + MARGIN_MS, () => this.#release(registration, null));
    }
    queue.putFirst(backlog.waiting);
  }

  /**
   * Begins no further request for a room that is about to move, and returns what is left to send. Undefined, without
   * effect: it is too much, or an event of the room's former node is still awaited.
   */
  pause(roomId: string): Backlog | undefined {
    const registration = this.#current.get(roomId);
    if (registration === undefined) return { waiting: [], inFlight: false };
    if (registration.awaiting !== undefined) return undefined;
    const backlog = registration.queue.pause();
    if (backlog.waiting.reduce((sum, { byteLength }) => sum + byteLength, 0) <= MAX_MOVED_BYTES) return backlog;
    registration.queue.resume();

    return undefined;
  }

  /** Goes on with the events of a room that stays. Those that wait for its former node go on doing so. */
  resume(roomId: string): void {
    const registration = this.#current.get(roomId);
    if (registration?.awaiting === undefined) registration?.queue.resume();
  }

  /**
   * Leaves what `pause` has returned to the next node of a room. Resolves with the event that was in flight if it has
   * not arrived and is to be sent again, otherwise with null.
   */
  async give(roomId: string): Promise<Uint8Array | null> {
    return (await this.#current.get(roomId)?.queue.give()) ?? null;
  }

  /** The former node of a room sends nothing more. `event` is what it could not deliver; null = nothing. */
  release(roomId: string, event: Uint8Array | null): void {
    const current = this.#current.get(roomId);
    if (current !== undefined) this.#release(current, event);
    // The room may have ended meanwhile.
    for (const [registration, id] of this.#leaving) if (id === roomId) this.#release(registration, event);
  }

  #release(registration: Registration, event: Uint8Array | null): void {
    // Too late: the events after it are being sent.
    if (registration.awaiting === undefined) return;
    registration.awaiting.stop();
    registration.awaiting = undefined;
    if (event !== null) registration.queue.putFirst([event]);
    registration.queue.resume();
  }

  #newQueue(roomId: string, url: string): WebhookQueue {
    const { log, metrics, retries, delay } = this.#options;

    return new WebhookQueue({
      url,
      post: this.#poster.post,
      clock: this.#clock,
      retries: retries ?? 0,
      log: log.child({ roomId, url: printableUrl(url) }),
      signal: this.#abort.signal,
      ...(metrics === undefined ? {} : { metrics }),
      ...(delay === undefined ? {} : { delay }),
    });
  }

  /** Keeps the URL after the room has ended, for an upload report, until the returned function is called. */
  hold(roomId: string): () => void {
    const registration = this.#current.get(roomId);
    if (registration === undefined) return () => undefined;

    registration.holds += 1;
    let held = true;

    return () => {
      if (!held) return;
      held = false;
      registration.holds -= 1;
      this.#forgetWhenDone(registration);
    };
  }

  /** Resolves when no event of the room is waiting or being sent. */
  async settled(roomId: string): Promise<void> {
    await this.#current.get(roomId)?.queue.idle();
  }

  /** Sends the remaining events of a room that goes on at another node; further ones are ignored. */
  leave(roomId: string): void {
    const registration = this.#current.get(roomId);
    if (registration !== undefined) this.#end(roomId, registration);
  }

  /** Events waiting or being sent. */
  get pending(): number {
    return [...this.#queues()].reduce((sum, queue) => sum + queue.size, 0);
  }

  /** Sends pending events for at most `timeoutMs`; further events are ignored. */
  async close({ timeoutMs }: { timeoutMs: number }): Promise<void> {
    this.#unsubscribe();

    const overdue = this.#clock.setTimeout(() => {
      this.#abort.abort();
      for (const queue of this.#queues()) queue.resume();
    }, timeoutMs);
    await Promise.all([...this.#queues()].map((queue) => queue.idle()));
    this.#clock.clearTimeout(overdue);
    this.#abort.abort();
    this.#current.clear();
    this.#leaving.clear();
    this.#poster.close();
  }

  #queues(): Set<WebhookQueue> {
    return new Set([...this.#current.values(), ...this.#leaving.keys()].map(({ queue }) => queue));
  }

  #route(notification: Notification, bytes: () => Uint8Array): void {
    const registration = this.#receiverOf(notification);
    if (registration === undefined) return;

    if (notification.type === 'dataMessage' && !registration.queue.hasRoomForData) {
      return this.#options.metrics?.dataEventsDropped(1);
    }
    registration.queue.push(bytes());
    if (notification.type === 'roomDeleted' || notification.type === 'roomCrashed') {
      this.#end(notification.roomId, registration);
    }
  }

  /** Upload reports belong to the ended room, even if a new room has its id. */
  #receiverOf(notification: Notification): Registration | undefined {
    if (UPLOAD_REPORTS.has(notification.type)) {
      for (const [registration, roomId] of this.#leaving) {
        if (roomId === notification.roomId && registration.holds > 0) return registration;
      }
    }

    return this.#current.get(notification.roomId);
  }

  #end(roomId: string, registration: Registration): void {
    registration.ended = true;
    if (this.#current.get(roomId) === registration) this.#current.delete(roomId);
    this.#leaving.set(registration, roomId);
    this.#forgetWhenDone(registration);
  }

  #forgetWhenDone(registration: Registration): void {
    if (!registration.ended || registration.holds > 0) return;

    void registration.queue.idle().then(() => {
      if (registration.holds === 0) this.#leaving.delete(registration);
    });
  }
}

/**
 * Returns the signatures of a request sent at `wallMs`: one over the body alone, and one over `<Unix seconds>.<body>`,
 * which lets a receiver recognise a replayed request.
 */
function signatures(secret: string, body: Uint8Array, wallMs: number): Record<string, string> {
  const seconds = Math.floor(wallMs / 1_000);
  const plain = createHmac('sha256', secret).update(body).digest('hex');
  const timed = createHmac('sha256', secret).update(`${seconds}.`).update(body).digest('hex');

  return { 'x-bloom-signature': `sha256=${plain}`, 'x-bloom-timed-signature': `t=${seconds},sha256=${timed}` };
}
