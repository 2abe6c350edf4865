import type { Duplex } from 'node:stream';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { networkOf, UnauthenticatedSockets, type Upgrade } from '@bloom/net';
import { awakeClock, inTime, LogThrottle, Timer, type Clock } from '@bloom/time';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { Envelope, NotificationBus } from './bus.js';
import { FrameBatch, type Interest } from './frame-batch.js';
import { MAX_REQUEST_BYTES, ServerSession, type SessionAction } from './server-session.js';

/** Bytes that may be queued for one subscriber before its socket is closed. */
const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;
/** Above this a subscriber gets no data channel messages, so that clients cannot get it closed by sending many. */
const MAX_BUFFERED_FOR_DATA = 1024 * 1024;
/** A single event is sent immediately. Events after it wait at most this long, so that bursts need few writes. */
export const BATCH_INTERVAL_MS = 20;
const MAX_BATCH_BYTES = 256 * 1024;
/** Time limit of a closing handshake. */
const CLOSE_TIMEOUT_MS = 5_000;
const SWEEP_INTERVAL_MS = 1_000;

export interface ServerSocketOptions {
  bus: NotificationBus;
  /** `JF_SERVER_API_TOKEN` */
  token: string;
  log: Log;
  metrics?: Pick<Metrics, 'slowSubscriberClosed' | 'dataEventsDropped'>;
  /** Default `MAX_BUFFERED_BYTES`. */
  maxBufferedBytes?: number;
  clock?: Clock;
}

interface Subscriber {
  readonly id: number;
  readonly webSocket: WebSocket;
  /** The connection beneath the websocket; joined frames are written to it directly. */
  readonly connection: Duplex;
  readonly address: string;
  readonly session: ServerSession;
  readonly interest: Interest;
  readonly authenticated: () => void;
  /** When the closing handshake started. */
  closingAt: number | undefined;
}

/**
 * The websocket at `/socket/server/websocket`: a shell around `ServerSession`. The HTTP listener checks the path and
 * `Origin` and passes upgrades on.
 */
export class ServerSocket {
  readonly #options: ServerSocketOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_REQUEST_BYTES,
    clientTracking: false,
    // Events bypass the library as complete frames, which per-message compression would break.
    perMessageDeflate: false,
  });
  readonly #subscribers = new Set<Subscriber>();
  readonly #batch = new FrameBatch();
  readonly #throttle = new LogThrottle();
  readonly #unauthenticated = new UnauthenticatedSockets({
    now: () => this.#clock.now(),
    onDrop: (dropped) => {
      if (!this.#throttle.allows(networkOf(dropped.address))) return;
      this.#options.log.warn('server_socket.stranger_dropped', dropped);
    },
  });
  readonly #unsubscribe: () => void;
  readonly #sweeper: Timer;
  readonly #clock: Clock;
  readonly #flushTimer: Timer;
  #immediate: NodeJS.Immediate | undefined;
  #flushedAt = Number.NEGATIVE_INFINITY;
  #nextId = 1;

  constructor(options: ServerSocketOptions) {
    this.#options = options;
    this.#clock = options.clock ?? awakeClock;
    this.#flushTimer = new Timer(this.#clock);
    this.#sweeper = new Timer(this.#clock);
    this.#unsubscribe = options.bus.subscribe((envelope) => this.#deliver(envelope));
  }

  /** Returns false when too many clients are still authenticating; the caller then refuses the upgrade. */
  handleUpgrade({ request, socket, head, address }: Upgrade): boolean {
    let webSocket: WebSocket | undefined;
    const isOpen = () => webSocket === undefined || webSocket.readyState === webSocket.OPEN;
    const authenticated = this.#unauthenticated.add(socket, { address, isOpen });
    if (authenticated === undefined) return false;
    this.#server.handleUpgrade(request, socket, head, (accepted) => {
      webSocket = accepted;
      this.#accept({ webSocket, connection: socket, address, authenticated });
    });

    return true;
  }

  /** Number of connections, authenticated or not. */
  get connections(): number {
    return this.#subscribers.size;
  }

  /** True if at least one subscriber wants events of this kind. */
  wants(kind: keyof Interest): boolean {
    for (const { interest } of this.#subscribers) if (interest[kind]) return true;

    return false;
  }

  /** Sends pings, and ends idle connections and overdue closing handshakes. */
  #sweep(): void {
    const now = this.#clock.now();

    for (const subscriber of this.#subscribers) {
      if (subscriber.closingAt === undefined) this.#act(subscriber, subscriber.session.tick(now));
      else if (now - subscriber.closingAt >= CLOSE_TIMEOUT_MS) subscriber.webSocket.terminate();
    }
  }

  /** Sends pending events and closes every connection with 1001. Resolves once all are closed, after at most 5 s. */
  async close(): Promise<void> {
    this.#unsubscribe();
    this.#sweeper.stop();
    this.#flush();

    await Promise.all(
      [...this.#subscribers].map(async (subscriber) => {
        const closed = new Promise<void>((resolve) => subscriber.webSocket.once('close', () => resolve()));
        this.#closeSocket(subscriber, 1001, 'server stops');
        const late = (): void => subscriber.webSocket.terminate();
        await inTime(closed, { timeoutMs: CLOSE_TIMEOUT_MS, late, clock: this.#clock });
      }),
    );
  }

  #accept(accepted: Pick<Subscriber, 'webSocket' | 'connection' | 'address' | 'authenticated'>): void {
    const { webSocket } = accepted;
    const subscriber: Subscriber = {
      ...accepted,
      id: this.#nextId,
      session: new ServerSession(this.#options.token, this.#clock.now()),
      interest: { notification: false, metrics: false, data: false, recording: false },
      closingAt: undefined,
    };
    this.#nextId += 1;
    this.#subscribers.add(subscriber);
    if (!this.#sweeper.running) this.#sweeper.repeat(SWEEP_INTERVAL_MS, () => this.#sweep());
    this.#options.log.debug('server_socket.opened', { socket: subscriber.id });

    webSocket.on('message', (data: RawData, isBinary: boolean) => {
      const { session } = subscriber;
      this.#act(
        subscriber,
        isBinary ? session.binary(toBytes(data), this.#clock.now()) : session.text(this.#clock.now()),
      );
      if (session.isAuthenticated) subscriber.authenticated();
    });
    webSocket.on('pong', () => subscriber.session.pong(this.#clock.now()));
    webSocket.on('ping', () => subscriber.session.pong(this.#clock.now()));
    webSocket.on('error', (error) => {
      this.#options.log.debug('server_socket.failed', { socket: subscriber.id, error });
    });
    webSocket.on('close', (code) => {
      this.#subscribers.delete(subscriber);
      if (this.#subscribers.size === 0) this.#sweeper.stop();
      this.#options.log.debug('server_socket.closed', { socket: subscriber.id, code });
    });
  }

  #act(subscriber: Subscriber, actions: readonly SessionAction[]): void {
    for (const action of actions) {
      switch (action.type) {
        case 'send':
          subscriber.webSocket.send(action.bytes);
          break;
        case 'subscribe':
          // Events published before the subscription must not reach this subscriber.
          this.#flush();
          subscriber.interest[action.eventType === 'serverNotification' ? 'notification' : action.eventType] = true;
          this.#options.log.info('server_socket.subscribed', { socket: subscriber.id, events: action.eventType });
          break;
        case 'ping':
          subscriber.webSocket.ping();
          break;
        case 'close':
          this.#refused(subscriber, action.reason);
          this.#closeSocket(subscriber, action.code, action.reason);
          break;
        case 'terminate':
          this.#options.log.info('server_socket.idle', { socket: subscriber.id });
          subscriber.webSocket.terminate();
          break;
      }
    }
  }

  #refused({ id, address }: Subscriber, reason: string): void {
    if (!this.#throttle.allows(`${reason} ${networkOf(address)}`)) return;
    this.#options.log.info('server_socket.refused', { socket: id, address, reason });
  }

  #deliver(envelope: Envelope): void {
    if (!this.wants(envelope.kind)) return;

    this.#batch.add(envelope);
    if (this.#batch.byteLength >= MAX_BATCH_BYTES) this.#flush();
    else this.#scheduleFlush();
  }

  #scheduleFlush(): void {
    if (this.#immediate !== undefined || this.#flushTimer.running) return;
    const wait = this.#flushedAt + BATCH_INTERVAL_MS - this.#clock.now();

    if (wait <= 0) {
      // Flush at the end of this event loop iteration, so that simultaneous events are sent together.
      this.#immediate = setImmediate(() => this.#flush());
    } else this.#flushTimer.start(wait, () => this.#flush());
  }

  #flush(): void {
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    this.#flushTimer.stop();
    if (this.#batch.isEmpty) return;

    this.#flushedAt = this.#clock.now();
    const dataEvents = this.#batch.count('data');
    const framesFor = this.#batch.take();
    for (const subscriber of this.#subscribers) {
      const { interest, connection } = subscriber;
      const data = interest.data && connection.writableLength <= MAX_BUFFERED_FOR_DATA;
      if (data !== interest.data) this.#options.metrics?.dataEventsDropped(dataEvents);
      const frames = framesFor({ ...interest, data });
      if (frames !== undefined) this.#write(subscriber, frames);
    }
  }

  #write(subscriber: Subscriber, frames: Buffer): void {
    const { webSocket, connection } = subscriber;
    if (subscriber.closingAt !== undefined || webSocket.readyState !== webSocket.OPEN) return;

    const buffered = connection.writableLength;
    // A batch above the limit is still sent to a subscriber that has read everything before it.
    if (buffered > 0 && buffered + frames.byteLength > (this.#options.maxBufferedBytes ?? MAX_BUFFERED_BYTES)) {
      this.#options.log.warn('server_socket.too_slow', { socket: subscriber.id, buffered });
      this.#options.metrics?.slowSubscriberClosed();
      this.#closeSocket(subscriber, 1013, 'subscriber too slow');
      return;
    }

    connection.write(frames);
  }

  #closeSocket(subscriber: Subscriber, code: number, reason: string): void {
    subscriber.closingAt ??= this.#clock.now();
    subscriber.webSocket.close(code, reason);
  }
}

function toBytes(data: RawData): Uint8Array {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);

  return Array.isArray(data) ? Buffer.concat(data) : data;
}
