import type { Log } from '@bloom/log';
import type { RelayRoute } from '@bloom/webrtc';
import type {
  EngineStats,
  MediaEndpoint,
  MediaEngine,
  MediaRoom,
  MediaRoomEvent,
  ProfileAction,
} from '../media-engine.js';
import { MediaError } from '../media-error.js';
import { MediaWorker } from './media-worker.js';
import { RemoteRoom } from './remote-room.js';
import type { WorkerSettings } from './worker-protocol.js';

/** Wait before a worker that did not live long is replaced, doubled each time, ms. */
const RESTART_MS = 250;
const RESTART_MAX_MS = 30_000;
const SHORT_LIFE_MS = 10_000;
/** A start that takes this long is spoken of, again and again, ms. */
const SLOW_START_MS = 10_000;
/** What a room waits for a worker when none is up: a replacement takes a second or two, ms. */
const REPLACEMENT_MS = 4000;
const REPLACEMENT_POLL_MS = 25;

export interface MediaWorkersOptions {
  /** Threads; at least 1. */
  workers: number;
  settings: WorkerSettings;
  endpoint: Omit<MediaEndpoint, 'port'>;
  log: Log;
  /** The compiled `worker-main.js`; default: the one beside this file. */
  entry?: URL;
  /** Silence after which a worker counts as hung, ms. */
  hangMs?: number;
  slowStartMs?: number;
  /** What a worker may take to start, ms. */
  startMs?: number;
  /** What a worker may take to end once it is told to, ms. */
  terminateMs?: number;
}

/** The media plane on worker threads. A room lives whole on one of them; one that dies takes only its own rooms along. */
export class MediaWorkers implements MediaEngine {
  private readonly workers: MediaWorker[] = [];
  private readonly roomIds = new Set<string>();
  private readonly users = new Map<string, MediaWorker>();
  private readonly restarts = new Set<NodeJS.Timeout>();
  /** Totals of workers that are gone: counters never fall. */
  private readonly lost: EngineStats & { dropped: Record<string, number> } = emptyStats();
  private restartMs = RESTART_MS;
  private closed = false;

  private constructor(private readonly options: MediaWorkersOptions) {}

  /** Resolves when all workers are warm; rejects with the first one's error when one cannot start. */
  static async start(options: MediaWorkersOptions): Promise<MediaWorkers> {
    const engine = new MediaWorkers(options);
    const started = Array.from({ length: options.workers }, () => engine.startWorker());
    const startedMs = performance.now();
    // A node that does not come up says what it waits for.
    const slow = setInterval(() => {
      const ready = started.filter(({ port }) => port > 0).length;
      const waitedMs = Math.round(performance.now() - startedMs);
      options.log.warn('media.workers_starting', { ready, workers: options.workers, waitedMs });
    }, options.slowStartMs ?? SLOW_START_MS);
    try {
      await Promise.all(started.map((worker) => worker.ready));
    } catch (error) {
      await engine.close();
      throw error;
    } finally {
      clearInterval(slow);
    }
    return engine;
  }

  async openRoom(roomId: string, onEvent: (event: MediaRoomEvent) => void): Promise<MediaRoom> {
    if (this.closed) throw new MediaError('CLOSED', `the media engine is closed, room ${roomId} cannot be opened`);
    if (this.roomIds.has(roomId)) throw new MediaError('EXISTS', `the room ${roomId} is open already`);
    this.roomIds.add(roomId);
    try {
      const worker = this.leastBusy() ?? (await this.replacement(roomId));
      const number = worker.newNumber();
      const room = new RemoteRoom({
        roomId,
        room: number,
        worker,
        endpoint: { ...this.options.endpoint, port: worker.port },
        onEvent,
        routeUser: (username, to) => this.routeUser(username, worker, to),
        onClosed: () => this.roomIds.delete(roomId),
      });
      worker.rooms.set(number, room);
      await worker.call({ type: 'openRoom', room: number, roomId });
      return room;
    } catch (error) {
      this.roomIds.delete(roomId);
      throw error;
    }
  }

  relayRoute(username: string): RelayRoute | undefined {
    return this.users.get(username);
  }

  async stats(): Promise<EngineStats> {
    const total = emptyStats();
    add(total, this.lost);
    const answers = await Promise.all(
      this.workers.map((worker) => worker.call({ type: 'stats' }).catch(() => worker.lastStats)),
    );
    for (const stats of answers) if (stats !== undefined) add(total, stats as EngineStats);
    return total;
  }

  async profileWorker(worker: number, action: ProfileAction): Promise<string | undefined> {
    const thread = this.workers[worker - 1];
    if (thread === undefined) throw new MediaError('CLOSED', `there is no media worker ${worker}`);
    return (await thread.call({ type: 'profile', action })) as string | undefined;
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const timer of this.restarts) clearTimeout(timer);
    this.restarts.clear();
    await Promise.all(this.workers.map((worker) => worker.close()));
  }

  /** Kills the worker of a room, as a test or an operator's drill. */
  async killWorkerOf(roomId: string, reason: string): Promise<void> {
    for (const worker of this.workers) {
      if ([...worker.rooms.values()].some((room) => room.roomId === roomId)) return worker.kill(reason);
    }
  }

  private startWorker(): MediaWorker {
    const { settings, log, hangMs, startMs, terminateMs } = this.options;
    const startedMs = performance.now();
    const worker: MediaWorker = new MediaWorker({
      entry: this.options.entry ?? new URL('./worker-main.js', import.meta.url),
      settings,
      log,
      ...(hangMs === undefined ? {} : { hangMs }),
      ...(startMs === undefined ? {} : { startMs }),
      ...(terminateMs === undefined ? {} : { terminateMs }),
      onExit: (reason) => this.workerGone(worker, performance.now() - startedMs, reason),
    });
    this.workers.push(worker);
    return worker;
  }

  private workerGone(worker: MediaWorker, lifeMs: number, reason: string): void {
    const at = this.workers.indexOf(worker);
    if (at >= 0) this.workers.splice(at, 1);
    for (const [username, owner] of this.users) if (owner === worker) this.users.delete(username);
    if (worker.lastStats !== undefined) add(this.lost, { ...worker.lastStats, rooms: 0, transports: 0 });
    if (this.closed) return;
    this.options.log.error('media.worker_gone', { reason, port: worker.port, replacedInMs: this.restartMs });
    if (lifeMs >= SHORT_LIFE_MS) this.restartMs = RESTART_MS;
    const timer = setTimeout(() => {
      this.restarts.delete(timer);
      this.startWorker();
    }, this.restartMs);
    this.restarts.add(timer);
    if (lifeMs < SHORT_LIFE_MS) this.restartMs = Math.min(this.restartMs * 2, RESTART_MAX_MS);
  }

  /** The first worker that comes up. */
  private async replacement(roomId: string): Promise<MediaWorker> {
    const until = performance.now() + REPLACEMENT_MS;
    while (!this.closed && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, REPLACEMENT_POLL_MS));
      const worker = this.leastBusy();
      if (worker !== undefined) return worker;
    }
    throw new MediaError('WORKER_FAILED', `no media worker is up to take room ${roomId}`);
  }

  private leastBusy(): MediaWorker | undefined {
    let best: MediaWorker | undefined;
    for (const worker of this.workers) {
      if (!worker.alive || worker.port === 0) continue;
      if (best === undefined || isLessBusy(worker, best)) best = worker;
    }
    return best;
  }

  private routeUser(username: string, worker: MediaWorker, to: MediaWorker | undefined): void {
    if (to !== undefined) this.users.set(username, to);
    else if (this.users.get(username) === worker) this.users.delete(username);
  }
}

function isLessBusy(a: MediaWorker, b: MediaWorker): boolean {
  return a.transports === b.transports ? a.rooms.size < b.rooms.size : a.transports < b.transports;
}

function emptyStats(): EngineStats & { dropped: Record<string, number> } {
  return {
    rooms: 0,
    transports: 0,
    bytesReceived: 0,
    bytesSent: 0,
    packetsReceived: 0,
    packetsSent: 0,
    packetsForwarded: 0,
    dropped: {},
  };
}

function add(total: EngineStats & { dropped: Record<string, number> }, stats: EngineStats): void {
  total.rooms += stats.rooms;
  total.transports += stats.transports;
  total.bytesReceived += stats.bytesReceived;
  total.bytesSent += stats.bytesSent;
  total.packetsReceived += stats.packetsReceived;
  total.packetsSent += stats.packetsSent;
  total.packetsForwarded += stats.packetsForwarded;
  for (const [reason, count] of Object.entries(stats.dropped)) {
    total.dropped[reason] = (total.dropped[reason] ?? 0) + count;
  }
}
