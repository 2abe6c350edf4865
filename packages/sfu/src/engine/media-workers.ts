import type { Log } from '@bloom/log';
import { type Clock, systemClock, Timer } from '@bloom/time';
import type { RelayRoute, TcpAcceptor } from '@bloom/webrtc';
import {
  emptyEngineStats,
  type EngineStats,
  type EngineTotals,
  type MediaEndpoint,
  type MediaEngine,
  type MediaRoom,
  type MediaRoomEvent,
  type ProfileAction,
} from '../media-engine.js';
import { MediaError } from '../media-error.js';
import { EngineRoom } from './engine-room.js';
import { LocalWorker } from './local-worker.js';
import { MediaCore } from './media-core.js';
import type { MediaWorker } from './media-worker.js';
import { ThreadWorker } from './thread-worker.js';
import { asBuffer, type WorkerSettings } from './worker-protocol.js';

/** Pause before a short-lived worker is replaced, doubled each time, ms. */
const RESTART_MS = 250;
const RESTART_MAX_MS = 30_000;
const SHORT_LIFE_MS = 10_000;
/** A start that takes this long is logged, repeatedly, ms. */
const SLOW_START_MS = 10_000;
/** Replacing a worker takes a second or two, ms. */
const DEFAULT_REPLACEMENT_MS = 4000;
const REPLACEMENT_POLL_MS = 25;

export interface MediaWorkersOptions {
  /** Threads; 0 keeps the media in the calling thread. */
  workers: number;
  settings: WorkerSettings;
  endpoint: Omit<MediaEndpoint, 'port'>;
  log: Log;
  /** TCP and TLS listeners of the relay; closed with the engine. */
  acceptors?: readonly TcpAcceptor[];
  /** The compiled `worker-main.js`; default: the one beside this file. */
  entry?: URL;
  clock?: Clock;
  /** Silence after which a worker counts as hung, ms. */
  hangMs?: number;
  /** Time limit of a worker's start, ms. */
  startMs?: number;
  /** Time limit of a worker's termination, ms. */
  terminateMs?: number;
  /** How long a room waits for a worker if none is up, ms. */
  replacementMs?: number;
}

/** The media plane. Each room lives entirely on one worker, so a worker that dies takes only its own rooms with it. */
export class MediaWorkers implements MediaEngine {
  readonly #options: MediaWorkersOptions;
  readonly #clock: Clock;
  readonly #workers: MediaWorker[] = [];
  readonly #roomIds = new Set<string>();
  /** Worker of each relay user. */
  readonly #users = new Map<string, MediaWorker>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  /** Totals of workers that have ended, so that counters never fall. */
  readonly #lost: EngineTotals = emptyEngineStats();
  #lastRoom = 0;
  #replaced = 0;
  #restartMs = RESTART_MS;
  #closed = false;

  private constructor(options: MediaWorkersOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Resolves once all workers are warm; rejects with the error of the first one that cannot start. */
  static async start(options: MediaWorkersOptions): Promise<MediaWorkers> {
    const engine = new MediaWorkers(options);
    try {
      if (options.workers === 0) await engine.#openLocal();
      else await engine.#startThreads();
      return engine;
    } catch (error) {
      await engine.close();
      throw error;
    }
  }

  async openRoom(roomId: string, onEvent: (event: MediaRoomEvent) => void): Promise<MediaRoom> {
    if (this.#closed) throw new MediaError('CLOSED', `the media engine is closed, room ${roomId} cannot be opened`);
    if (this.#roomIds.has(roomId)) throw new MediaError('EXISTS', `the room ${roomId} is open already`);
    this.#roomIds.add(roomId);
    try {
      const worker = this.#leastBusy() ?? (await this.#replacement(roomId));
      const number = ++this.#lastRoom;
      const room = new EngineRoom({
        roomId,
        port: worker.portTo(number),
        endpoint: { ...this.#options.endpoint, port: worker.port },
        log: this.#options.log,
        onEvent,
        routeUser: (username) => this.#users.set(username, worker),
        unrouteUser: (username) => {
          if (this.#users.get(username) === worker) this.#users.delete(username);
        },
        onClosed: () => this.#roomIds.delete(roomId),
      });
      await worker.open(number, room);
      return room;
    } catch (error) {
      this.#roomIds.delete(roomId);
      throw error;
    }
  }

  get takesRooms(): boolean {
    return !this.#closed && this.#leastBusy() !== undefined;
  }

  get workerRestarts(): number {
    return this.#replaced;
  }

  workersBusy(): number[] {
    return this.#workers.flatMap((worker) => worker.busyShare?.() ?? []);
  }

  relayRoute(username: string): RelayRoute | undefined {
    return this.#users.get(username);
  }

  async stats(): Promise<EngineStats> {
    const total = emptyEngineStats();
    add(total, this.#lost);
    const answers = await Promise.all(this.#workers.map((worker) => worker.stats().catch(() => worker.lastStats)));
    for (const stats of answers) if (stats !== undefined) add(total, stats);
    return total;
  }

  async profileWorker(worker: number, action: ProfileAction): Promise<string | undefined> {
    const thread = this.#workers[worker - 1];
    if (thread?.profile === undefined) throw new MediaError('CLOSED', `there is no media worker thread ${worker}`);
    return await thread.profile(action);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#restarts) clearTimeout(timer);
    this.#restarts.clear();
    await Promise.all((this.#options.acceptors ?? []).map((acceptor) => acceptor.close()));
    await Promise.all(this.#workers.map((worker) => worker.close()));
  }

  /** Kills the worker of a room, for a test or an operator's drill. */
  async killWorkerOf(roomId: string, reason: string): Promise<void> {
    for (const worker of this.#workers) {
      if ([...worker.rooms.values()].some((room) => room.roomId === roomId)) return worker.kill?.(reason);
    }
  }

  async #openLocal(): Promise<void> {
    const { settings, log } = this.#options;
    const core = await MediaCore.open({ ...settings, nonceSecret: asBuffer(settings.nonceSecret), log });
    this.#workers.push(new LocalWorker(core));
  }

  async #startThreads(): Promise<void> {
    const { workers, log } = this.#options;
    const started = Array.from({ length: workers }, () => this.#startThread());
    const startedMs = this.#clock.now();
    // A node that does not come up must log what it is waiting for.
    const slow = new Timer(this.#clock);
    slow.repeat(SLOW_START_MS, () => {
      const ready = started.filter(({ port }) => port > 0).length;
      const waitedMs = Math.round(this.#clock.now() - startedMs);
      log.warn('media.workers_starting', { ready, workers, waitedMs });
    });
    try {
      await Promise.all(started.map((worker) => worker.ready));
    } finally {
      slow.stop();
    }
  }

  #startThread(): ThreadWorker {
    const { settings, log, hangMs, startMs, terminateMs } = this.#options;
    const clock = this.#clock;
    const startedMs = clock.now();
    const worker: ThreadWorker = new ThreadWorker({
      entry: this.#options.entry ?? new URL('./worker-main.js', import.meta.url),
      settings,
      log,
      clock,
      ...(hangMs === undefined ? {} : { hangMs }),
      ...(startMs === undefined ? {} : { startMs }),
      ...(terminateMs === undefined ? {} : { terminateMs }),
      onExit: (reason) => this.#threadGone(worker, clock.now() - startedMs, reason),
    });
    this.#workers.push(worker);
    return worker;
  }

  #threadGone(worker: ThreadWorker, lifeMs: number, reason: string): void {
    const at = this.#workers.indexOf(worker);
    if (at >= 0) this.#workers.splice(at, 1);
    for (const [username, owner] of this.#users) if (owner === worker) this.#users.delete(username);
    if (worker.lastStats !== undefined) add(this.#lost, { ...worker.lastStats, rooms: 0, transports: 0 });
    if (this.#closed) return;
    this.#options.log.error('media.worker_gone', { reason, port: worker.port, replacedInMs: this.#restartMs });
    this.#replaced += 1;
    if (lifeMs >= SHORT_LIFE_MS) this.#restartMs = RESTART_MS;
    const timer = setTimeout(() => {
      this.#restarts.delete(timer);
      this.#startThread();
    }, this.#restartMs);
    this.#restarts.add(timer);
    if (lifeMs < SHORT_LIFE_MS) this.#restartMs = Math.min(this.#restartMs * 2, RESTART_MAX_MS);
  }

  /** Resolves with the first worker that comes up. */
  async #replacement(roomId: string): Promise<MediaWorker> {
    const until = performance.now() + (this.#options.replacementMs ?? DEFAULT_REPLACEMENT_MS);
    while (!this.#closed && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, REPLACEMENT_POLL_MS));
      const worker = this.#leastBusy();
      if (worker !== undefined) return worker;
    }
    throw new MediaError('WORKER_FAILED', `no media worker is up to take room ${roomId}`);
  }

  #leastBusy(): MediaWorker | undefined {
    let best: MediaWorker | undefined;
    for (const worker of this.#workers) {
      if (!worker.alive || worker.port === 0) continue;
      if (best === undefined || isLessBusy(worker, best)) best = worker;
    }
    return best;
  }
}

function isLessBusy(a: MediaWorker, b: MediaWorker): boolean {
  const [ofA, ofB] = [transportsOf(a), transportsOf(b)];
  return ofA === ofB ? a.rooms.size < b.rooms.size : ofA < ofB;
}

function transportsOf(worker: MediaWorker): number {
  let count = 0;
  for (const room of worker.rooms.values()) count += room.transportCount;
  return count;
}

function add(total: EngineTotals, stats: EngineStats): void {
  total.rooms += stats.rooms;
  total.transports += stats.transports;
  total.bytesReceived += stats.bytesReceived;
  total.bytesSent += stats.bytesSent;
  total.packetsReceived += stats.packetsReceived;
  total.packetsSent += stats.packetsSent;
  total.packetsForwarded += stats.packetsForwarded;
  total.dataMessagesReceived += stats.dataMessagesReceived;
  total.dataMessagesSent += stats.dataMessagesSent;
  for (const [reason, count] of Object.entries(stats.dropped)) {
    total.dropped[reason] = (total.dropped[reason] ?? 0) + count;
  }
}
