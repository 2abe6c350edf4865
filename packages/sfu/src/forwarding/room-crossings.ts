import type { CrossingMessage, TrackState, WorkerLink } from '../crossing/worker-link.js';
import type { PacketRoute } from '../crossing/shared-ring.js';
import type { MediaContext } from '../context.js';
import type { DataRouter } from '../data/data-router.js';
import type { MediaRoomEvent, RtpDropCause, Variant } from '../media-engine.js';
import { VARIANTS } from '../variants/variants.js';
import { Backlog } from '../backlog.js';
import type { InboundStream } from './inbound-stream.js';
import { type MirroredOwner, MirroredTrack } from './mirrored-track.js';
import type { PublishedTrack } from './published-track.js';
import { TrackExport } from './track-export.js';

interface RoomCrossingsOptions {
  /** Number of the room, the same on all workers. */
  room: number;
  /** Tracks that are published on this worker. */
  tracks: () => Iterable<PublishedTrack>;
  data: DataRouter;
  emit(event: MediaRoomEvent): void;
  publish(track: PublishedTrack): void;
  unpublish(track: PublishedTrack): void;
}

/** One other worker of the room. */
interface Part {
  link: WorkerLink;
  /** True once the other part is open and our tracks are announced to it. */
  isOpen: boolean;
  /** Our tracks as that worker sees them, by their number here. */
  exports: Map<number, TrackExport>;
  /** Its tracks by their number there. */
  mirrors: Map<number, MirroredTrack>;
  publishers: Map<string, MirrorOwner>;
}

/**
 * The parts of one room on other workers: where each track is, and which of its variants cross. Only in rooms that span
 * several workers.
 */
export class RoomCrossings {
  readonly #context: MediaContext;
  readonly #options: RoomCrossingsOptions;
  readonly #parts = new Map<number, Part>();
  readonly #numbers = new Map<PublishedTrack, number>();

  constructor(context: MediaContext, options: RoomCrossingsOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** The room has a part on the other worker of this link. */
  span(link: WorkerLink): void {
    this.unspan(link.worker);
    const part = { link, isOpen: false, exports: new Map(), mirrors: new Map(), publishers: new Map() };
    this.#parts.set(link.worker, part);
    link.post({ room: this.#options.room, type: 'hello', isAnswer: false });
  }

  /** The room no longer has a part there: everything that part published has ended. */
  unspan(worker: number): void {
    const part = this.#parts.get(worker);
    if (part === undefined) return;
    this.#parts.delete(worker);
    for (const each of part.exports.values()) each.stop();
    for (const mirror of part.mirrors.values()) this.#options.unpublish(mirror);
    this.#options.data.linkDown(worker);
  }

  /** A track has appeared on this worker. */
  published(track: PublishedTrack): void {
    for (const part of this.#parts.values()) if (part.isOpen) this.#announce(part, track);
  }

  unpublished(track: PublishedTrack): void {
    const number = this.#numbers.get(track);
    if (number === undefined) return;
    this.#numbers.delete(track);
    for (const { exports } of this.#parts.values()) {
      exports.get(number)?.close();
      exports.delete(number);
    }
  }

  /** Takes a message of the room's part on that worker. A message that lost a race with a change is ignored. */
  receive(worker: number, message: CrossingMessage): void {
    const part = this.#parts.get(worker);
    if (part === undefined) return;
    const nowMs = this.#context.world.now();
    const { data } = this.#options;
    switch (message.type) {
      case 'hello':
        return this.#open(part, message.isAnswer);
      case 'track':
        return this.#mirror(part, message);
      case 'state':
        return part.mirrors.get(message.track)?.follow(message.state, nowMs);
      case 'gone':
        return this.#unmirror(part, message.track);
      case 'need':
        return part.exports.get(message.track)?.need(message.variants, message.highest);
      case 'keyframe':
        return part.exports.get(message.track)?.track.requestKeyframe(message.variant, nowMs);
      case 'clock': {
        const stream = part.mirrors.get(message.track)?.stream(message.variant);
        if (stream?.ssrc !== message.ssrc) return undefined;
        const { senderInfo } = this.#context;
        [senderInfo.ntpSeconds, senderInfo.ntpFraction] = message.ntp;
        senderInfo.rtpTimestamp = message.rtp;
        return stream.clock.update(senderInfo, nowMs);
      }
      case 'channelOpened':
        return data.openedElsewhere(worker, message.channel);
      case 'channelClosed':
        return data.closedElsewhere(worker, message.label);
      case 'data':
        return data.fromElsewhere(message.data);
    }
  }

  /** Takes the packet in the context's view. */
  packet(worker: number, route: PacketRoute, nowMs: number): void {
    this.#parts.get(worker)?.mirrors.get(route.track)?.arrived(VARIANTS[route.variant]!, nowMs);
  }

  tick(nowMs: number): void {
    for (const part of this.#parts.values()) {
      for (const each of part.exports.values()) each.tick(nowMs);
      for (const mirror of part.mirrors.values()) mirror.tick(nowMs);
    }
  }

  close(): void {
    for (const worker of this.#parts.keys()) this.unspan(worker);
  }

  #open(part: Part, isAnswer: boolean): void {
    const { room, tracks, data } = this.#options;
    const { link } = part;
    if (!isAnswer) link.post({ room, type: 'hello', isAnswer: true });
    if (part.isOpen) return;
    part.isOpen = true;
    for (const track of tracks()) this.#announce(part, track);
    data.linkUp(link.worker, {
      opened: (channel) => link.post({ room, type: 'channelOpened', channel }),
      closed: (label) => link.post({ room, type: 'channelClosed', label }),
      send: (message) => {
        if (!link.fits(room, message)) return false;
        link.post({ room, type: 'data', data: message });
        return true;
      },
    });
  }

  #announce({ link, exports }: Part, track: PublishedTrack): void {
    if (track instanceof MirroredTrack) return;
    let number = this.#numbers.get(track);
    if (number === undefined) this.#numbers.set(track, (number = this.#context.newTrackNumber()));
    exports.set(number, new TrackExport(this.#context, { link, track, room: this.#options.room, number }));
  }

  #mirror(part: Part, { track: number, peerId, state }: { track: number; peerId: string; state: TrackState }): void {
    const { room, emit, publish } = this.#options;
    let owner = part.publishers.get(peerId);
    if (owner === undefined) {
      owner = new MirrorOwner(this.#context, { peerId, emit, ask: (message) => part.link.post({ room, ...message }) });
      part.publishers.set(peerId, owner);
    }
    const mirror = new MirroredTrack(this.#context, owner, state);
    owner.tracks.set(mirror, number);
    part.mirrors.set(number, mirror);
    publish(mirror);
    mirror.tick(this.#context.world.now());
  }

  #unmirror(part: Part, number: number): void {
    const mirror = part.mirrors.get(number);
    if (mirror === undefined) return;
    part.mirrors.delete(number);
    const { owner } = mirror;
    if (owner instanceof MirrorOwner && owner.remove(mirror)) part.publishers.delete(owner.peerId);
    this.#options.unpublish(mirror);
  }
}

/** A publisher whose transport is on another worker. */
class MirrorOwner implements MirroredOwner {
  readonly #context: MediaContext;
  readonly #options: MirrorOwnerOptions;
  readonly backlog: Backlog;
  /** Its tracks with their numbers. */
  readonly tracks = new Map<PublishedTrack, number>();

  constructor(context: MediaContext, options: MirrorOwnerOptions) {
    this.#context = context;
    this.#options = options;
    this.backlog = new Backlog(context.backlog);
  }

  get peerId(): string {
    return this.#options.peerId;
  }

  get storeBytes(): number {
    let sum = 0;
    for (const { streams } of this.tracks.keys()) {
      for (const stream of streams) sum += stream?.store.buffer.length ?? 0;
    }
    return sum;
  }

  requestKeyframe(track: PublishedTrack, { variant }: InboundStream): void {
    const number = this.tracks.get(track);
    if (number !== undefined) this.#options.ask({ type: 'keyframe', track: number, variant });
  }

  need(track: MirroredTrack, variants: readonly Variant[], highest: number): void {
    const number = this.tracks.get(track);
    if (number !== undefined) this.#options.ask({ type: 'need', track: number, variants, highest });
  }

  dropped(cause: RtpDropCause): void {
    this.#context.dropped[cause]++;
  }

  /** The publisher's worker reports what concerns everybody. */
  emit(event: MediaRoomEvent): void {
    if (event.type === 'voiceActivity' && event.peerId !== undefined) this.#options.emit(event);
  }

  /** Returns true if that was the last track. */
  remove(track: PublishedTrack): boolean {
    this.tracks.delete(track);
    return this.tracks.size === 0;
  }
}

interface MirrorOwnerOptions {
  peerId: string;
  emit(event: MediaRoomEvent): void;
  /** Passes the request to the publisher's worker. */
  ask(
    message:
      | { type: 'keyframe'; track: number; variant: Variant }
      | { type: 'need'; track: number; variants: readonly Variant[]; highest: number },
  ): void;
}
