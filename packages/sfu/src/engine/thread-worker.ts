import type { EventLoopUtilization } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { type MessagePort, Worker } from 'node:worker_threads';
import type { Log } from '@bloom/log';
import { type Clock, Timer } from '@bloom/time';
import type { RelayStream, RelayStreamOptions } from '@bloom/webrtc';
import type { MediaAnswer, MediaCall } from '../room-command.js';
import type { EngineStats, ProfileAction } from '../media-engine.js';
import { asBuffer } from '../media-frames.js';
import { MediaError } from '../media-error.js';
import type { MediaWorker, WorkerPort, WorkerRoom } from './media-worker.js';
import type { LinkEnd } from './ring-link.js';
import {
  type FromWorker,
  fromPlainError,
  ownFrame,
  type ToWorker,
  type WorkerCall,
  type WorkerPost,
  type WorkerSettings,
} from './worker-protocol.js';

/**
 * Young generation size of a worker: scavenges of 4 MiB are short and stay in the CPU cache, whereas those of 64 MiB
 * took 5 ms alongside data channels. Set as a flag, because the main thread's command line flag overrides
 * `resourceLimits`.
 */
const YOUNG_GENERATION = '--max-semi-space-size=4';
const PING_INTERVAL_MS = 1000;
/**
 * A worker that has not answered for this long is considered hung. Longer than any pause that a busy machine may cause.
 */
const HANG_MS = 5000;
const CLOSE_TIMEOUT_MS = 3000;
/** A start takes a second or two; a very busy machine may need this long. */
const START_MS = 60_000;
/** A thread that runs JavaScript terminates immediately. */
const TERMINATE_MS = 2000;

interface ThreadWorkerOptions {
  /** Number of the worker on this node. */
  id: number;
  /** The compiled `worker-main.js`. */
  entry: URL;
  settings: WorkerSettings;
  log: Log;
  clock: Clock;
  /** Called once when the thread has ended or been abandoned, for any cause, after its rooms have been notified. */
  onExit(reason: string): void;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

let stuck = 0;

/**
 * Returns how many of this process's media workers were given up because native code holds their threads, which nothing
 * can interrupt. `process.exit` waits for any such thread.
 */
export function stuckThreads(): number {
  return stuck;
}

/**
 * A media worker on its own thread, as the main thread sees it: calls, reports, relayed connections, and a watchdog.
 */
export class ThreadWorker implements MediaWorker {
  readonly rooms = new Map<number, WorkerRoom>();
  /** The last answer to the watchdog. */
  lastStats: EngineStats | undefined;
  port = 0;
  /** Resolves once `port` is known; rejects if the thread cannot start. */
  readonly ready: Promise<void>;
  readonly #options: ThreadWorkerOptions;
  readonly #thread: Worker;
  readonly #calls = new Map<number, Pending>();
  readonly #relays = new Map<number, RelayStreamOptions>();
  /** Resolves once the thread has ended or been abandoned. */
  readonly #ended: Promise<void>;
  readonly #watchdog: Timer;
  /** Event loop utilization at the last call of `busyShare` by each caller. */
  readonly #loops = new Map<string, EventLoopUtilization>();
  readonly #started: Pending = { resolve: () => undefined, reject: () => undefined };
  #resolveEnded: () => void = () => undefined;
  /** Shared by calls and relayed streams. */
  #lastNumber = 0;
  /** True while a watchdog ping is unanswered. */
  #pinged = false;
  /** Consecutive watchdog checks without an answer. */
  #looks = 0;
  #gone = false;
  /** Given up: native code holds the thread, which keeps its memory and perhaps a core. */
  #stuck = false;
  #closing = false;
  #reason = 'the media worker ended';

  constructor(options: ThreadWorkerOptions) {
    this.#options = options;
    setFlagsFromString(YOUNG_GENERATION);
    this.#thread = new Worker(options.entry, { name: 'bloom-media', workerData: options.settings });
    this.ready = new Promise<void>((resolve, reject) => {
      this.#started.resolve = () => resolve();
      this.#started.reject = reject;
    });
    // Nothing may be awaiting a replacement, so without this its failure would be an unhandled rejection.
    this.ready.catch(() => undefined);
    this.#thread.on('message', (message: FromWorker) => this.#receive(message));
    this.#thread.on('error', (error) => {
      this.#reason = `the media worker failed: ${error.message}`;
      options.log.error('media.worker_error', { error });
    });
    this.#ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    this.#thread.once('exit', () => {
      if (this.#stuck) stuck -= 1;
      this.#end();
    });
    this.#watchdog = new Timer(options.clock);
    this.#watchdog.repeat(PING_INTERVAL_MS, () => this.#watch());
  }

  get id(): number {
    return this.#options.id;
  }

  get alive(): boolean {
    return !this.#gone;
  }

  portTo(room: number): WorkerPort {
    return {
      post: (command) => this.#post({ type: 'room', room, command }),
      give: (command) => {
        const data = ownFrame(command.frame.data);
        const frame = { ...command.frame, data };
        this.#post({ type: 'room', room, command: { ...command, frame } }, [data.buffer]);
      },
      call: <C extends MediaCall>(command: C) => this.#call({ type: 'room', room, command }) as Promise<MediaAnswer<C>>,
      close: async () => {
        // A worker that dies during the call has already closed the room itself.
        await this.#call({ type: 'closeRoom', room }).catch(() => undefined);
        this.rooms.delete(room);
      },
    };
  }

  async open(number: number, room: WorkerRoom): Promise<void> {
    this.rooms.set(number, room);
    await this.#call({ type: 'openRoom', room: number, roomId: room.roomId });
  }

  async stats(): Promise<EngineStats> {
    return (await this.#call({ type: 'stats' })) as EngineStats;
  }

  async profile(action: ProfileAction): Promise<string | undefined> {
    return (await this.#call({ type: 'profile', action })) as string | undefined;
  }

  busyShare(by: 'metrics' | 'assignment'): number {
    const now = this.#thread.performance.eventLoopUtilization();
    const { active, idle } = this.#loops.get(by) ?? { active: 0, idle: 0 };
    this.#loops.set(by, now);
    const busyMs = now.active - active;
    const lastedMs = busyMs + now.idle - idle;

    // The two clocks are read one after the other, so they may disagree over a short period.
    return lastedMs <= 0 ? 0 : Math.min(1, Math.max(0, busyMs / lastedMs));
  }

  link(end: LinkEnd): void {
    this.#post({ type: 'link', end }, [end.port]);
  }

  unlink(worker: number): void {
    this.#post({ type: 'unlink', worker });
  }

  attachStream(client: RelayStreamOptions): RelayStream {
    const stream = this.#newNumber();
    this.#relays.set(stream, client);
    const { address, port, secure } = client;
    this.#post({ type: 'relayOpen', stream, address, port, secure });
    return {
      receive: (bytes) => {
        if (this.#gone) return;
        const frame = ownFrame(bytes);
        this.#post({ type: 'relayFrame', stream, frame }, [frame.buffer]);
      },
      closed: () => {
        if (this.#relays.delete(stream)) this.#post({ type: 'relayClosed', stream });
      },
    };
  }

  async close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      this.#post({ type: 'close' });
      const timer = setTimeout(() => void this.#terminate(), CLOSE_TIMEOUT_MS);
      void this.#ended.then(() => clearTimeout(timer));
    }
    await this.#ended;
  }

  async kill(reason: string): Promise<void> {
    this.#reason = reason;
    await this.#terminate();
  }

  /** Resolves once the thread has ended or been abandoned. */
  async #terminate(): Promise<void> {
    this.#watchdog.stop();
    void this.#thread.terminate();
    const overdue = new Timer(this.#options.clock);
    overdue.start(TERMINATE_MS, () => {
      this.#stuck = true;
      this.#options.log.error('media.worker_stuck', { port: this.port, reason: this.#reason });
      stuck += 1;
      this.#end();
    });
    await this.#ended;
    overdue.stop();
  }

  #newNumber(): number {
    return ++this.#lastNumber;
  }

  #post(message: WorkerPost, transfer: (ArrayBuffer | MessagePort)[] = []): void {
    if (!this.#gone) this.#thread.postMessage(message satisfies ToWorker, transfer);
  }

  #call(message: WorkerCall): Promise<unknown> {
    if (this.#gone) return Promise.reject(new MediaError('CLOSED', this.#reason));
    const call = this.#newNumber();
    return new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve, reject });
      this.#thread.postMessage({ ...message, call } satisfies ToWorker, []);
    });
  }

  #receive(message: FromWorker): void {
    if (this.#gone) return;
    switch (message.type) {
      case 'ready':
        this.port = message.port;
        this.#started.resolve(undefined);
        return;
      case 'failed':
        this.#started.reject(fromPlainError(message.error));
        void this.#terminate();
        return;
      case 'reply': {
        const pending = this.#calls.get(message.call);
        this.#calls.delete(message.call);
        if (message.error === undefined) pending?.resolve(message.value);
        else pending?.reject(fromPlainError(message.error));
        return;
      }
      case 'report':
        this.rooms.get(message.room)?.receive(message.report);
        return;
      case 'log':
        this.#options.log[message.method](message.event, message.fields);
        return;
      case 'relayFrame':
        this.#relays.get(message.stream)?.send(asBuffer(message.frame));
        return;
      case 'relayAllocated':
        this.#relays.get(message.stream)?.allocated();
        return;
      case 'relayEnd': {
        const client = this.#relays.get(message.stream);
        this.#relays.delete(message.stream);
        client?.close();
        return;
      }
    }
  }

  #watch(): void {
    // Count checks instead of time: after a pause of the main thread the answer is still queued behind this call.
    this.#looks++;
    const silentMs = this.#looks * PING_INTERVAL_MS;
    if (this.port === 0) {
      if (silentMs >= START_MS) void this.kill(`the media worker did not start within ${START_MS} ms`);
      return;
    }
    if (this.#pinged) {
      if (silentMs < HANG_MS) return;
      this.#options.log.error('media.worker_hangs', { port: this.port });
      void this.kill('the media worker did not answer');
      return;
    }
    this.#pinged = true;
    this.#looks = 0;
    this.stats().then(
      (stats) => {
        this.lastStats = stats;
        this.#pinged = false;
      },
      () => undefined,
    );
  }

  #end(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#resolveEnded();
    this.#watchdog.stop();
    const error = new MediaError('CLOSED', this.#reason);
    this.#started.reject(new MediaError('WORKER_FAILED', this.#reason));
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
    for (const client of this.#relays.values()) client.close();
    this.#relays.clear();
    const rooms = [...this.rooms.values()];
    this.rooms.clear();
    if (!this.#closing) for (const room of rooms) room.workerLost(this, this.#reason);
    this.#options.onExit(this.#reason);
  }
}
