import type { EndpointTrack, VideoCodec } from '@bloom/rooms';
import type { InboundTrack, NegotiatedCodec, TrackKind, Variant } from '@bloom/sfu';
import {
  type AgreedExtensions,
  type ChosenCodec,
  chooseExtensions,
  choosePublishedCodec,
  type OfferedMedia,
} from '@bloom/webrtc';
import type { Identifiers } from './identifiers.js';
import { assignLayers, type Bitrates, isVariant, type Layers } from './layers.js';

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
  /** Its second encoding, in another codec. */
  fallback: InboundTrack | undefined;
  metadata: unknown;
  disabled: Set<Variant>;
  muted: boolean;
  /** The client encrypts it end to end. */
  encrypted: boolean;
  /** Shared with the track of the other kind from the same capture. */
  streamId: string;
  /** Stream id of the client's `a=msid`. */
  captureId: string | undefined;
}

/** Answer to an m-line on which the client sends or has sent. `rids` are those on the wire. */
export type PublishedMedia =
  | { type: 'receive'; codec: ChosenCodec; extensions: AgreedExtensions; rids: readonly string[] }
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
  /**
   * True for clients without an SDK: their rids have any names, and where simulcast cannot be taken, its first encoding
   * is. Other clients' rids are `l`, `m` and `h`.
   */
  takesAnyRids?: boolean;
  /** True for clients that publish in no codec that has to be asked for (`PayloadFormat.onRequest`). */
  commonCodecsOnly?: boolean;
  /** True for clients that take an inactive m-line as the refusal of one track. For others, it ends the call. */
  refusesTracks?: () => boolean;
  /** True for clients that may send a second encoding of a track; these take refusals as well. */
  takesFallbacks?: () => boolean;
}

/** What a client says about the tracks of its offer. */
export interface OfferedTracks {
  midToTrackId: ReadonlyMap<string, string>;
  /** A track without an entry has null metadata. */
  metadata: ReadonlyMap<string, unknown>;
  /** Bits per second; a track without an entry has the defaults. */
  bitrates: ReadonlyMap<string, Bitrates>;
  /** True if the client encrypts its tracks end to end. */
  encrypted?: boolean;
  /** Codecs that the client has announced for tracks, by their ids: chosen where the offer and the room have them. */
  codecs?: ReadonlyMap<string, NegotiatedCodec['name']>;
  /**
   * Ids of tracks by the mids of m-lines with their second encodings, in another codec and of the same sizes. Ignored
   * unless the rules take them.
   */
  fallbacks?: ReadonlyMap<string, string>;
}

type Refusal = 'refused';

type Encodings = Pick<Publication, 'inbound' | 'fallback'>;

interface Foreign {
  trackId: (id: string) => boolean;
  mid: (mid: string) => boolean;
}

/** An m-line for audio or video. */
type TrackLine = OfferedMedia & { kind: TrackKind };

/** An m-line and the track that it is for. */
interface Claim {
  line: TrackLine;
  trackId: string;
  /** The track, if the client does not send it at the moment. */
  paused?: Publication;
}

interface Terms {
  offer: OfferedTracks;
  /** M-lines with second encodings, by the ids of their tracks. */
  fallbacks: ReadonlyMap<string, TrackLine>;
  /** The tracks before the offer, by id. */
  known: ReadonlyMap<string, Publication>;
  /** Number of tracks that may be new. */
  maxAdded: number;
  /** Payload types of several m-lines on which the client may send. */
  shared: ReadonlySet<number | undefined>;
}

/** A track that the client publishes on an m-line, and the answer to it. */
interface Received {
  track: InboundTrack;
  answer: Omit<Extract<PublishedMedia, { type: 'receive' }>, 'type'>;
}

interface Admission {
  byMid: Map<string, Publication>;
  /** Answers to the m-lines on which tracks are received. */
  answers: ReadonlyMap<string, PublishedMedia>;
  added: Publication[];
  denied: number;
}

/** The tracks that one client publishes, updated by each of its offers. */
export class Publications {
  readonly #rules: PublicationRules;
  #byMid = new Map<string, Publication>();
  /** The last track of each mid on which the client has ever sent, for the map of mids. */
  readonly #lastTrackIds = new Map<string, string>();
  /** Mids on which the client has ever sent a second encoding. */
  readonly #fallbackMids = new Set<string>();

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
  accept(media: readonly OfferedMedia[], offer: OfferedTracks, isForeign: Foreign): PublicationPlan {
    const known = new Map([...this].map((publication) => [publication.inbound.trackId, publication]));
    const lines = media.filter(isTrackLine).filter(({ mid }) => !isForeign.mid(mid));
    const own = lines.filter((line) => isSending(line) || this.#hasSent(line.mid));
    const answers = new Map<string, PublishedMedia>(own.map(({ mid }) => [mid, { type: 'inactive' }]));

    const kept = new Set(
      media.map(({ mid }) => this.#trackIdOf(mid, offer)).filter((id) => id !== undefined && known.has(id)),
    );
    const claims = lines.map((line) => this.#claim(line, offer, isForeign)).filter((claim) => claim !== undefined);
    const admission = this.#admit(claims, {
      offer,
      fallbacks: this.#fallbackLines(lines, claims, offer),
      known,
      maxAdded: MAX_TRACKS - kept.size,
      shared: sharedPayloadTypes(own),
    });
    for (const [mid, answer] of admission.answers) answers.set(mid, answer);

    this.#byMid = admission.byMid;
    const mids = new Set(media.map(({ mid }) => mid));
    for (const used of [this.#lastTrackIds, this.#fallbackMids]) {
      for (const mid of used.keys()) if (!mids.has(mid)) used.delete(mid);
    }
    const replaced = admission.added.map(({ inbound }) => inbound.trackId).filter((trackId) => known.has(trackId));
    const gone = [...known.keys()].filter((trackId) => this.get(trackId) === undefined);

    return { media: answers, added: admission.added, removed: [...replaced, ...gone], denied: admission.denied };
  }

  /** Merges bitrates into a track. Returns the accepted ones, or undefined for an unknown track. */
  mergeBitrates(trackId: string, bitrates: Bitrates): Bitrates | undefined {
    const publication = this.get(trackId);
    if (publication === undefined) return undefined;
    const { inbound, fallback } = publication;
    const accepted = onlyVariants(bitrates, inbound.rids);
    const merged = { bitratesBps: { ...inbound.bitratesBps, ...accepted } };
    publication.inbound = { ...inbound, ...merged };
    if (fallback !== undefined) publication.fallback = { ...fallback, ...merged };
    return accepted;
  }

  #hasSent(mid: string): boolean {
    return this.#byMid.has(mid) || this.#lastTrackIds.has(mid) || this.#fallbackMids.has(mid);
  }

  /** A sending m-line outweighs a missing entry: newer clients leave muted tracks out of the map. */
  #trackIdOf(mid: string, offer: OfferedTracks): string | undefined {
    return offer.midToTrackId.get(mid) ?? this.#byMid.get(mid)?.inbound.trackId;
  }

  /** Returns the track that an m-line is for, or undefined if it is for none. */
  #claim(line: TrackLine, offer: OfferedTracks, isForeign: Foreign): Claim | undefined {
    if (isSending(line)) {
      const trackId = this.#trackIdOf(line.mid, offer);
      return trackId === undefined || isForeign.trackId(trackId) ? undefined : { line, trackId };
    }
    // Paused, but still the client's track: only a missing entry removes it.
    const paused = this.#byMid.get(line.mid);
    const trackId = offer.midToTrackId.get(line.mid);
    return paused !== undefined && paused.inbound.trackId === trackId ? { line, trackId, paused } : undefined;
  }

  /**
   * Returns the m-lines with second encodings by the ids of their tracks: the first one for each track. An m-line that
   * is for a track itself is none.
   */
  #fallbackLines(
    lines: readonly TrackLine[],
    claims: readonly Claim[],
    { fallbacks }: OfferedTracks,
  ): Map<string, TrackLine> {
    const found = new Map<string, TrackLine>();
    if (fallbacks === undefined || this.#rules.takesFallbacks?.() !== true) return found;
    const claimed = new Set(claims.map(({ line }) => line.mid));
    for (const line of lines) {
      const trackId = fallbacks.get(line.mid);
      if (trackId === undefined || claimed.has(line.mid) || !isSending(line) || found.has(trackId)) continue;
      found.set(trackId, line);
    }
    return found;
  }

  /** Decides on the claims in order: the first one that succeeds has the track. */
  #admit(claims: readonly Claim[], { offer, known, maxAdded, shared, fallbacks }: Terms): Admission {
    const byMid = new Map<string, Publication>();
    const answers = new Map<string, PublishedMedia>();
    const taken = new Set<string>();
    const added: Publication[] = [];
    let denied = 0;
    const settle = ({ line, trackId }: Claim, publication: Publication) => {
      taken.add(trackId);
      byMid.set(line.mid, publication);
    };

    for (const claim of claims) {
      const { line, trackId, paused } = claim;
      if (taken.has(trackId)) continue;
      if (paused !== undefined) {
        settle(claim, paused);
        continue;
      }
      const existing = known.get(trackId);
      if (existing === undefined && added.length >= maxAdded) continue;
      this.#lastTrackIds.set(line.mid, trackId);
      if (!this.#rules.mayPublish(line.kind) || this.#withdrawn.has(trackId)) {
        denied += 1;
        continue;
      }
      const received = this.#receive(claim, offer, existing);
      if (received === 'refused') continue;
      const second = this.#receiveFallback(received.track, { offer, existing, line: fallbacks.get(trackId) });
      for (const { track, answer } of second === undefined ? [received] : [received, second]) {
        const { payloadType, rtxPayloadType, redPayloadType } = track.codec;
        const hasShared = [payloadType, rtxPayloadType, redPayloadType].some((each) => shared.has(each));
        track.hasOwnPayloadTypes = !hasShared;
        answers.set(track.mid, { type: 'receive', ...answer });
      }
      const next = { inbound: received.track, fallback: second?.track };
      if (existing !== undefined && isSameTrack(existing, next)) {
        settle(claim, Object.assign(existing, next));
      } else {
        const publication = this.#publish(next, { line, offer, others: [...byMid.values()] });
        added.push(publication);
        settle(claim, publication);
      }
    }

    return { byMid, answers, added, denied };
  }

  /** Returns the encodings to receive on a simulcast m-line. */
  #layersOf(line: TrackLine, { mid, rid }: AgreedExtensions): Layers | Refusal {
    const isUsable = line.kind === 'video' && mid !== undefined && rid !== undefined;
    if (this.#rules.takesAnyRids === true) {
      // A browser drops the other encodings when the answer has no simulcast; other clients may keep sending them.
      return isUsable && this.#rules.enableSimulcast
        ? assignLayers(line.rids)
        : { rids: [], wireRids: line.rids.slice(0, 1) };
    }
    if (!this.#rules.enableSimulcast) return this.#refuse("Simulcast was offered, but it's not supported");

    return isUsable && line.rids.every(isVariant) ? { rids: line.rids } : 'refused';
  }

  #refuse(reason: string): Refusal {
    if (this.#rules.refusesTracks?.() === true) return 'refused';
    throw new UnacceptableOffer(reason);
  }

  #receive({ line, trackId }: Claim, offer: OfferedTracks, existing: Publication | undefined): Received | Refusal {
    const { kind } = line;
    const { videoCodec, commonCodecsOnly } = this.#rules;
    const preferred = offer.codecs?.get(trackId);
    const codec = choosePublishedCodec(line, videoCodec, { commonOnly: commonCodecsOnly === true, preferred });
    const extensions = chooseExtensions(line, { audioLevel: true, codec: codec?.name });
    const layers: Layers | Refusal = line.rids.length === 0 ? { rids: [] } : this.#layersOf(line, extensions);
    if (layers === 'refused') return layers;
    const { rids, wireRids } = layers;
    if (codec === null) return this.#refuse('No supported payload types in SDP offer!');

    const source = rids.length > 0 ? undefined : line.sources[0];
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
        ...(wireRids === undefined ? {} : { wireRids }),
        bitratesBps,
        ...(codec.parameters === '' ? {} : { formatParameters: codec.parameters }),
        ...(isScreen(existing?.metadata ?? offer.metadata.get(trackId)) ? { still: true } : {}),
      },
      answer: { codec, extensions, rids: rids.length === 0 ? [] : (wireRids ?? rids) },
    };
  }

  /** Returns the second encoding of a track on this m-line, or undefined if it cannot stand in for the first. */
  #receiveFallback(
    first: InboundTrack,
    { line, offer, existing }: { line: TrackLine | undefined; offer: OfferedTracks; existing: Publication | undefined },
  ): Received | undefined {
    if (line?.kind !== 'video' || first.kind !== 'video') return undefined;
    this.#fallbackMids.add(line.mid);
    const received = this.#receive({ line, trackId: first.trackId }, offer, existing);
    if (received === 'refused') return undefined;
    const { codec, rids } = received.track;
    // Receivers are told the sizes of the first encoding.
    const hasSameSizes = rids.length === first.rids.length && rids.every((rid) => first.rids.includes(rid));
    if (codec.name === first.codec.name || !hasSameSizes) return undefined;
    return { ...received, track: { ...received.track, fallback: true } };
  }

  #publish(
    { inbound, fallback }: Encodings,
    { line, offer, others }: { line: TrackLine; offer: OfferedTracks; others: readonly Publication[] },
  ): Publication {
    // One audio and one video track form a synchronised stream; two tracks of a kind would hide each other.
    const siblings = others.filter((other) => other.captureId !== undefined && other.captureId === line.streamId);
    const mates = siblings.some((other) => other.inbound.kind === inbound.kind) ? [] : siblings;
    return {
      inbound,
      fallback,
      metadata: offer.metadata.get(inbound.trackId) ?? null,
      disabled: new Set(),
      muted: false,
      encrypted: offer.encrypted === true,
      captureId: line.streamId,
      streamId: mates[0]?.streamId ?? this.#rules.identifiers.token(),
    };
  }
}

function isTrackLine(line: OfferedMedia): line is TrackLine {
  return !line.refused && line.kind !== 'other';
}

function isSending({ direction }: OfferedMedia): boolean {
  return direction === 'sendonly' || direction === 'sendrecv';
}

/** Returns the payload types that several of these m-lines have. */
function sharedPayloadTypes(lines: readonly OfferedMedia[]): ReadonlySet<number | undefined> {
  const seen = new Set<number>();
  const shared = new Set<number>();
  for (const { codecs } of lines) {
    const own = new Set(codecs.map(({ payloadType }) => payloadType));
    for (const payloadType of own) (seen.has(payloadType) ? shared : seen).add(payloadType);
  }

  return shared;
}

/** Returns false when subscribers have to renegotiate the track as a new one with the same id. */
function isSameTrack(before: Encodings, after: Encodings): boolean {
  const { kind, codec, rids } = before.inbound;
  const isSimulcast = rids.length > 0;
  return (
    kind === after.inbound.kind &&
    codec.name === after.inbound.codec.name &&
    before.fallback?.codec.name === after.fallback?.codec.name &&
    isSimulcast === after.inbound.rids.length > 0
  );
}

export function describePublication(publication: Publication): EndpointTrack {
  const { inbound, fallback, metadata, disabled, streamId, encrypted } = publication;
  return {
    trackId: inbound.trackId,
    kind: inbound.kind,
    codec: inbound.codec.name,
    ...(fallback === undefined ? {} : { fallback: fallback.codec.name }),
    metadata,
    encodings: inbound.rids,
    disabledEncodings: inbound.rids.filter((rid) => disabled.has(rid)),
    streamId,
    audioLevel: inbound.extensions.audioLevel !== undefined,
    ...(encrypted ? { encrypted: true } : {}),
  };
}

export function toNegotiatedCodec(codec: ChosenCodec): NegotiatedCodec {
  const { name, payloadType, clockRate, rtxPayloadType, redPayloadType, feedback } = codec;
  return {
    name,
    payloadType,
    clockRate,
    feedback,
    ...(rtxPayloadType === undefined ? {} : { rtxPayloadType }),
    ...(redPayloadType === undefined ? {} : { redPayloadType }),
  };
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

/** Returns true for the metadata of a shared screen: its `source` or `type` begins with "screen". */
function isScreen(metadata: unknown): boolean {
  const { source, type } = (metadata ?? {}) as { source?: unknown; type?: unknown };
  return [source, type].some((each) => typeof each === 'string' && /^screen/i.test(each));
}
