import type { Log } from '@bloom/log';
import type { RoomReport } from '../room-command.js';
import type {
  CapturedPackets,
  MediaCommand,
  MediaEndpoint,
  MediaRoom,
  MediaRoomEvent,
  RelayCredentials,
  RoomMediaStats,
  TransportNegotiation,
  TransportStats,
} from '../media-engine.js';
import type { FeedOptions, MediaFeed, MediaTap, TapOptions } from '../media-frames.js';
import { TapDelivery } from './tap-delivery.js';
import type { WorkerPort } from './worker-port.js';

/** Consumed frames are reported in batches of this many frames or bytes, whichever comes first. */
const CONSUMED_BATCH = { frames: 8, bytes: 256 * 1024 };

interface EngineRoomOptions {
  roomId: string;
  port: WorkerPort;
  endpoint: MediaEndpoint;
  log: Log;
  onEvent(event: MediaRoomEvent): void;
  /** Routes this relay user's TCP clients to the worker of this room from now on. */
  routeUser(username: string): void;
  unrouteUser(username: string): void;
  /** Called when the room's id may be reused. */
  onClosed(): void;
}

/** A room whose `ForwardingRoom` is behind a port. */
export class EngineRoom implements MediaRoom {
  readonly #options: EngineRoomOptions;
  readonly #port: WorkerPort;
  /** By peer: the relay user of its transport, and the transport's number. */
  readonly #transports = new Map<string, { username: string; number: number }>();
  readonly #keyFrameWanted = new Map<number, () => void>();
  readonly #taps = new Map<number, TapDelivery>();
  /** Shared by transports, feeds and taps. */
  #lastNumber = 0;
  #closed: Promise<void> | undefined;

  constructor(options: EngineRoomOptions) {
    this.#options = options;
    this.#port = options.port;
  }

  get roomId(): string {
    return this.#options.roomId;
  }

  get endpoint(): MediaEndpoint {
    return this.#options.endpoint;
  }

  /** Open transports, for choosing a worker. */
  get transportCount(): number {
    return this.#transports.size;
  }

  receive(report: RoomReport): void {
    switch (report.type) {
      case 'event':
        if (this.#closed === undefined) this.#options.onEvent(report.event);
        return;
      case 'keyFrameWanted':
        this.#keyFrameWanted.get(report.feed)?.();
        return;
      // Delivered while the room is closing too, because the last frames of its taps arrive then.
      case 'tapEvent':
        this.#taps.get(report.tap)?.deliver(report.event);
        return;
    }
  }

  /** Reports that the worker has ended. */
  fail(reason: string): void {
    if (this.#closed !== undefined) return;
    this.#closed = Promise.resolve();
    this.#release();
    for (const tap of this.#taps.values()) tap.deliver({ type: 'ended' });
    this.#taps.clear();
    this.#keyFrameWanted.clear();
    this.#options.onEvent({ type: 'roomFailed', reason });
  }

  openTransport(peerId: string, relay: RelayCredentials): void {
    if (this.#closed !== undefined) return;
    this.#dropTransport(peerId);
    const transport = this.#newNumber();
    this.#transports.set(peerId, { username: relay.username, number: transport });
    this.#options.routeUser(relay.username);
    this.#port.post({ type: 'openTransport', peerId, transport, relay });
  }

  negotiate(peerId: string, negotiation: TransportNegotiation): Promise<void> {
    return this.#port.call({ type: 'negotiate', peerId, negotiation });
  }

  closeTransport(peerId: string): Promise<TransportStats | undefined> {
    this.#dropTransport(peerId);
    return this.#port.call({ type: 'closeTransport', peerId }).catch(() => undefined);
  }

  isCurrent(event: MediaRoomEvent): boolean {
    if (event.transport === undefined || !('peerId' in event) || event.peerId === undefined) return true;
    return this.#transports.get(event.peerId)?.number === event.transport;
  }

  do(command: MediaCommand): void {
    this.#port.post(command);
  }

  openFeed({ onKeyFrameWanted, ...options }: FeedOptions): MediaFeed {
    const port = this.#port;
    const feed = this.#newNumber();
    if (onKeyFrameWanted !== undefined) this.#keyFrameWanted.set(feed, onKeyFrameWanted);
    port.post({ type: 'openFeed', feed, options });

    return {
      trackId: options.trackId,
      // The worker ignores frames of a closed feed.
      send: (frame) => port.give({ type: 'feedFrame', feed, frame }),
      close: () => {
        this.#keyFrameWanted.delete(feed);
        port.post({ type: 'closeFeed', feed });
      },
    };
  }

  openTap(options: TapOptions): MediaTap {
    const port = this.#port;
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
        port.post({ type: 'tapConsumed', tap, frames, bytes });
        frames = 0;
        bytes = 0;
      },
    });
    this.#taps.set(tap, delivery);
    port.post({ type: 'openTap', tap, trackId: options.trackId });
    const close = async (): Promise<void> => {
      // The worker has ended, so there are no frames to wait for.
      await port.call({ type: 'closeTap', tap }).catch(() => undefined);
      this.#taps.delete(tap);
      await delivery.idle();
    };
    let closed: Promise<void> | undefined;

    return {
      trackId: options.trackId,
      requestKeyFrame: () => port.post({ type: 'tapKeyFrame', tap }),
      close: () => (closed ??= close()),
    };
  }

  capturePackets(peerId: string, end = false): Promise<CapturedPackets | undefined> {
    return this.#port.call({ type: 'capturePackets', peerId, end });
  }

  stats(): Promise<RoomMediaStats> {
    return this.#port.call({ type: 'stats' });
  }

  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#release();
      this.#closed = this.#port.close();
    }
    return this.#closed;
  }

  #release(): void {
    for (const { username } of this.#transports.values()) this.#options.unrouteUser(username);
    this.#transports.clear();
    this.#options.onClosed();
  }

  #dropTransport(peerId: string): void {
    const known = this.#transports.get(peerId);
    if (known === undefined) return;
    this.#transports.delete(peerId);
    this.#options.unrouteUser(known.username);
  }

  #newNumber(): number {
    return ++this.#lastNumber;
  }
}
