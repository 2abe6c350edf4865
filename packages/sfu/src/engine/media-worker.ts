import { Worker } from 'node:worker_threads';
import type { Log } from '@bloom/log';
import type { RelayStream, RelayStreamOptions } from '@bloom/webrtc';
import type { EngineStats } from '../media-engine.js';
import { MediaError } from '../media-error.js';
import type { RemoteRoom } from './remote-room.js';
import { threadFreed, threadStuck } from './stuck-threads.js';
import {
  asBuffer,
  type FromWorker,
  fromPlainError,
  ownFrame,
  type ToWorker,
  type WorkerCall,
  type WorkerSettings,
} from './worker-protocol.js';

/** Scavenges of this size are rare and short at full load. */
const YOUNG_GENERATION_MB = 64;
const PING_INTERVAL_MS = 1000;
/** A worker that has not answered for this long hangs. Longer than any pause a busy machine may cause. */
const DEFAULT_HANG_MS = 5000;
const CLOSE_TIMEOUT_MS = 3000;
/** A start takes a second or two; this long also on a machine that is very busy. */
const DEFAULT_START_MS = 60_000;
/** A thread that runs JavaScript ends at once when told so. */
const DEFAULT_TERMINATE_MS = 2000;

export interface MediaWorkerOptions {
  /** The compiled `worker-main.js`. */
  entry: URL;
  settings: WorkerSettings;
  log: Log;
  hangMs?: number;
  /** What a start may take until the thread is given up, ms. */
  startMs?: number;
  /** What the thread may take to end once it is told to, ms. */
  terminateMs?: number;
  /** The thread is gone or given up, whatever the cause; its rooms have been told. */
  onExit(reason: string): void;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** One media worker as the main thread sees it: calls, events, relayed connections, and a watchdog. */
export class MediaWorker {
  readonly rooms = new Map<number, RemoteRoom>();
  /** As of the last answer to the watchdog. */
  lastStats: EngineStats | undefined;
  /** UDP port; set once `ready` has resolved. */
  port = 0;
  readonly ready: Promise<void>;
  private readonly thread: Worker;
  private readonly calls = new Map<number, Pending>();
  private readonly relays = new Map<number, RelayStreamOptions>();
  /** The thread is gone or given up. */
  private readonly ended: Promise<void>;
  private readonly watchdog: NodeJS.Timeout;
  private readonly started: Pending = { resolve: () => undefined, reject: () => undefined };
  private tellEnded: () => void = () => undefined;
  private nextNumber = 1;
  /** The watchdog's question is not answered yet. */
  private asked = false;
  /** Looks of the watchdog in a row that found no answer. */
  private looks = 0;
  private gone = false;
  /** Given up: native code holds the thread, which keeps its memory and perhaps a core. */
  private stuck = false;
  private closing = false;
  private reason = 'the media worker ended';

  constructor(private readonly options: MediaWorkerOptions) {
    this.thread = new Worker(options.entry, {
      name: 'bloom-media',
      workerData: options.settings,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.ready = new Promise<void>((resolve, reject) => {
      this.started.resolve = () => resolve();
      this.started.reject = reject;
    });
    // Whoever waits for it hears of it; nobody has to.
    this.ready.catch(() => undefined);
    this.thread.on('message', (message: FromWorker) => this.receive(message));
    this.thread.on('error', (error) => {
      this.reason = `the media worker failed: ${error.message}`;
      options.log.error('media.worker_error', { error });
    });
    this.ended = new Promise((resolve) => {
      this.tellEnded = resolve;
    });
    this.thread.once('exit', () => {
      if (this.stuck) threadFreed();
      this.end();
    });
    this.watchdog = setInterval(() => this.watch(), PING_INTERVAL_MS);
    this.watchdog.unref();
  }

  get alive(): boolean {
    return !this.gone;
  }

  /** Transports of all its rooms, as the main thread knows them. */
  get transports(): number {
    let count = 0;
    for (const room of this.rooms.values()) count += room.transports;
    return count;
  }

  newNumber(): number {
    return this.nextNumber++;
  }

  post(message: ToWorker): void {
    if (!this.gone) this.thread.postMessage(message, []);
  }

  /** As `post`, with memory that is given away. */
  give(message: ToWorker, memory: ArrayBuffer): void {
    if (!this.gone) this.thread.postMessage(message, [memory]);
  }

  /** Where consumers' faults are written. */
  get log(): Log {
    return this.options.log;
  }

  call(message: WorkerCall): Promise<unknown> {
    if (this.gone) return Promise.reject(new MediaError('CLOSED', this.reason));
    const call = this.newNumber();
    return new Promise((resolve, reject) => {
      this.calls.set(call, { resolve, reject });
      this.thread.postMessage({ ...message, call }, []);
    });
  }

  /** A relay client that came over TCP. */
  attachStream(client: RelayStreamOptions): RelayStream {
    const stream = this.newNumber();
    this.relays.set(stream, client);
    this.post({ type: 'relayOpen', stream, address: client.address, port: client.port });
    return {
      receive: (bytes) => {
        if (this.gone) return;
        const frame = ownFrame(bytes);
        this.thread.postMessage({ type: 'relayFrame', stream, frame } satisfies ToWorker, [frame.buffer]);
      },
      closed: () => {
        if (this.relays.delete(stream)) this.post({ type: 'relayClosed', stream });
      },
    };
  }

  /** Ends the thread; its rooms are lost. Idempotent. */
  async close(): Promise<void> {
    if (!this.closing) {
      this.closing = true;
      this.post({ type: 'close' });
      const timer = setTimeout(() => void this.terminate(), CLOSE_TIMEOUT_MS);
      void this.ended.then(() => clearTimeout(timer));
    }
    await this.ended;
  }

  /** Ends the thread at once, as if it had died by itself. */
  async kill(reason: string): Promise<void> {
    this.reason = reason;
    await this.terminate();
  }

  /** Resolves when the thread has ended, or is given up. */
  private async terminate(): Promise<void> {
    clearInterval(this.watchdog);
    void this.thread.terminate();
    const overdue = setTimeout(() => {
      this.stuck = true;
      this.options.log.error('media.worker_stuck', { port: this.port, reason: this.reason });
      threadStuck();
      this.end();
    }, this.options.terminateMs ?? DEFAULT_TERMINATE_MS);
    await this.ended;
    clearTimeout(overdue);
  }

  private receive(message: FromWorker): void {
    if (this.gone) return;
    switch (message.type) {
      case 'ready':
        this.port = message.port;
        this.started.resolve(undefined);
        return;
      case 'failed':
        this.started.reject(fromPlainError(message.error));
        void this.terminate();
        return;
      case 'reply': {
        const pending = this.calls.get(message.call);
        this.calls.delete(message.call);
        if (message.error === undefined) pending?.resolve(message.value);
        else pending?.reject(fromPlainError(message.error));
        return;
      }
      case 'event':
        this.rooms.get(message.room)?.onEvent(message.event);
        return;
      case 'feedKeyFrame':
        this.rooms.get(message.room)?.frames.keyFrameWanted(message.feed);
        return;
      case 'tapEvent':
        this.rooms.get(message.room)?.frames.tapEvent(message.tap, message.event);
        return;
      case 'log':
        this.options.log[message.method](message.event, message.fields);
        return;
      case 'relayFrame':
        this.relays.get(message.stream)?.send(asBuffer(message.frame));
        return;
      case 'relayEnd': {
        const client = this.relays.get(message.stream);
        this.relays.delete(message.stream);
        client?.close();
        return;
      }
    }
  }

  private watch(): void {
    // Looks are counted, not time: when the main thread stood still, the answer waits behind this one.
    this.looks++;
    const silentMs = this.looks * PING_INTERVAL_MS;
    if (this.port === 0) {
      const startMs = this.options.startMs ?? DEFAULT_START_MS;
      if (silentMs >= startMs) void this.kill(`the media worker did not start within ${startMs} ms`);
      return;
    }
    if (this.asked) {
      if (silentMs < (this.options.hangMs ?? DEFAULT_HANG_MS)) return;
      this.options.log.error('media.worker_hangs', { port: this.port });
      void this.kill('the media worker did not answer');
      return;
    }
    this.asked = true;
    this.looks = 0;
    this.call({ type: 'stats' }).then(
      (stats) => {
        this.lastStats = stats as EngineStats;
        this.asked = false;
      },
      () => undefined,
    );
  }

  private end(): void {
    if (this.gone) return;
    this.gone = true;
    this.tellEnded();
    clearInterval(this.watchdog);
    const error = new MediaError('CLOSED', this.reason);
    this.started.reject(new MediaError('WORKER_FAILED', this.reason));
    for (const { reject } of this.calls.values()) reject(error);
    this.calls.clear();
    for (const client of this.relays.values()) client.close();
    this.relays.clear();
    const rooms = [...this.rooms.values()];
    this.rooms.clear();
    if (!this.closing) for (const room of rooms) room.fail(this.reason);
    this.options.onExit(this.reason);
  }
}
