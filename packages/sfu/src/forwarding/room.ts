import type {
  MediaRoomEvent,
  RelayCredentials,
  RoomMediaStats,
  TransportNegotiation,
  Variant,
  CapturedPackets,
} from '../media-engine.js';
import { MediaError } from '../media-error.js';
import type { TapEvent } from '../media-frames.js';
import type { PerVariant } from '../variants.js';
import type { MediaContext } from './context.js';
import { FrameFeed, type FrameFeedOptions } from './frame-feed.js';
import { FrameTap } from './frame-tap.js';
import type { OutboundTrack } from './outbound-track.js';
import type { PublishedTrack } from './published-track.js';
import { RoomTransport } from './room-transport.js';

/** The media of one room on one worker: which slot gets which track. */
export class ForwardingRoom {
  private readonly transports = new Map<string, RoomTransport>();
  private readonly tracks = new Map<string, PublishedTrack>();
  /** Live slots by the track they show, whether that is there yet or not. */
  private readonly slots = new Map<string, Set<OutboundTrack>>();
  private readonly feeds = new Set<FrameFeed>();
  private readonly taps = new Set<FrameTap>();

  constructor(
    private readonly context: MediaContext,
    readonly roomId: string,
    private readonly onEvent: (event: MediaRoomEvent) => void,
  ) {}

  get transportCount(): number {
    return this.transports.size;
  }

  transport(peerId: string): RoomTransport | undefined {
    return this.transports.get(peerId);
  }

  /** A transport the peer had before is closed: the newer connection is the true one. News of it bear its number. */
  openTransport(peerId: string, relay: RelayCredentials, number = 0): void {
    this.closeTransport(peerId);
    try {
      const transport = new RoomTransport(this.context, {
        peerId,
        relay,
        // What is heard on a track is news of the track.
        emit: (event) => this.onEvent(event.type === 'voiceActivity' ? event : { ...event, transport: number }),
        slotLive: (slot) => this.slotLive(slot),
        slotGone: (slot) => this.slotGone(slot),
      });
      this.transports.set(peerId, transport);
    } catch (error) {
      // Another peer has the same relay user, or the port is closing: this peer's trouble alone.
      this.context.world.log.error('media.transport_refused', { roomId: this.roomId, peerId, error });
      this.onEvent({ type: 'transportFailed', peerId, reason: 'Internal server error', transport: number });
    }
  }

  negotiate(peerId: string, negotiation: TransportNegotiation): void {
    const transport = this.transports.get(peerId);
    if (transport === undefined) {
      throw new MediaError('NO_TRANSPORT', `peer ${peerId} has no transport in room ${this.roomId}`);
    }
    const { added, removed } = transport.negotiate(negotiation);
    for (const track of removed) this.unpublish(track);
    for (const track of added) this.publish(track);
  }

  closeTransport(peerId: string): void {
    const transport = this.transports.get(peerId);
    if (transport === undefined) return;
    this.transports.delete(peerId);
    for (const track of transport.close()) this.unpublish(track);
  }

  setTargetVariant(peerId: string, trackId: string, variant: Variant): void {
    this.transports.get(peerId)?.outbound.setTarget(trackId, variant);
  }

  setTrackBitrates(trackId: string, bitratesBps: Partial<PerVariant<number>>): void {
    this.tracks.get(trackId)?.setBitrates(bitratesBps);
  }

  setTrackMuted(trackId: string, muted: boolean): void {
    this.tracks.get(trackId)?.setMuted(muted, this.context.world.now());
  }

  /** A track out of frames that a component sends. */
  openFeed(options: Omit<FrameFeedOptions, 'emit'>): FrameFeed {
    const feed = new FrameFeed(this.context, { ...options, emit: this.onEvent });
    this.feeds.add(feed);
    this.publish(feed.track);

    return feed;
  }

  closeFeed(feed: FrameFeed): void {
    if (!this.feeds.delete(feed)) return;
    feed.close();
    this.unpublish(feed.track);
  }

  /** Whole frames of a track, for a component; the track may appear later. */
  openTap(trackId: string, emit: (event: TapEvent) => void): FrameTap {
    const tap = new FrameTap(this.context, trackId, emit);
    this.taps.add(tap);
    const track = this.tracks.get(trackId);
    if (track !== undefined) tap.attach(track);

    return tap;
  }

  closeTap(tap: FrameTap): void {
    if (this.taps.delete(tap)) tap.close();
  }

  tick(nowMs: number): void {
    for (const transport of this.transports.values()) transport.tick(nowMs);
    for (const feed of this.feeds) feed.tick(nowMs);
    for (const tap of this.taps) tap.tick(nowMs);
  }

  capturePackets(peerId: string, end: boolean): CapturedPackets | undefined {
    return this.transports.get(peerId)?.capturePackets(end);
  }

  stats(): RoomMediaStats {
    return { roomId: this.roomId, transports: [...this.transports.values()].map((transport) => transport.stats()) };
  }

  close(): void {
    for (const feed of this.feeds) this.closeFeed(feed);
    for (const peerId of this.transports.keys()) this.closeTransport(peerId);
    for (const tap of this.taps) this.closeTap(tap);
  }

  private publish(track: PublishedTrack): void {
    // The control plane refuses ids that are taken; the first owner keeps it here.
    if (this.tracks.has(track.trackId)) return;
    this.tracks.set(track.trackId, track);
    for (const slot of this.slots.get(track.trackId) ?? []) slot.attach(track);
    for (const tap of this.taps) if (tap.trackId === track.trackId) tap.attach(track);
  }

  private unpublish(track: PublishedTrack): void {
    if (this.tracks.get(track.trackId) === track) this.tracks.delete(track.trackId);
    track.close();
  }

  private slotLive(slot: OutboundTrack): void {
    let slots = this.slots.get(slot.trackId);
    if (slots === undefined) this.slots.set(slot.trackId, (slots = new Set()));
    slots.add(slot);
    const track = this.tracks.get(slot.trackId);
    if (track !== undefined) slot.attach(track);
  }

  private slotGone(slot: OutboundTrack): void {
    const slots = this.slots.get(slot.trackId);
    if (!slots?.delete(slot)) return;
    if (slots.size === 0) this.slots.delete(slot.trackId);
  }
}
