import type { RtpView } from '@bloom/rtp';
import { Allowance } from '@bloom/time';
import type { InboundTrack, RtpDropCause, Variant } from '../media-engine.js';
import { VARIANTS } from '../variants/variants.js';
import type { InboundStream } from './inbound-stream.js';
import type { PublishedTrack } from './published-track.js';

/** Limit on replacements by sources that the SDP does not name: of one variant, and of all of a client's. */
const REPLACEMENTS = { burst: 4, perSecond: 4 };
const REPLACEMENTS_OF_CLIENT = { burst: 32, perSecond: 32 };
/** Sources of one client whose names are remembered. */
const MAX_NAMES = 256;

/** What a source's first packets say about it. */
interface SourceName {
  mid: string;
  /** Undefined for an encoding that is not accepted. */
  variant: Variant | undefined;
  /** SSRC of the stream that a retransmission stream repaired last. */
  repairs?: number | undefined;
}

export interface Route {
  track: PublishedTrack;
  stream: InboundStream;
  rtx: boolean;
}

/** Receives the cause for which a packet belongs to no stream, and the track that it names. */
type Dropped = (cause: RtpDropCause, track: PublishedTrack | undefined, nowMs: number) => void;

/**
 * Assigns one client's SSRCs to the streams of its tracks (RFC 9143 section 9.2): by the SDP, else by the mid and rid
 * of their first packets, else by a payload type that only one m-line has. A new SSRC replaces the stream.
 */
export class StreamRoutes {
  readonly #dropped: Dropped;
  readonly bySsrc = new Map<number, Route>();
  readonly #byMid = new Map<string, PublishedTrack>();
  /** Null for a payload type that several m-lines have. */
  #byPayloadType = new Map<number, PublishedTrack | null>();
  /** Retransmission SSRCs seen before the stream they repair, by `mid/variant`. */
  readonly #pendingRtx = new Map<string, number>();
  /**
   * Sources that named themselves, newest last. Kept when their tracks end: browsers omit the name once we have
   * reported on a source, and reuse the source when its track may be published again.
   */
  readonly #names = new Map<number, SourceName>();
  #midIds: number[] = [];
  readonly #replacements = new Allowance(REPLACEMENTS_OF_CLIENT);

  constructor(dropped: Dropped) {
    this.#dropped = dropped;
  }

  /** Applies the tracks of a new answer, after `remove` and `expectSignalled`. */
  negotiated(tracks: Iterable<PublishedTrack>): void {
    const midIds = new Set<number>();
    this.#byPayloadType = new Map();
    for (const track of tracks) {
      const { mid, extensions, codec, hasOwnPayloadTypes } = track.params;
      this.#byMid.set(mid, track);
      if (extensions.mid !== undefined) midIds.add(extensions.mid);
      for (const payloadType of [codec.payloadType, codec.rtxPayloadType, codec.redPayloadType]) {
        if (payloadType === undefined) continue;
        const isShared = hasOwnPayloadTypes !== true || this.#byPayloadType.has(payloadType);
        this.#byPayloadType.set(payloadType, isShared ? null : track);
      }
    }
    this.#midIds = [...midIds];
  }

  /** Assigns the SSRCs that the SDP announces. Simulcast streams are recognised by mid and rid. */
  expectSignalled(track: PublishedTrack, { ssrc, rtxSsrc, rids }: InboundTrack): void {
    if (rids.length > 0 || ssrc === undefined) return;
    this.#bind(track, 'h', ssrc);
    if (rtxSsrc !== undefined) this.#bindRtx(track, 'h', rtxSsrc);
  }

  remove(track: PublishedTrack): void {
    const { mid } = track.params;
    if (this.#byMid.get(mid) === track) this.#byMid.delete(mid);
    for (const [payloadType, owner] of this.#byPayloadType) {
      if (owner === track) this.#byPayloadType.delete(payloadType);
    }
    for (const [ssrc, route] of this.bySsrc) {
      if (route.track !== track) continue;
      this.bySsrc.delete(ssrc);
      // Its late packets must not become a source of another track.
      const { variant, ssrc: repaired } = route.stream;
      this.#keepName(ssrc, { mid, variant, repairs: route.rtx ? repaired : undefined });
    }
    for (const variant of VARIANTS) this.#pendingRtx.delete(`${mid}/${variant}`);
  }

  clear(): void {
    this.#byMid.clear();
    this.#byPayloadType.clear();
    this.bySsrc.clear();
    this.#pendingRtx.clear();
    this.#names.clear();
  }

  /** Assigns the unknown SSRC of a packet. Returns undefined if the packet has to be dropped. */
  learn(view: RtpView, nowMs: number): Route | undefined {
    const { ssrc, payloadType } = view;
    const name = this.#names.get(ssrc);
    const mid = this.#midOf(view) ?? name?.mid;
    const track = mid === undefined ? this.#byPayloadType.get(payloadType) : this.#byMid.get(mid);
    // Clients learn late that their track was removed, so packets from a known source are not their fault.
    if (track === undefined && mid !== undefined)
      return this.#drop(name === undefined ? 'unpublished' : 'ended', nowMs);
    if (track === undefined) return this.#drop('unexpected_payload', nowMs);
    if (track === null) return this.#drop('unknown_ssrc', nowMs);

    const { params } = track;
    const isMedia = payloadType === params.codec.payloadType || payloadType === params.codec.redPayloadType;
    if (!isMedia && payloadType !== params.codec.rtxPayloadType) return this.#drop('unexpected_payload', nowMs, track);
    const rid = view.textExtension(isMedia ? params.extensions.rid : params.extensions.repairedRid);
    const isNamed = rid === undefined && name?.mid === params.mid;
    const variant = isNamed ? name.variant : variantOf(params, rid);
    if (variant === undefined) {
      // Remember it, because later packets may omit the rid.
      if (rid !== undefined) this.#keepName(ssrc, { mid: params.mid, variant });
      return this.#drop('unknown_rid', nowMs, track);
    }
    if (!isMedia) {
      const stream = track.stream(variant);
      // Its numbers are those of the source that it repaired, which has been replaced.
      if (stream !== undefined && !mayRepair(name, stream.ssrc)) return this.#drop('ended', nowMs);
      if (stream !== undefined && stream.rtxSsrc >= 0) return this.#drop('ssrc_changes', nowMs, track);
      this.#keepName(ssrc, { mid: params.mid, variant, repairs: name?.repairs });
      return this.#bindRtx(track, variant, ssrc);
    }
    const route = this.#replace(track, variant, ssrc, nowMs);
    if (route === undefined) return this.#drop('ssrc_changes', nowMs, track);
    this.#keepName(ssrc, { mid: params.mid, variant });

    return route;
  }

  /** Makes the SSRC the source of this variant, unless sources change too often. */
  #replace(track: PublishedTrack, variant: Variant, ssrc: number, nowMs: number): Route | undefined {
    const present = track.stream(variant);
    if (present === undefined || present.ssrc === ssrc) return this.#bind(track, variant, ssrc);
    // Late packets of a replaced source, or two simultaneous sources, must not make the source flip back and forth.
    if (this.#names.has(ssrc) && present.isFlowing(nowMs)) return undefined;
    // A new source costs a packet store, so changing SSRCs must not create one per packet.
    if (this.#replacements.left(nowMs) < 1) return undefined;
    present.replacements ??= new Allowance(REPLACEMENTS);
    if (!present.replacements.take(nowMs)) return undefined;
    this.#replacements.take(nowMs);
    const route = this.#bind(track, variant, ssrc);
    route.stream.replacements = present.replacements;

    return route;
  }

  #bind(track: PublishedTrack, variant: Variant, ssrc: number): Route {
    const old = track.stream(variant);
    if (old !== undefined && old.ssrc !== ssrc) {
      const { mid } = track.params;
      this.bySsrc.delete(old.ssrc);
      this.#keepName(old.ssrc, { mid, variant });
      if (this.bySsrc.delete(old.rtxSsrc)) this.#keepName(old.rtxSsrc, { mid, variant, repairs: old.ssrc });
    }
    const route = { track, stream: track.openStream(variant, ssrc), rtx: false };
    this.bySsrc.set(ssrc, route);
    const pending = this.#pendingRtx.get(`${track.params.mid}/${variant}`);
    if (pending !== undefined && mayRepair(this.#names.get(pending), ssrc)) this.#bindRtx(track, variant, pending);
    return route;
  }

  #bindRtx(track: PublishedTrack, variant: Variant, ssrc: number): Route | undefined {
    const stream = track.stream(variant);
    if (stream === undefined) {
      this.#pendingRtx.set(`${track.params.mid}/${variant}`, ssrc);
      return undefined;
    }
    this.#pendingRtx.delete(`${track.params.mid}/${variant}`);
    this.bySsrc.delete(stream.rtxSsrc);
    stream.rtxSsrc = ssrc;
    const route = { track, stream, rtx: true };
    this.bySsrc.set(ssrc, route);
    return route;
  }

  #midOf(view: RtpView): string | undefined {
    for (const id of this.#midIds) {
      const mid = view.textExtension(id);
      if (mid !== undefined) return mid;
    }
    return undefined;
  }

  #keepName(ssrc: number, name: SourceName): void {
    this.#names.delete(ssrc);
    this.#names.set(ssrc, name);
    if (this.#names.size <= MAX_NAMES) return;
    for (const oldest of this.#names.keys()) return void this.#names.delete(oldest);
  }

  #drop(cause: RtpDropCause, nowMs: number, track?: PublishedTrack): undefined {
    this.#dropped(cause, track, nowMs);
  }
}

/** Returns whether the retransmission stream with this name can belong to the source with this SSRC. */
function mayRepair(name: SourceName | undefined, ssrc: number): boolean {
  return name?.repairs === undefined || name.repairs === ssrc;
}

/** Returns the variant of a packet with this rid, or undefined for an encoding that is not accepted. */
function variantOf({ rids, wireRids = rids }: InboundTrack, rid: string | undefined): Variant | undefined {
  // Without simulcast the rid is optional, and a client with only one encoding need not know its name.
  if (rids.length === 0) return rid === undefined || wireRids.length === 0 || rid === wireRids[0] ? 'h' : undefined;

  return rid === undefined ? undefined : rids[wireRids.indexOf(rid)];
}
