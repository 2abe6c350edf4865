import type { MediaAnswer, RoomCommand, RoomReport } from '../room-command.js';
import type {
  MediaPermissions,
  MediaRoomEvent,
  RoomMediaStats,
  TransportNegotiation,
  TransportStats,
} from '../media-engine.js';
import { MediaError } from '../media-error.js';
import type { FeedOptions } from '../media-frames.js';
import { Withheld } from '../withheld.js';
import { DataRouter } from '../data/data-router.js';
import type { MediaContext } from '../context.js';
import { RoomCrossings } from './room-crossings.js';
import { keyOf, tracksWithId } from './fallback-track.js';
import { FrameFeed } from './frame-feed.js';
import { FrameTap } from './frame-tap.js';
import type { OutboundTrack } from './outbound-track.js';
import type { PublishedTrack } from './published-track.js';
import { QUALITY_INTERVAL_MS } from './quality-meter.js';
import { RoomTransport } from './room-transport.js';

const EVERYTHING: MediaPermissions = { audio: true, video: true, data: true, subscribe: true };

/** The media of one room, or of its part on one worker: which slot gets which track. */
export class ForwardingRoom {
  readonly roomId: string;
  readonly #context: MediaContext;
  readonly #report: (report: RoomReport) => void;
  readonly #transports = new Map<string, RoomTransport>();
  /** Permissions of the peers that are restricted. */
  readonly #permissions = new Map<string, MediaPermissions>();
  readonly #withheld = new Withheld();
  /** With the keys of `keyOf`. */
  readonly #tracks = new Map<string, PublishedTrack>();
  /** Live slots by the track they show, whether or not that track is published yet. */
  readonly #slots = new Map<string, Set<OutboundTrack>>();
  readonly #feeds = new Map<number, FrameFeed>();
  readonly #taps = new Map<number, FrameTap>();
  readonly #data: DataRouter;
  /** Tracks whose id is taken by another client; they follow once it is free. */
  readonly #shadowed = new Set<PublishedTrack>();
  /** Time of the next judgement of the clients' connections; never unless that was requested. */
  #judgeAtMs = Number.POSITIVE_INFINITY;
  /** Undefined while the room lives on this worker alone. */
  crossings: RoomCrossings | undefined;

  constructor(context: MediaContext, roomId: string, report: (report: RoomReport) => void) {
    this.#context = context;
    this.roomId = roomId;
    this.#report = report;
    this.#data = new DataRouter(
      {
        channelClosed: (peerId, label, reason) => {
          context.world.log.warn('data.channel_closed', { roomId, peerId, reason });
          this.#emitData({ type: 'dataChannelClosed', peerId, label, reason });
        },
        messageChannel: (peerId, open) => this.#emitData({ type: 'messageChannel', peerId, open }),
        heard: (peerId, message) => this.#emitData({ type: 'dataMessage', peerId, ...message }),
      },
      context,
    );
  }

  transport(peerId: string): RoomTransport | undefined {
    return this.#transports.get(peerId);
  }

  /**
   * Runs one command. A command for a peer, track, feed or tap that has ended lost a race and is ignored.
   * @throws MediaError NO_TRANSPORT if a peer without a transport negotiates
   */
  apply(command: RoomCommand): MediaAnswer {
    switch (command.type) {
      case 'openTransport':
        return this.#openTransport(command);
      case 'negotiate':
        return this.#negotiate(command.peerId, command.negotiation);
      case 'closeTransport':
        return this.#closeTransport(command.peerId);
      case 'setTargetVariant':
        return this.#transports.get(command.peerId)?.outbound.setTarget(command.trackId, command.variant);
      case 'setTrackPaused':
        return this.#transports.get(command.peerId)?.outbound.setPaused(command.trackId, command.paused);
      case 'setMaxFrameRate': {
        const { peerId, trackId, framesPerSecond } = command;
        return this.#transports.get(peerId)?.outbound.setMaxFrameRate(trackId, framesPerSecond);
      }
      case 'setTrackWithheld':
        this.#withheld.set(command);
        return this.#transports.get(command.peerId)?.outbound.setWithheld(command.trackId, command.withheld);
      case 'setTrackBitrates':
        for (const track of this.#tracksOf(command)) track.setBitrates(command.bitratesBps);
        return undefined;
      case 'setTrackMuted':
        for (const track of this.#tracksOf(command)) track.setMuted(command.muted, this.#context.world.now());
        return undefined;
      case 'setPermissions':
        return this.#setPermissions(command.peerId, command.permissions);
      case 'setTrackBlocked':
        return this.#transports.get(command.peerId)?.inbound.setBlocked(command.trackId, command.blocked);
      case 'removeTrack':
        return this.#unpublishAll(this.#transports.get(command.peerId)?.inbound.removeTrack(command.trackId));
      case 'openFeed':
        return this.#openFeed(command.feed, command.options);
      case 'feedFrame':
        return this.#feeds.get(command.feed)?.send(command.frame);
      case 'closeFeed':
        return this.#closeFeed(command.feed);
      case 'openTap':
        return this.#openTap(command);
      case 'tapConsumed':
        return this.#taps.get(command.tap)?.consumed(command.frames, command.bytes);
      case 'tapKeyframe':
        return this.#taps.get(command.tap)?.requestKeyframe();
      case 'closeTap':
        return this.#closeTap(command.tap);
      case 'setDataEvents':
        return this.#data.setDataEvents(command.labels);
      case 'watchQuality':
        this.#judgeAtMs = Math.min(this.#judgeAtMs, this.#context.world.now() + QUALITY_INTERVAL_MS);
        return undefined;
      case 'sendPacket':
        for (const peerId of command.peerIds) this.#transports.get(peerId)?.sendPacket(command.label, command.data);
        return undefined;
      case 'sendMessage':
        return void this.#data.fromBackend(command.peerId, command.text);
      case 'capturePackets':
        return this.#transports.get(command.peerId)?.capturePackets(command.end);
      case 'span':
        return this.#span(command.room, command.worker);
      case 'unspan':
        return this.crossings?.unspan(command.worker);
      case 'stats':
        return this.#stats();
    }
  }

  #span(room: number, worker: number): void {
    const link = this.#context.links.get(worker);
    // The other worker has just ended.
    if (link === undefined) return;
    this.crossings ??= new RoomCrossings(this.#context, {
      room,
      tracks: () => this.#tracks.values(),
      data: this.#data,
      emit: (event) => this.#report({ type: 'event', event }),
      publish: (track) => this.#publish(track),
      unpublish: (track) => this.#unpublish(track),
    });
    this.crossings.span(link);
  }

  tick(nowMs: number): void {
    for (const transport of this.#transports.values()) transport.tick(nowMs);
    for (const feed of this.#feeds.values()) feed.tick(nowMs);
    for (const tap of this.#taps.values()) tap.tick(nowMs);
    this.crossings?.tick(nowMs);
    if (nowMs < this.#judgeAtMs) return;
    this.#judgeAtMs = nowMs + QUALITY_INTERVAL_MS;
    for (const transport of this.#transports.values()) transport.judge();
  }

  close(): void {
    for (const feed of this.#feeds.keys()) this.#closeFeed(feed);
    for (const peerId of this.#transports.keys()) this.#closeTransport(peerId);
    for (const tap of this.#taps.keys()) this.#closeTap(tap);
    this.crossings?.close();
  }

  /** Replaces the peer's previous transport: the newest one wins, and its events carry its number. */
  #openTransport({
    peerId,
    relay,
    transport: number,
    sharesRelay,
  }: Extract<RoomCommand, { type: 'openTransport' }>): void {
    this.#closeTransport(peerId);
    try {
      const transport = new RoomTransport(this.#context, {
        peerId,
        relay,
        sharesRelay: sharesRelay === true,
        permissions: this.#permissions.get(peerId) ?? EVERYTHING,
        isWithheld: (trackId) => this.#withheld.from(peerId).has(trackId),
        data: this.#data,
        // Voice activity belongs to the track, not to the transport that it arrives on.
        emit: (event) =>
          this.#report({
            type: 'event',
            event: event.type === 'voiceActivity' ? event : { ...event, transport: number },
          }),
        slotLive: (slot) => this.#slotLive(slot),
        slotGone: (slot) => this.#slotGone(slot),
      });
      this.#transports.set(peerId, transport);
    } catch (error) {
      // Another peer has the same relay user, or the port is closing: only this peer fails.
      this.#context.world.log.error('media.transport_refused', { roomId: this.roomId, peerId, error });
      const reason = 'Internal server error';
      this.#report({ type: 'event', event: { type: 'transportFailed', peerId, reason, transport: number } });
    }
  }

  #negotiate(peerId: string, negotiation: TransportNegotiation): void {
    const transport = this.#transports.get(peerId);
    if (transport === undefined) {
      throw new MediaError('NO_TRANSPORT', `peer ${peerId} has no transport in room ${this.roomId}`);
    }
    const { added, removed } = transport.negotiate(negotiation);
    this.#unpublishAll(removed);
    for (const track of added) this.#publish(track);
    const nowMs = this.#context.world.now();
    for (const { mid, trackId, codec } of negotiation.outbound) {
      const slot = transport.outbound.slots.get(mid);
      if (slot?.live === true && slot.trackId === trackId) continue;
      for (const track of tracksWithId(this.#tracks, trackId)) {
        if (track.params.codec.name === codec.name) track.expect(nowMs);
      }
    }
  }

  /** Returns the track and its fallback if that peer publishes them: the same id may belong to another peer. */
  #tracksOf({ peerId, trackId }: { peerId: string; trackId: string }): PublishedTrack[] {
    return this.#transports.get(peerId)?.inbound.withId(trackId) ?? [];
  }

  #closeTransport(peerId: string): TransportStats | undefined {
    const transport = this.#transports.get(peerId);
    if (transport === undefined) return undefined;
    const stats = transport.stats();
    this.#transports.delete(peerId);
    this.#unpublishAll(transport.close());
    return stats;
  }

  #setPermissions(peerId: string, permissions: MediaPermissions): void {
    const { audio, video, data, subscribe } = permissions;
    if (audio && video && data && subscribe) this.#permissions.delete(peerId);
    else this.#permissions.set(peerId, permissions);
    this.#unpublishAll(this.#transports.get(peerId)?.setPermissions(permissions));
  }

  /** Publishes a track made of frames that a component sends. */
  #openFeed(number: number, options: Omit<FeedOptions, 'onKeyframeWanted'>): void {
    const feed = new FrameFeed(this.#context, {
      ...options,
      emit: (event) => this.#report({ type: 'event', event }),
      keyframeWanted: () => this.#report({ type: 'keyframeWanted', feed: number }),
    });
    this.#feeds.set(number, feed);
    this.#publish(feed.track);
  }

  #closeFeed(number: number): void {
    const feed = this.#feeds.get(number);
    if (feed === undefined) return;
    this.#feeds.delete(number);
    feed.close();
    this.#unpublish(feed.track);
  }

  /** Sends whole frames of a track to a component; the track may appear later. */
  #openTap(command: Extract<RoomCommand, { type: 'openTap' }>): void {
    const { tap: number, trackId } = command;
    const options = { ...command, roomId: this.roomId };
    const tap = new FrameTap(this.#context, options, (event) => this.#report({ type: 'tapEvent', tap: number, event }));
    this.#taps.set(number, tap);
    for (const track of tracksWithId(this.#tracks, trackId)) tap.attach(track);
  }

  #closeTap(number: number): void {
    const tap = this.#taps.get(number);
    this.#taps.delete(number);
    tap?.close();
  }

  #stats(): RoomMediaStats {
    return { roomId: this.roomId, transports: [...this.#transports.values()].map((transport) => transport.stats()) };
  }

  #publish(track: PublishedTrack): void {
    // The control plane refuses taken ids, but a peer that moved to another worker may arrive before its end is
    // processed here.
    const { trackId, params, owner } = track;
    const key = keyOf(params);
    const isForeign = params.fallback === true && this.#tracks.get(keyOf({ trackId }))?.owner !== owner;
    if (this.#tracks.has(key) || isForeign) return void this.#shadowed.add(track);
    this.#tracks.set(key, track);
    this.crossings?.published(track);
    for (const slot of this.#slots.get(trackId) ?? []) slot.attach(track);
    for (const tap of this.#taps.values()) if (tap.trackId === trackId) tap.attach(track);
  }

  #unpublishAll(tracks: readonly PublishedTrack[] = []): void {
    for (const track of tracks) this.#unpublish(track);
  }

  #unpublish(track: PublishedTrack): void {
    const { trackId } = track;
    const key = keyOf(track.params);
    this.#shadowed.delete(track);
    if (this.#tracks.get(key) === track) this.#tracks.delete(key);
    this.crossings?.unpublished(track);
    track.close();
    for (const next of [...this.#shadowed].filter((each) => each.trackId === trackId)) {
      this.#shadowed.delete(next);
      this.#publish(next);
    }
  }

  #emitData(event: MediaRoomEvent & { peerId: string }): void {
    this.#transports.get(event.peerId)?.emit(event);
  }

  #slotLive(slot: OutboundTrack): void {
    let slots = this.#slots.get(slot.trackId);
    if (slots === undefined) this.#slots.set(slot.trackId, (slots = new Set()));
    slots.add(slot);
    for (const track of tracksWithId(this.#tracks, slot.trackId)) slot.attach(track);
  }

  #slotGone(slot: OutboundTrack): void {
    const slots = this.#slots.get(slot.trackId);
    if (!slots?.delete(slot)) return;
    if (slots.size === 0) this.#slots.delete(slot.trackId);
  }
}
