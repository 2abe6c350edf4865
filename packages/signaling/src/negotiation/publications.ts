import type { EndpointTrack, VideoCodec } from '@bloom/rooms';
import type { InboundTrack, NegotiatedCodec, TrackKind, Variant } from '@bloom/sfu';
import {
  type AgreedExtensions,
  type ChosenCodec,
  chooseExtensions,
  choosePublishedCodec,
  type OfferedMedia,
} from '@bloom/webrtc';
import { type Bitrates, isVariant, type SdpOfferEvent } from '../events/client-event.js';
import type { Identifiers } from './identifiers.js';

/** Maximum number of tracks per client; every other client has to offer an m-line for each. */
const MAX_TRACKS = 32;

/** Bits per second for a client that announces none. */
const DEFAULT_BITRATES: Record<TrackKind, Required<Bitrates>> = {
  video: { l: 150_000, m: 500_000, h: 2_500_000 },
  audio: { l: 35_000, m: 35_000, h: 35_000 },
};

/** A track that the client publishes. */
export interface Publication {
  inbound: InboundTrack;
  metadata: unknown;
  disabled: Set<Variant>;
  muted: boolean;
  /** Shared with the track of the other kind from the same capture. */
  streamId: string;
  /** Stream id of the client's `a=msid`. */
  captureId: string | undefined;
}

/** Answer to an m-line on which the client sends or has sent. */
export type PublishedMedia =
  | { type: 'receive'; codec: ChosenCodec; extensions: AgreedExtensions; rids: readonly Variant[] }
  | { type: 'inactive' };

export interface PublicationPlan {
  /** By mid. The client has never sent on other m-lines. */
  media: ReadonlyMap<string, PublishedMedia>;
  added: readonly Publication[];
  /** To be removed before the others are added: an id may be in both. */
  removed: readonly string[];
  /** Tracks that the client may not publish; their m-lines are inactive. */
  denied: number;
}

/** The peer's media endpoint is beyond repair; the message becomes the close reason. */
export class UnacceptableOffer extends Error {
  override readonly name = 'UnacceptableOffer';
}

export interface PublicationRules {
  videoCodec: VideoCodec | null;
  enableSimulcast: boolean;
  mayPublish: (kind: TrackKind) => boolean;
  identifiers: Identifiers;
}

type Refusal = 'refused';

/** The tracks that one client publishes, updated by each of its offers. */
export class Publications {
  readonly #rules: PublicationRules;
  #byMid = new Map<string, Publication>();
  /** The last track of each mid on which the client has ever sent, for the map of mids. */
  readonly #lastTrackIds = new Map<string, string>();

  /** Ids of tracks that the backend has removed, one per call of the backend. Kept until the connection ends. */
  readonly #withdrawn = new Set<string>();

  constructor(rules: PublicationRules) {
    this.#rules = rules;
  }

  [Symbol.iterator](): IterableIterator<Publication> {
    return this.#byMid.values();
  }

  get(trackId: string): Publication | undefined {
    for (const publication of this) if (publication.inbound.trackId === trackId) return publication;
    return undefined;
  }

  lastTrackId(mid: string): string | undefined {
    return this.#lastTrackIds.get(mid);
  }

  /** Forgets the tracks that the client may no longer publish. Returns their ids. */
  dropDenied(): string[] {
    const dropped: string[] = [];
    for (const [mid, { inbound }] of this.#byMid) {
      if (this.#rules.mayPublish(inbound.kind)) continue;
      this.#byMid.delete(mid);
      dropped.push(inbound.trackId);
    }
    return dropped;
  }

  /** Forgets a track and refuses its id from now on. */
  withdraw(trackId: string): void {
    this.#withdrawn.add(trackId);
    for (const [mid, { inbound }] of this.#byMid) if (inbound.trackId === trackId) this.#byMid.delete(mid);
  }

  /** Applies an offer. `isForeign` recognises track ids of other endpoints and mids on which the server sends. */
  accept(
    media: readonly OfferedMedia[],
    offer: SdpOfferEvent,
    isForeign: { trackId: (id: string) => boolean; mid: (mid: string) => boolean },
  ): PublicationPlan {
    const before = this.#byMid;
    const known = new Map([...before.values()].map((publication) => [publication.inbound.trackId, publication]));
    const after = new Map<string, Publication>();
    const taken = new Set<string>();
    const plan = new Map<string, PublishedMedia>();
    const added: Publication[] = [];
    const removed: string[] = [];
    let denied = 0;
    const trackIdOf = (mid: string) => offer.midToTrackId.get(mid) ?? before.get(mid)?.inbound.trackId;
    const kept = new Set(media.map(({ mid }) => trackIdOf(mid)).filter((id) => id !== undefined && known.has(id)));

    for (const line of media) {
      if (line.refused || line.kind === 'other' || isForeign.mid(line.mid)) continue;
      const mapped = offer.midToTrackId.get(line.mid);
      const prior = before.get(line.mid);
      const sends = line.direction === 'sendonly' || line.direction === 'sendrecv';
      // A sending m-line outweighs a missing entry: newer clients leave muted tracks out of the map.
      const trackId = mapped ?? prior?.inbound.trackId;
      if (!sends) {
        if (prior !== undefined || this.#lastTrackIds.has(line.mid)) plan.set(line.mid, { type: 'inactive' });
        if (prior !== undefined && mapped === prior.inbound.trackId && !taken.has(mapped)) {
          // Paused, but still the client's track: only a missing entry removes it.
          taken.add(mapped);
          after.set(line.mid, prior);
        }
        continue;
      }
      plan.set(line.mid, { type: 'inactive' });
      if (trackId === undefined || taken.has(trackId) || isForeign.trackId(trackId)) continue;
      if (!known.has(trackId) && kept.size + added.length >= MAX_TRACKS) continue;
      this.#lastTrackIds.set(line.mid, trackId);
      if (!this.#rules.mayPublish(line.kind) || this.#withdrawn.has(trackId)) {
        denied += 1;
        continue;
      }
      const inbound = this.#receive(line, line.kind, trackId, offer, known.get(trackId));
      if (inbound === 'refused') continue;
      taken.add(trackId);
      plan.set(line.mid, { type: 'receive', ...inbound.answer });
      const existing = known.get(trackId);
      if (existing === undefined || !isSameTrack(existing.inbound, inbound.track)) {
        if (existing !== undefined) removed.push(trackId);
        const publication = this.#publish(line, inbound.track, offer, [...after.values()]);
        added.push(publication);
        after.set(line.mid, publication);
      } else {
        existing.inbound = inbound.track;
        after.set(line.mid, existing);
      }
    }

    this.#byMid = after;
    const mids = new Set(media.map(({ mid }) => mid));
    for (const mid of this.#lastTrackIds.keys()) if (!mids.has(mid)) this.#lastTrackIds.delete(mid);
    for (const trackId of known.keys()) if (!taken.has(trackId)) removed.push(trackId);
    return { media: plan, added, removed, denied };
  }

  /** Merges bitrates into a track. Returns the accepted ones, or undefined for an unknown track. */
  mergeBitrates(trackId: string, bitrates: Bitrates): Bitrates | undefined {
    const publication = this.get(trackId);
    if (publication === undefined) return undefined;
    const { inbound } = publication;
    const accepted = onlyVariants(bitrates, inbound.rids);
    publication.inbound = { ...inbound, bitratesBps: { ...inbound.bitratesBps, ...accepted } };
    return accepted;
  }

  #receive(
    line: OfferedMedia,
    kind: TrackKind,
    trackId: string,
    offer: SdpOfferEvent,
    existing: Publication | undefined,
  ): { track: InboundTrack; answer: Omit<Extract<PublishedMedia, { type: 'receive' }>, 'type'> } | Refusal {
    const extensions = chooseExtensions(line, { audioLevel: true });
    const simulcast = line.rids.length > 0;
    if (simulcast && !this.#rules.enableSimulcast) {
      throw new UnacceptableOffer("Simulcast was offered, but it's not supported");
    }
    const rids = line.rids.filter(isVariant);
    const identifiable = extensions.mid !== undefined && extensions.rid !== undefined;
    if (simulcast && (kind !== 'video' || rids.length < line.rids.length || !identifiable)) return 'refused';

    const codec = choosePublishedCodec(line, this.#rules.videoCodec);
    if (codec === null) throw new UnacceptableOffer('No supported payload types in SDP offer!');

    const source = simulcast ? undefined : line.sources[0];
    const bitratesBps = {
      ...onlyVariants(existing?.inbound.bitratesBps ?? DEFAULT_BITRATES[kind], rids),
      ...onlyVariants(offer.bitrates.get(trackId) ?? {}, rids),
    };
    return {
      track: {
        trackId,
        kind,
        mid: line.mid,
        codec: toNegotiatedCodec(codec),
        extensions,
        ...(source === undefined ? {} : { ssrc: source.ssrc }),
        ...(source?.rtx === undefined ? {} : { rtxSsrc: source.rtx }),
        rids,
        bitratesBps,
      },
      answer: { codec, extensions, rids },
    };
  }

  #publish(
    line: OfferedMedia,
    inbound: InboundTrack,
    offer: SdpOfferEvent,
    others: readonly Publication[],
  ): Publication {
    // One audio and one video track form a synchronized stream; two tracks of a kind would hide each other.
    const siblings = others.filter((other) => other.captureId !== undefined && other.captureId === line.streamId);
    const mates = siblings.some((other) => other.inbound.kind === inbound.kind) ? [] : siblings;
    return {
      inbound,
      metadata: offer.metadata.get(inbound.trackId) ?? null,
      disabled: new Set(),
      muted: false,
      captureId: line.streamId,
      streamId: mates[0]?.streamId ?? this.#rules.identifiers.token(),
    };
  }
}

/** Returns false when subscribers have to renegotiate the track as a new one with the same id. */
function isSameTrack(before: InboundTrack, after: InboundTrack): boolean {
  const { kind, codec, rids } = before;
  const isSimulcast = rids.length > 0;
  return kind === after.kind && codec.name === after.codec.name && isSimulcast === after.rids.length > 0;
}

export function describePublication({ inbound, metadata, disabled, streamId }: Publication): EndpointTrack {
  return {
    trackId: inbound.trackId,
    kind: inbound.kind,
    codec: inbound.codec.name,
    metadata,
    encodings: inbound.rids,
    disabledEncodings: inbound.rids.filter((rid) => disabled.has(rid)),
    streamId,
    audioLevel: inbound.extensions.audioLevel !== undefined,
  };
}

export function toNegotiatedCodec(codec: ChosenCodec): NegotiatedCodec {
  const { name, payloadType, clockRate, rtxPayloadType, feedback } = codec;
  return { name, payloadType, clockRate, feedback, ...(rtxPayloadType === undefined ? {} : { rtxPayloadType }) };
}

/** Selects the bitrates of existing variants: without simulcast the only one is `h`. */
function onlyVariants(bitrates: Bitrates, rids: readonly Variant[]): Bitrates {
  const accepted: Bitrates = {};
  for (const variant of rids.length > 0 ? rids : (['h'] as const)) {
    const bitrate = bitrates[variant];
    if (bitrate !== undefined) accepted[variant] = bitrate;
  }
  return accepted;
}
