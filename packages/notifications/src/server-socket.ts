import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { Envelope, NotificationBus } from './bus.js';
import { MAX_REQUEST_BYTES, ServerSession, type SessionAction } from './server-session.js';

/** Bytes that may wait for one subscriber before it is closed. */
export const MAX_BUFFERED_BYTES = 8 * 1024 * 1024;
/** Milliseconds that a closing handshake may take. */
const CLOSE_TIMEOUT_MS = 5_000;
const SWEEP_INTERVAL_MS = 1_000;

export interface ServerSocketOptions {
  bus: NotificationBus;
  /** `JF_SERVER_API_TOKEN` */
  token: string;
  log: Log;
  metrics?: Pick<Metrics, 'slowSubscriberClosed'>;
  /** Default `MAX_BUFFERED_BYTES`. */
  maxBufferedBytes?: number;
  /** Milliseconds on a clock that only goes forward. Default: the process's. */
  now?: () => number;
}

interface Subscriber {
  readonly id: number;
  readonly socket: WebSocket;
  readonly session: ServerSession;
  notifications: boolean;
  metrics: boolean;
  /** When a closing handshake began. */
  closingAt: number | undefined;
}

/**
 * The websocket at `/socket/server/websocket`: the thin shell around `ServerSession`. Whoever owns the HTTP listener
 * hands upgrades over (path and `Origin` are checked there).
 */
export class ServerSocket {
  private readonly server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_REQUEST_BYTES,
    clientTracking: false,
  });
  private readonly subscribers = new Set<Subscriber>();
  private readonly unsubscribe: () => void;
  private readonly sweeper: NodeJS.Timeout;
  private readonly now: () => number;
  private nextId = 1;

  constructor(private readonly options: ServerSocketOptions) {
    this.now = options.now ?? (() => performance.now());
    this.unsubscribe = options.bus.subscribe((envelope) => this.deliver(envelope));
    this.sweeper = setInterval(() => this.sweep(), SWEEP_INTERVAL_MS);
    this.sweeper.unref();
  }

  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.server.handleUpgrade(request, socket, head, (webSocket) => this.accept(webSocket));
  }

  /** Connections, authenticated or not. */
  get connections(): number {
    return this.subscribers.size;
  }

  /** Pings, idle connections and overdue closing handshakes; called once a second. */
  sweep(): void {
    const now = this.now();

    for (const subscriber of this.subscribers) {
      if (subscriber.closingAt === undefined) this.act(subscriber, subscriber.session.tick(now));
      else if (now - subscriber.closingAt >= CLOSE_TIMEOUT_MS) subscriber.socket.terminate();
    }
  }

  /** Closes every connection with 1001; resolves when all are gone, after 5 s at the latest. */
  async close(): Promise<void> {
    this.unsubscribe();
    clearInterval(this.sweeper);

    await Promise.all(
      [...this.subscribers].map(async (subscriber) => {
        const gone = new Promise<void>((resolve) => subscriber.socket.once('close', () => resolve()));
        const overdue = setTimeout(() => subscriber.socket.terminate(), CLOSE_TIMEOUT_MS);

        this.closeSocket(subscriber, 1001, 'server stops');
        await gone;
        clearTimeout(overdue);
      }),
    );
  }

  private accept(socket: WebSocket): void {
    const subscriber: Subscriber = {
      id: this.nextId,
      socket,
      session: new ServerSession(this.options.token, this.now()),
      notifications: false,
      metrics: false,
      closingAt: undefined,
    };
    this.nextId += 1;
    this.subscribers.add(subscriber);
    this.options.log.debug('server_socket.opened', { socket: subscriber.id });

    socket.on('message', (data: RawData, isBinary: boolean) => {
      const { session } = subscriber;
      this.act(subscriber, isBinary ? session.binary(toBytes(data), this.now()) : session.text(this.now()));
    });
    socket.on('pong', () => subscriber.session.pong(this.now()));
    socket.on('ping', () => subscriber.session.pong(this.now()));
    socket.on('error', (error) => {
      this.options.log.debug('server_socket.failed', { socket: subscriber.id, error });
    });
    socket.on('close', (code) => {
      this.subscribers.delete(subscriber);
      this.options.log.debug('server_socket.closed', { socket: subscriber.id, code });
    });
  }

  private act(subscriber: Subscriber, actions: readonly SessionAction[]): void {
    for (const action of actions) {
      switch (action.type) {
        case 'send':
          this.send(subscriber, action.bytes);
          break;
        case 'subscribe':
          if (action.eventType === 'metrics') subscriber.metrics = true;
          else subscriber.notifications = true;
          this.options.log.info('server_socket.subscribed', { socket: subscriber.id, events: action.eventType });
          break;
        case 'ping':
          subscriber.socket.ping();
          break;
        case 'close':
          this.options.log.info('server_socket.refused', { socket: subscriber.id, reason: action.reason });
          this.closeSocket(subscriber, action.code, action.reason);
          break;
        case 'terminate':
          this.options.log.info('server_socket.idle', { socket: subscriber.id });
          subscriber.socket.terminate();
          break;
      }
    }
  }

  private deliver(envelope: Envelope): void {
    for (const subscriber of this.subscribers) {
      const wanted = envelope.kind === 'metrics' ? subscriber.metrics : subscriber.notifications;
      if (wanted) this.send(subscriber, envelope.bytes);
    }
  }

  private send(subscriber: Subscriber, bytes: Uint8Array): void {
    const { socket } = subscriber;
    if (subscriber.closingAt !== undefined || socket.readyState !== socket.OPEN) return;

    if (socket.bufferedAmount + bytes.byteLength > (this.options.maxBufferedBytes ?? MAX_BUFFERED_BYTES)) {
      this.options.log.warn('server_socket.too_slow', { socket: subscriber.id, buffered: socket.bufferedAmount });
      this.options.metrics?.slowSubscriberClosed();
      this.closeSocket(subscriber, 1013, 'subscriber too slow');
      return;
    }

    socket.send(bytes, { binary: true });
  }

  private closeSocket(subscriber: Subscriber, code: number, reason: string): void {
    subscriber.closingAt ??= this.now();
    subscriber.socket.close(code, reason);
  }
}

function toBytes(data: RawData): Uint8Array {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);

  return Array.isArray(data) ? Buffer.concat(data) : data;
}
