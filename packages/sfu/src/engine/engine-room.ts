import type { Log } from '@bloom/log';
import type { RoomCommand, RoomReport } from '../room-command.js';
import type {
  CapturedPackets,
  MediaCommand,
  MediaEndpoint,
  MediaPermissions,
  MediaRoom,
  MediaRoomEvent,
  RelayCredentials,
  RoomMediaStats,
  TransportNegotiation,
  TransportStats,
} from '../media-engine.js';
import type { FeedOptions, MediaFeed, MediaTap, TapOptions } from '../media-frames.js';
import { Withheld } from '../withheld.js';
import type { WorkerChoice } from '../worker-choice.js';
import type { MediaWorker, WorkerPort, WorkerRoom } from './media-worker.js';
import { EVERYTHING, isReceiver, joined, ofPeer, receiverOf } from './receivers.js';
import { TapDelivery } from './tap-delivery.js';

/** Consumed frames are reported in batches of this many frames or bytes, whichever comes first. */
const CONSUMED_BATCH = { frames: 8, bytes: 256 * 1024 };

/** The workers, as a room uses them. */
export interface RoomWorkers {
  /** Returns where clients reach transports on this worker. */
  endpointOn(worker: MediaWorker): MediaEndpoint;
  /** Returns the worker with that number, if it is up. */
  find(id: number | undefined): MediaWorker | undefined;
  /** Chooses the worker of the room's next transport; undefined if none is up. */
  assign(current: MediaWorker, parts: ReadonlySet<number>): WorkerChoice | undefined;
  /** Connects a worker to those of a room that is going to span it. Returns false if there is no memory for that. */
  link(worker: MediaWorker, others: readonly MediaWorker[]): boolean;
  /** Counts a transport, and routes TCP clients of its relay user to this worker from now on. */
  routeUser(username: string, worker: MediaWorker): void;
  /** The transport has ended. */
  unrouteUser(username: string, worker: MediaWorker): void;
}

interface EngineRoomOptions {
  roomId: string;
  /** Number of the room, the same on all its workers. */
  number: number;
  /** The worker on which the room begins. */
  home: MediaWorker;
  workers: RoomWorkers;
  log: Log;
  onEvent(event: MediaRoomEvent): void;
  /** Called when the room's id may be reused. */
  onClosed(): void;
}

/** A room on one worker. A part stays until the room closes, or its worker ends. */
interface Part {
  worker: MediaWorker;
  port: WorkerPort;
  transports: number;
}

interface Transport {
  part: Part;
  choice: WorkerChoice;
  relay: RelayCredentials;
  number: number;
}

/**
 * A room whose `ForwardingRoom` is behind one port, or several: each transport lives on one worker. Components are
 * served where the room began, until that worker ends.
 */
export class EngineRoom implements MediaRoom, WorkerRoom {
  readonly #options: EngineRoomOptions;
  readonly #parts = new Map<MediaWorker, Part>();
  #home: Part;
  /** The worker that got the last transport. */
  #current: MediaWorker;
  /** By peer. */
  readonly #transports = new Map<string, Transport>();
  /** Messages for parts that open later. */
  readonly #permissions = new Map<string, MediaPermissions>();
  readonly #withheld = new Withheld();
  #dataEvents: readonly string[] = [];
  #watchesQuality = false;
  readonly #feeds = new Map<number, FeedOptions>();
  readonly #taps = new Map<number, TapDelivery>();
  /** Shared by transports, feeds and taps. */
  #lastNumber = 0;
  #closed: Promise<void> | undefined;

  constructor(options: EngineRoomOptions) {
    this.#options = options;
    const { home: worker, number } = options;
    this.#home = { worker, port: worker.portTo(number), transports: 0 };
    this.#parts.set(worker, this.#home);
    this.#current = worker;
  }

  get roomId(): string {
    return this.#options.roomId;
  }

  receive(report: RoomReport): void {
    switch (report.type) {
      case 'event':
        if (this.#closed === undefined) this.#options.onEvent(ofPeer(report.event));
        return;
      case 'keyframeWanted':
        this.#feeds.get(report.feed)?.onKeyframeWanted?.();
        return;
      // Also delivered while the room is closing, because the last frames of its taps arrive then.
      case 'tapEvent':
        this.#taps.get(report.tap)?.deliver(report.event);
        return;
    }
  }

  /** Reports that a worker has ended, along with everything of this room on it. */
  workerLost(worker: MediaWorker, reason: string): void {
    const lost = this.#parts.get(worker);
    if (lost === undefined || this.#closed !== undefined) return;
    this.#parts.delete(worker);
    const left = [...this.#parts.values()].find(({ transports }) => transports > 0);
    if (lost === this.#home && left === undefined) return this.#fail(reason);
    for (const { port } of this.#parts.values()) port.post({ type: 'unspan', worker: worker.id });
    if (lost === this.#home) this.#moveHome(left!);
    for (const [peerId, { part, number }] of this.#transports) {
      // A receiver is lost with the first connection of its peer.
      if (part === lost && !isReceiver(peerId))
        this.#options.onEvent({ type: 'transportLost', peerId, reason, transport: number });
    }
  }

  /** Ends the room: everything was on the worker that has ended. */
  #fail(reason: string): void {
    this.#closed = Promise.resolve();
    this.#release();
    for (const tap of this.#taps.values()) tap.deliver({ type: 'ended' });
    this.#taps.clear();
    this.#feeds.clear();
    this.#options.onEvent({ type: 'roomFailed', reason });
  }

  /** Opens the feeds and taps of components on another worker. */
  #moveHome(home: Part): void {
    this.#home = home;
    for (const [feed, { onKeyframeWanted, ...options }] of this.#feeds) {
      home.port.post({ type: 'openFeed', feed, options });
      onKeyframeWanted?.();
    }
    for (const [tap, delivery] of this.#taps) {
      delivery.resume();
      home.port.post({ type: 'openTap', tap, ...delivery.source });
    }
  }

  openTransport(peerId: string, relay: RelayCredentials, { at }: { at?: MediaEndpoint } = {}): MediaEndpoint {
    const { workers, onEvent } = this.#options;
    if (this.#closed !== undefined) return workers.endpointOn(this.#home.worker);
    const before = this.#transports.get(peerId)?.choice;
    void this.#closeReceiver(peerId);
    this.#dropTransport(peerId);
    const wanted = workers.find(at?.worker);
    const wish = wanted === undefined ? this.#assign() : this.#kept(wanted, before);
    const part = this.#partOn(wish.on);
    const { worker } = part;
    const number = this.#newNumber();
    const choice = worker === wish.on ? wish.choice : { worker: worker.id, because: 'no_memory' as const };
    this.#transports.set(peerId, { part, choice, relay, number });
    part.transports++;
    workers.routeUser(relay.username, worker);
    part.port.post({ type: 'openTransport', peerId, transport: number, relay });
    // The client knows of an endpoint that is gone, so it has to start over.
    if (at !== undefined && worker !== wanted)
      onEvent({ type: 'transportLost', peerId, reason: 'the media worker ended', transport: number });
    return workers.endpointOn(worker);
  }

  openReceiver(peerId: string): void {
    const first = this.#transports.get(peerId);
    const id = receiverOf(peerId);
    if (first === undefined || this.#transports.has(id) || this.#closed !== undefined) return;
    const { part, relay } = first;
    const number = this.#newNumber();
    this.#transports.set(id, { ...first, number });
    part.transports++;
    for (const trackId of this.#withheld.from(peerId))
      this.#postAll({ type: 'setTrackWithheld', peerId: id, trackId, withheld: true });
    const permissions = this.#permissions.get(peerId);
    if (permissions !== undefined) part.port.post({ type: 'setPermissions', peerId: id, permissions });
    part.port.post({ type: 'openTransport', peerId: id, transport: number, relay, sharesRelay: true });
  }

  endpointOf(peerId: string): MediaEndpoint | undefined {
    const transport = this.#transports.get(peerId);
    return transport === undefined ? undefined : this.#options.workers.endpointOn(transport.part.worker);
  }

  choiceOf(peerId: string): WorkerChoice | undefined {
    return this.#transports.get(peerId)?.choice;
  }

  negotiate(peerId: string, negotiation: TransportNegotiation): Promise<void> {
    const id = negotiation.receiver === true ? receiverOf(peerId) : peerId;
    return this.#portOf(peerId).call({ type: 'negotiate', peerId: id, negotiation });
  }

  async closeTransport(peerId: string): Promise<TransportStats | undefined> {
    const port = this.#portOf(peerId);
    const receiver = this.#closeReceiver(peerId);
    this.#dropTransport(peerId);
    const stats = await port.call({ type: 'closeTransport', peerId }).catch(() => undefined);
    const received = await receiver;

    return stats === undefined || received === undefined ? stats : joined(stats, received);
  }

  /** Closes the second connection of a peer, if it has one, and resolves with its counters. */
  async #closeReceiver(peerId: string): Promise<TransportStats | undefined> {
    const id = receiverOf(peerId);
    const port = this.#transports.get(id)?.part.port;
    if (port === undefined) return undefined;
    for (const trackId of this.#withheld.from(peerId))
      this.#postAll({ type: 'setTrackWithheld', peerId: id, trackId, withheld: false });
    if (this.#permissions.has(peerId)) this.#postAll({ type: 'setPermissions', peerId: id, permissions: EVERYTHING });
    this.#dropTransport(id);

    return port.call({ type: 'closeTransport', peerId: id }).catch(() => undefined);
  }

  isCurrent(event: MediaRoomEvent): boolean {
    if (event.transport === undefined || !('peerId' in event) || event.peerId === undefined) return true;
    const id = event.receiver === true ? receiverOf(event.peerId) : event.peerId;
    return this.#transports.get(id)?.number === event.transport;
  }

  /** Returns the id of the transport on which a client receives. */
  #receivingId(peerId: string): string {
    const id = receiverOf(peerId);
    return this.#transports.has(id) ? id : peerId;
  }

  do(command: MediaCommand): void {
    switch (command.type) {
      // These concern transports that do not exist yet, on any worker.
      case 'setPermissions': {
        const { peerId, permissions } = command;
        if (!Object.values(permissions).every(Boolean)) this.#permissions.set(peerId, permissions);
        // Each of LiveKit's clients is permitted everything when it joins, which transports are from the start.
        else if (!this.#permissions.delete(peerId)) return;
        return this.#postToBoth(command);
      }
      case 'setTrackWithheld':
        this.#withheld.set(command);
        return this.#postToBoth(command);
      case 'setTargetVariant':
      case 'setTrackPaused':
      case 'setMaxFrameRate':
        return this.#portOf(command.peerId).post({ ...command, peerId: this.#receivingId(command.peerId) });
      case 'setDataEvents':
        this.#dataEvents = command.labels;
        return this.#postAll(command);
      case 'watchQuality':
        if (this.#watchesQuality) return;
        this.#watchesQuality = true;
        return this.#postAll(command);
      case 'sendPacket':
        for (const [port, peerIds] of this.#byPort(command.peerIds.map((id) => this.#receivingId(id))))
          port.post({ ...command, peerIds });
        return;
      default:
        return this.#portOf(command.peerId).post(command);
    }
  }

  openFeed(options: FeedOptions): MediaFeed {
    const { onKeyframeWanted: _, ...plain } = options;
    const feed = this.#newNumber();
    this.#feeds.set(feed, options);
    this.#home.port.post({ type: 'openFeed', feed, options: plain });

    return {
      trackId: options.trackId,
      // The worker ignores frames of a closed feed.
      send: (frame) => this.#home.port.give({ type: 'feedFrame', feed, frame }),
      close: () => {
        this.#feeds.delete(feed);
        this.#home.port.post({ type: 'closeFeed', feed });
      },
    };
  }

  openTap(options: TapOptions): MediaTap {
    const tap = this.#newNumber();
    let frames = 0;
    let bytes = 0;
    const delivery = new TapDelivery({
      ...options,
      log: this.#options.log,
      consumed: (size) => {
        frames++;
        bytes += size;
        if (frames < CONSUMED_BATCH.frames && bytes < CONSUMED_BATCH.bytes) return;
        this.#home.port.post({ type: 'tapConsumed', tap, frames, bytes });
        frames = 0;
        bytes = 0;
      },
    });
    this.#taps.set(tap, delivery);
    this.#home.port.post({ type: 'openTap', tap, ...delivery.source });
    const close = async (): Promise<void> => {
      // The worker has ended, so there are no frames to wait for.
      await this.#home.port.call({ type: 'closeTap', tap }).catch(() => undefined);
      this.#taps.delete(tap);
      await delivery.idle();
    };
    let closed: Promise<void> | undefined;

    return {
      trackId: options.trackId,
      requestKeyframe: () => this.#home.port.post({ type: 'tapKeyframe', tap }),
      close: () => (closed ??= close()),
    };
  }

  capturePackets(peerId: string, end = false): Promise<CapturedPackets | undefined> {
    return this.#portOf(peerId).call({ type: 'capturePackets', peerId, end });
  }

  async stats(): Promise<RoomMediaStats> {
    const answers = await Promise.all([...this.#ports()].map((port) => port.call({ type: 'stats' })));
    const transports = new Map(answers.flatMap((answer) => answer.transports).map((each) => [each.peerId, each]));
    const ofPeers = [...transports.values()].filter(({ peerId }) => !isReceiver(peerId));

    return {
      roomId: this.roomId,
      transports: ofPeers.map((first) => {
        const receiver = transports.get(receiverOf(first.peerId));
        return receiver === undefined ? first : joined(first, receiver);
      }),
    };
  }

  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#release();
      this.#closed = Promise.all([...this.#ports()].map((port) => port.close())).then(() => undefined);
    }
    return this.#closed;
  }

  #release(): void {
    const { workers, onClosed } = this.#options;
    for (const [peerId, { relay, part }] of this.#transports)
      if (!isReceiver(peerId)) workers.unrouteUser(relay.username, part.worker);
    this.#transports.clear();
    onClosed();
  }

  /** Chooses the worker of the next transport. Without any, its transport is lost like the room. */
  #assign(): { on: MediaWorker; choice: WorkerChoice } {
    const { workers } = this.#options;
    const parts = new Set<number>();
    for (const { worker, transports } of this.#parts.values()) if (transports > 0) parts.add(worker.id);
    const choice = workers.assign(this.#current, parts);
    const on = workers.find(choice?.worker);
    this.#current = on ?? this.#home.worker;
    // Without a worker that is up the transport is lost with its room.
    if (choice === undefined || on === undefined)
      return { on: this.#current, choice: { worker: this.#current.id, because: 'only_worker' } };
    return { on, choice };
  }

  /** The worker whose address the client has been told, most often for the transport that this one replaces. */
  #kept(on: MediaWorker, before: WorkerChoice | undefined): { on: MediaWorker; choice: WorkerChoice } {
    return { on, choice: before?.worker === on.id ? before : { worker: on.id, because: 'told_before' } };
  }

  /** Opens the room on this worker, unless it is open there or the worker cannot be linked to the room's others. */
  #partOn(worker: MediaWorker): Part {
    const present = this.#parts.get(worker);
    if (present !== undefined) return present;
    const { number, workers } = this.#options;
    if (!workers.link(worker, [...this.#parts.keys()])) return this.#smallestPart();
    const part = { worker, port: worker.portTo(number), transports: 0 };
    // A worker that ends in the meantime reports its end to the room.
    worker.open(number, this).catch(() => undefined);
    for (const [peerId, permissions] of this.#permissions)
      part.port.post({ type: 'setPermissions', peerId, permissions });
    for (const [peerId, trackIds] of this.#withheld)
      for (const trackId of trackIds) part.port.post({ type: 'setTrackWithheld', peerId, trackId, withheld: true });
    if (this.#dataEvents.length > 0) part.port.post({ type: 'setDataEvents', labels: this.#dataEvents });
    if (this.#watchesQuality) part.port.post({ type: 'watchQuality' });
    for (const other of this.#parts.values()) {
      part.port.post({ type: 'span', room: number, worker: other.worker.id });
      other.port.post({ type: 'span', room: number, worker: worker.id });
    }
    this.#parts.set(worker, part);
    return part;
  }

  #smallestPart(): Part {
    const part = [...this.#parts.values()].reduce((one, other) => (other.transports < one.transports ? other : one));
    this.#current = part.worker;

    return part;
  }

  /** The port of a peer's transport; without one the command has lost a race, and any part ignores it. */
  #portOf(peerId: string): WorkerPort {
    return (this.#transports.get(peerId)?.part ?? this.#home).port;
  }

  /** Groups the peers by the worker that has their transports. */
  #byPort(peerIds: readonly string[]): Map<WorkerPort, string[]> {
    const groups = new Map<WorkerPort, string[]>();
    for (const peerId of peerIds) {
      const port = this.#portOf(peerId);
      const group = groups.get(port);
      if (group === undefined) groups.set(port, [peerId]);
      else group.push(peerId);
    }

    return groups;
  }

  /** Ports of all parts; of the former one after the room has failed. */
  #ports(): Iterable<WorkerPort> {
    const parts = this.#parts.size === 0 ? [this.#home] : [...this.#parts.values()];
    return parts.map(({ port }) => port);
  }

  /** Posts a command to all parts, for both connections of a peer that has two. */
  #postToBoth(command: Extract<MediaCommand, { type: 'setPermissions' | 'setTrackWithheld' }>): void {
    this.#postAll(command);
    const id = this.#receivingId(command.peerId);
    if (id !== command.peerId) this.#postAll({ ...command, peerId: id });
  }

  #postAll(command: RoomCommand): void {
    for (const port of this.#ports()) port.post(command);
  }

  #dropTransport(peerId: string): void {
    const known = this.#transports.get(peerId);
    if (known === undefined) return;
    this.#transports.delete(peerId);
    known.part.transports--;
    // Both connections of a client have the same relay user.
    if (!isReceiver(peerId)) this.#options.workers.unrouteUser(known.relay.username, known.part.worker);
  }

  #newNumber(): number {
    return ++this.#lastNumber;
  }
}
