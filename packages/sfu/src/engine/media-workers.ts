import type { Socket } from 'node:net';
import type { Log } from '@bloom/log';
import type { Endpoint } from '@bloom/net';
import { type Clock, systemClock, Timer } from '@bloom/time';
import { advertisedPort, type RelayConnections, type RelayRoute, type TcpAcceptor } from '@bloom/webrtc';
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
import { asBuffer } from '../media-frames.js';
import { MediaError } from '../media-error.js';
import type { WorkerSample } from '../worker-choice.js';
import { assignRoom, assignTransport } from './assignment.js';
import { EngineRoom, type RoomWorkers } from './engine-room.js';
import { LocalWorker } from './local-worker.js';
import { MediaCore } from './media-core.js';
import type { MediaWorker } from './media-worker.js';
import { ThreadWorker } from './thread-worker.js';
import { WorkerLinks } from './worker-links.js';
import { WorkerLoads } from './worker-loads.js';
import type { WorkerSettings } from './worker-protocol.js';

/** Pause before a short-lived worker is replaced, doubled each time, ms. */
const RESTART_MS = 250;
const RESTART_MAX_MS = 30_000;
const SHORT_LIFE_MS = 10_000;
/** A start that takes this long is logged, repeatedly, ms. */
const SLOW_START_MS = 10_000;
/** How long a room waits for a worker if none is up: replacing one takes a second or two, ms. */
const REPLACEMENT_MS = 4000;
const REPLACEMENT_POLL_MS = 25;

export interface MediaWorkersOptions {
  /** Threads; 0 keeps the media in the calling thread. */
  workers: number;
  settings: WorkerSettings;
  endpoint: Omit<MediaEndpoint, 'port' | 'worker'>;
  log: Log;
  /** TCP and TLS listeners of the relay; closed with the engine. */
  acceptors?: readonly TcpAcceptor[];
  /** The relay's clients from the HTTP listener; closed with the engine. */
  relay?: RelayConnections;
  /** The compiled `worker-main.js`; default: the one beside this file, which has none when it runs from its source. */
  entry?: URL;
  clock?: Clock;
  /** Chooses the worker of a room's next transport; default: by how busy the workers are. */
  assign?: typeof assignTransport;
}

/**
 * The media plane. A room begins on the least busy worker, and its transports go to others when that one is busy. A
 * worker that dies takes its transports with it, and the rooms that lived wholly on it.
 */
export class MediaWorkers implements MediaEngine {
  readonly #options: MediaWorkersOptions;
  readonly #clock: Clock;
  readonly #workers: MediaWorker[] = [];
  readonly #loads: WorkerLoads;
  readonly #links: WorkerLinks;
  readonly #roomIds = new Set<string>();
  /** Worker of each relay user. */
  readonly #users = new Map<string, MediaWorker>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  /** Totals of workers that have ended, so that counters never fall. */
  readonly #lost: EngineTotals = emptyEngineStats();
  #lastRoom = 0;
  #lastWorker = 0;
  #replaced = 0;
  #restartMs = RESTART_MS;
  #closed = false;

  private constructor(options: MediaWorkersOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#loads = new WorkerLoads(this.#workers, this.#clock);
    this.#links = new WorkerLinks(options.workers);
  }

  /** Resolves once all workers are warm; rejects with the error of the first one that cannot start. */
  static async open(options: MediaWorkersOptions): Promise<MediaWorkers> {
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
    if (this.#roomIds.has(roomId)) throw new MediaError('EXISTS', `the room ${roomId} is already open`);
    this.#roomIds.add(roomId);
    try {
      const worker = this.#leastBusy() ?? (await this.#replacement(roomId));
      const number = ++this.#lastRoom;
      const room = new EngineRoom({
        roomId,
        number,
        home: worker,
        workers: this.#roomWorkers,
        log: this.#options.log,
        onEvent,
        onClosed: () => this.#roomIds.delete(roomId),
      });
      await worker.open(number, room);
      return room;
    } catch (error) {
      this.#roomIds.delete(roomId);
      throw error;
    }
  }

  readonly #roomWorkers: RoomWorkers = {
    endpointOn: ({ id, port }) => ({
      ...this.#options.endpoint,
      port: advertisedPort(port, this.#options.settings.advertisedPorts),
      worker: id,
    }),
    find: (id) => this.#workers.find((worker) => worker.id === id && worker.alive),
    assign: (current, parts) => {
      if (this.#workers.length === 1 && current.alive) return { worker: current.id, because: 'only_worker' };
      const { assign = assignTransport } = this.#options;
      return assign({ current: current.id, parts, samples: this.#loads.samples() });
    },
    link: (worker, others) => this.#links.connect(worker, others),
    routeUser: (username, worker) => {
      this.#users.set(username, worker);
      this.#loads.opened(worker);
    },
    unrouteUser: (username, worker) => {
      if (this.#users.get(username) === worker) this.#users.delete(username);
      this.#loads.closed(worker);
    },
  };

  get takesRooms(): boolean {
    return !this.#closed && this.#leastBusy() !== undefined;
  }

  get workerRestarts(): number {
    return this.#replaced;
  }

  workersBusy(): number[] {
    return this.#workers.flatMap((worker) => worker.busyShare?.('metrics') ?? []);
  }

  workerSamples(): WorkerSample[] {
    return this.#loads.samples();
  }

  relayRoute(username: string): RelayRoute | undefined {
    return this.#users.get(username);
  }

  /** Serves a client of TURN over TLS whose connection another listener has accepted. */
  acceptRelayed(socket: Socket, client: Endpoint): void {
    const { relay } = this.#options;
    if (relay === undefined) {
      socket.destroy();
      return;
    }
    const connection = relay.add(socket, { client, secure: true });
    if (connection !== undefined) relay.serve(connection);
  }

  async stats(): Promise<EngineStats> {
    const total = emptyEngineStats();
    add(total, this.#lost);
    const answers = await Promise.all(this.#workers.map((worker) => worker.stats().catch(() => worker.lastStats)));
    for (const stats of answers) if (stats !== undefined) add(total, stats);
    // Each worker counts the part of a room that it has.
    total.rooms = this.#roomIds.size;
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
    this.#loads.close();
    const { acceptors = [], relay } = this.#options;
    await Promise.all([...acceptors, ...(relay === undefined ? [] : [relay])].map((part) => part.close()));
    await Promise.all(this.#workers.map((worker) => worker.close()));
  }

  /** Kills the worker of a room, for a test or an operator's drill. */
  async killWorkerOf(roomId: string, reason: string): Promise<void> {
    for (const worker of this.#workers) {
      if ([...worker.rooms.values()].some((room) => room.roomId === roomId)) return worker.kill?.(reason);
    }
  }

  /** Kills the worker of this number, for a test or an operator's drill. */
  async killWorker(id: number, reason: string): Promise<void> {
    await this.#workers.find((worker) => worker.id === id)?.kill?.(reason);
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
    // A node that does not start must log what it is waiting for.
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
    const { settings, log } = this.#options;
    const clock = this.#clock;
    const startedMs = clock.now();
    const worker: ThreadWorker = new ThreadWorker({
      id: ++this.#lastWorker,
      entry: this.#options.entry ?? new URL('./worker-main.js', import.meta.url),
      settings,
      log,
      clock,
      onExit: (reason) => this.#threadGone(worker, clock.now() - startedMs, reason),
    });
    this.#workers.push(worker);
    return worker;
  }

  #threadGone(worker: ThreadWorker, lifeMs: number, reason: string): void {
    const at = this.#workers.indexOf(worker);
    if (at >= 0) this.#workers.splice(at, 1);
    for (const [username, owner] of this.#users) if (owner === worker) this.#users.delete(username);
    this.#links.ended(worker, this.#workers);
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

  /** Resolves with the first worker that becomes ready. */
  async #replacement(roomId: string): Promise<MediaWorker> {
    const until = this.#clock.now() + REPLACEMENT_MS;
    while (!this.#closed && this.#clock.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, REPLACEMENT_POLL_MS));
      const worker = this.#leastBusy();
      if (worker !== undefined) return worker;
    }
    throw new MediaError('WORKER_FAILED', `no media worker is up to take room ${roomId}`);
  }

  #leastBusy(): MediaWorker | undefined {
    return this.#roomWorkers.find(assignRoom(this.#loads.samples())?.worker);
  }
}

function add(total: EngineTotals, stats: EngineStats): void {
  total.rooms += stats.rooms;
  total.transports += stats.transports;
  total.bytesReceived += stats.bytesReceived;
  total.bytesSent += stats.bytesSent;
  total.packetsReceived += stats.packetsReceived;
  total.packetsSent += stats.packetsSent;
  total.packetsForwarded += stats.packetsForwarded;
  total.packetsCrossed += stats.packetsCrossed;
  total.dataMessagesReceived += stats.dataMessagesReceived;
  total.dataMessagesSent += stats.dataMessagesSent;
  for (const [reason, count] of Object.entries(stats.dropped)) {
    total.dropped[reason] = (total.dropped[reason] ?? 0) + count;
  }
}
