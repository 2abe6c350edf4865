import type { RelayRoute } from '@bloom/webrtc';
import type { ForwardingRoom } from '../forwarding/room.js';
import type {
  CapturedPackets,
  EngineStats,
  MediaEndpoint,
  MediaEngine,
  MediaRoom,
  MediaRoomEvent,
  RelayCredentials,
  RoomMediaStats,
  TransportNegotiation,
  Variant,
} from '../media-engine.js';
import type { FeedOptions, MediaFeed, MediaTap, TapOptions } from '../media-frames.js';
import type { PerVariant } from '../variants.js';
import type { MediaCore } from './media-core.js';
import { isCurrent } from './current-transport.js';
import { TapDelivery } from './tap-delivery.js';

/** Everything in the calling thread: the simplest deployment, and the twin the workers are tested against. */
export class InProcessEngine implements MediaEngine {
  constructor(
    private readonly core: MediaCore,
    private readonly endpoint: MediaEndpoint,
  ) {}

  openRoom(roomId: string, onEvent: (event: MediaRoomEvent) => void): Promise<MediaRoom> {
    try {
      return Promise.resolve(new InProcessRoom(this.core, this.core.openRoom(roomId, onEvent), this.endpoint));
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  relayRoute(username: string): RelayRoute | undefined {
    return this.core.port.hasRelayUser(username) ? this.core.port : undefined;
  }

  stats(): Promise<EngineStats> {
    return Promise.resolve(this.core.stats());
  }

  close(): Promise<void> {
    return this.core.close();
  }
}

class InProcessRoom implements MediaRoom {
  /** Number of each peer's transport. */
  private readonly transports = new Map<string, number>();
  private lastTransport = 0;

  constructor(
    private readonly core: MediaCore,
    private readonly room: ForwardingRoom,
    readonly endpoint: MediaEndpoint,
  ) {}

  get roomId(): string {
    return this.room.roomId;
  }

  openTransport(peerId: string, relay: RelayCredentials): void {
    this.lastTransport += 1;
    this.transports.set(peerId, this.lastTransport);
    this.room.openTransport(peerId, relay, this.lastTransport);
  }

  negotiate(peerId: string, negotiation: TransportNegotiation): Promise<void> {
    try {
      this.room.negotiate(peerId, negotiation);
      return Promise.resolve();
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  closeTransport(peerId: string): void {
    this.transports.delete(peerId);
    this.room.closeTransport(peerId);
  }

  isCurrent(event: MediaRoomEvent): boolean {
    return isCurrent(event, (peerId) => this.transports.get(peerId));
  }

  setTargetVariant(peerId: string, trackId: string, variant: Variant): void {
    this.room.setTargetVariant(peerId, trackId, variant);
  }

  setTrackBitrates(trackId: string, bitratesBps: Partial<PerVariant<number>>): void {
    this.room.setTrackBitrates(trackId, bitratesBps);
  }

  setTrackMuted(trackId: string, muted: boolean): void {
    this.room.setTrackMuted(trackId, muted);
  }

  openFeed({ onKeyFrameWanted, ...options }: FeedOptions): MediaFeed {
    const { room } = this;
    const feed = room.openFeed({ ...options, keyFrameWanted: () => onKeyFrameWanted?.() });

    return {
      trackId: options.trackId,
      send: (frame) => feed.send(frame),
      close: () => room.closeFeed(feed),
    };
  }

  openTap(options: TapOptions): MediaTap {
    const { room } = this;
    const delivery = new TapDelivery({
      ...options,
      log: this.core.log,
      consumed: (bytes) => tap.consumed(1, bytes),
    });
    const tap = room.openTap(options.trackId, (event) => delivery.deliver(event));

    return {
      trackId: options.trackId,
      requestKeyFrame: () => tap.requestKeyFrame(),
      close: () => {
        room.closeTap(tap);
        return delivery.idle();
      },
    };
  }

  capturePackets(peerId: string, end = false): Promise<CapturedPackets | undefined> {
    return Promise.resolve(this.room.capturePackets(peerId, end));
  }

  stats(): Promise<RoomMediaStats> {
    return Promise.resolve(this.room.stats());
  }

  close(): Promise<void> {
    // A room of the same name may have been opened since.
    if (this.core.room(this.roomId) === this.room) this.core.closeRoom(this.roomId);
    return Promise.resolve();
  }
}
