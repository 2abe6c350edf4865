import { type AddTrackRequest, SimulcastCodecInfo, type TrackInfo, TrackType } from '@livekit/protocol';
import { describePublication, type Identifiers, Publications, type PublishedMedia } from '@bloom/negotiation';
import type { EndpointTrack, PeerSessionOptions } from '@bloom/rooms';
import { type CodecName, commonCodecs } from '@bloom/rtp';
import type { InboundTrack, TrackKind, Variant } from '@bloom/sfu';
import type { OfferedMedia } from '@bloom/webrtc';
import type { Grants } from '../grants.js';
import { sidOf } from '../names.js';
import { layersNeeded, type Message } from './responses.js';
import {
  keptRequest,
  layerBitrates,
  requestedCodec,
  sourceName,
  trackInfo,
  trackMetadata,
  type TrackMetadata,
} from './track-info.js';

const MAX_NAME_BYTES = 256;
const MAX_CID_BYTES = 256;
const MAX_LAYERS = 3;
const MAX_CODECS = 4;
const MAX_FEATURES = 8;
const MAX_PENDING = 20;
/** Tracks of one participant, requested and published. */
const MAX_TRACKS = 60;

/** A track that the client wants to publish or publishes. */
interface OwnTrack {
  readonly cid: string;
  readonly trackId: string;
  readonly sid: string;
  readonly kind: TrackKind;
  /** See `keptRequest`. */
  readonly request: AddTrackRequest;
  metadata: TrackMetadata;
  /** The m-line on which the client sends it, once an offer has one. */
  mid: string | undefined;
  /** The highest layer that anybody needs, once the client has been told; null = none. */
  needed?: Variant | null;
}

export type AddTrackOutcome =
  | { type: 'accepted'; track: TrackInfo; needsOffer: boolean }
  | { type: 'refused'; why: 'notAllowed' | 'limitExceeded' | 'invalid'; message: string }
  /** Nothing to report: a further codec of a track. */
  | { type: 'ignored' };

export interface OfferOutcome {
  /** By mid. */
  media: ReadonlyMap<string, PublishedMedia>;
  added: EndpointTrack[];
  removed: readonly string[];
  /** Requested tracks whose m-line could not be accepted. */
  failed: { sid: string; request: AddTrackRequest }[];
}

/** The tracks of one client: its requests, matched with the m-lines of its offers. */
export class Publishing {
  readonly #publications: Publications;
  readonly #identifiers: Identifiers;
  readonly #peerId: string;
  readonly #grants: () => Grants;
  /** In the order of the requests. */
  #tracks: OwnTrack[] = [];
  /** M-lines of the last offer that send a track that the client has not requested. */
  #unmatched: ReadonlySet<TrackKind> = new Set();

  constructor(
    { peerId, videoCodec, enableSimulcast }: PeerSessionOptions,
    rules: { identifiers: Identifiers; grants: () => Grants; mayPublish: (kind: TrackKind) => boolean },
  ) {
    this.#peerId = peerId;
    this.#identifiers = rules.identifiers;
    this.#grants = rules.grants;
    this.#publications = new Publications({
      videoCodec,
      enableSimulcast,
      mayPublish: rules.mayPublish,
      identifiers: rules.identifiers,
      takesAnyRids: true,
      commonCodecsOnly: true,
      refusesTracks: () => true,
    });
  }

  get inbound(): InboundTrack[] {
    return [...this.#publications].map(({ inbound }) =>
      inbound.rids.length === 0 ? inbound : { ...inbound, stopsUnneeded: true },
    );
  }

  /** Handles the request to publish a track. */
  add(request: AddTrackRequest): AddTrackOutcome {
    if (request.sid !== '') return { type: 'ignored' };
    const refusal = this.#refusal(request);
    if (refusal !== undefined) return refusal;
    const known = this.#tracks.find(({ cid, mid }) => cid === request.cid && mid === undefined);
    if (known !== undefined) return { type: 'accepted', track: this.#requestedInfo(known), needsOffer: false };

    const trackId = `${this.#peerId}:${this.#identifiers.token()}`;
    const kind = request.type === TrackType.VIDEO ? 'video' : 'audio';
    const track: OwnTrack = {
      cid: request.cid,
      trackId,
      sid: sidOf('TR', trackId),
      kind,
      request: keptRequest(request),
      metadata: trackMetadata(request),
      mid: undefined,
    };
    this.#tracks.push(track);

    return { type: 'accepted', track: this.#requestedInfo(track), needsOffer: this.#unmatched.has(kind) };
  }

  /** Applies an offer. `isReceiving`: the m-lines on which the server sends. */
  offer(media: readonly OfferedMedia[], isReceiving: (mid: string) => boolean): OfferOutcome {
    const lines = media.filter(({ kind, refused, mid }) => kind !== 'other' && !refused && !isReceiving(mid));
    const sending = lines.filter(({ direction }) => direction === 'sendonly' || direction === 'sendrecv');
    const matched = this.#match(sending);
    const accepted = this.#publications.accept(
      media,
      {
        midToTrackId: new Map([...matched].map(([mid, { trackId }]) => [mid, trackId])),
        metadata: new Map(this.#tracks.map(({ trackId, metadata }) => [trackId, metadata])),
        bitrates: new Map(this.#tracks.map(({ trackId, request }) => [trackId, layerBitrates(request.layers)])),
        codecs: this.#requestedCodecs(),
      },
      { trackId: () => false, mid: isReceiving },
    );
    const failed: OfferOutcome['failed'] = [];
    for (const [mid, track] of matched) {
      track.mid = mid;
      if (this.#publications.get(track.trackId) === undefined) failed.push(track);
    }
    this.#tracks = this.#tracks.filter(
      ({ mid, trackId }) => mid === undefined || this.#publications.get(trackId) !== undefined,
    );
    this.#unmatched = new Set(sending.filter(({ mid }) => !matched.has(mid)).map(({ kind }) => kind as TrackKind));

    return {
      media: accepted.media,
      added: accepted.added.map(describePublication),
      removed: accepted.removed,
      failed,
    };
  }

  /** Mutes or unmutes a track. Returns it if that changes anything. */
  mute(sid: string, muted: boolean): { trackId: string; metadata: TrackMetadata; isPublished: boolean } | undefined {
    const track = this.#tracks.find((each) => each.sid === sid);
    if (track === undefined || track.metadata.muted === muted) return undefined;
    track.metadata = { ...track.metadata, muted };
    const publication = this.#publications.get(track.trackId);
    if (publication !== undefined) publication.metadata = track.metadata;

    return { trackId: track.trackId, metadata: track.metadata, isPublished: publication !== undefined };
  }

  /** Records the highest layer of a track that anybody needs. Returns what to tell the client. */
  setNeeded(trackId: string, highest: Variant | null): Message[] {
    const track = this.#tracks.find((each) => each.trackId === trackId);
    if (track === undefined) return [];
    track.needed = highest;

    return this.#tellNeeded(track);
  }

  /** Returns once more what the client was told of the layers that anybody needs. */
  repeatNeeded(): Message[] {
    return this.#tracks.flatMap((track) => this.#tellNeeded(track));
  }

  #tellNeeded({ sid, trackId, needed: highest }: OwnTrack): Message[] {
    const codec = this.#publications.get(trackId)?.inbound.codec.name;

    return highest === undefined || codec === undefined ? [] : [layersNeeded({ sid, codec, highest })];
  }

  /** True if each of these tracks is requested or published. */
  hasAll(sids: readonly string[]): boolean {
    const own = new Set(this.#tracks.map(({ sid }) => sid));

    return sids.every((sid) => own.has(sid));
  }

  /** Returns the ids of those of the client's tracks that have one of these sids. */
  trackIdsOf(sids: readonly string[]): string[] {
    const wanted = new Set(sids);

    return this.#tracks.flatMap(({ sid, trackId }) => (wanted.has(sid) ? [trackId] : []));
  }

  sidOf(trackId: string): string | undefined {
    return this.#tracks.find((track) => track.trackId === trackId)?.sid;
  }

  /** Forgets a track that the server has removed. Returns its sid. */
  withdraw(trackId: string): string | undefined {
    const sid = this.sidOf(trackId);
    this.#publications.withdraw(trackId);
    this.#tracks = this.#tracks.filter((track) => track.trackId !== trackId);

    return sid;
  }

  /** Returns the ids of the tracks, requested and published, that the client may no longer publish; withdraw each. */
  dropDenied(): string[] {
    const kinds = this.#publications.dropDenied();
    const denied = this.#tracks.filter(
      ({ trackId, metadata }) => kinds.includes(trackId) || !this.#allows(metadata.source),
    );

    return denied.map(({ trackId }) => trackId);
  }

  /** Returns the published tracks. */
  infos(): TrackInfo[] {
    const seen = { audio: 0, video: 0 };

    return [...this.#publications].map((publication) => {
      const { inbound } = publication;
      const own = this.#tracks.find(({ trackId }) => trackId === inbound.trackId);
      const info = trackInfo(describePublication(publication), seen[inbound.kind]++);
      info.mid = inbound.mid;
      const [codec] = info.codecs;
      if (codec !== undefined) {
        codec.mid = inbound.mid;
        codec.cid = own?.cid ?? '';
      }
      if (own !== undefined) this.#describeRequest(info, own.request);

      return info;
    });
  }

  /** Returns the codecs in which the client wants to send its tracks, by their ids. */
  #requestedCodecs(): Map<string, CodecName> {
    const codecs = new Map<string, CodecName>();
    for (const { trackId, request } of this.#tracks) {
      const codec = requestedCodec(request);
      if (codec !== undefined) codecs.set(trackId, codec);
    }

    return codecs;
  }

  #allows(source: TrackMetadata['source']): boolean {
    const { canPublishSources } = this.#grants();

    return canPublishSources.length === 0 || (source !== 'unknown' && canPublishSources.includes(source));
  }

  #refusal(request: AddTrackRequest): AddTrackOutcome | undefined {
    const { source, type, name, cid, layers, simulcastCodecs, audioFeatures } = request;
    if (!this.#grants().canPublish || !this.#allows(sourceName(source))) {
      return { type: 'refused', why: 'notAllowed', message: 'this source may not be published' };
    }
    if (type !== TrackType.AUDIO && type !== TrackType.VIDEO) {
      return { type: 'refused', why: 'invalid', message: 'the track is neither audio nor video' };
    }
    if (cid === '' || Buffer.byteLength(cid) > MAX_CID_BYTES) {
      return { type: 'refused', why: 'invalid', message: `the cid is empty or exceeds ${MAX_CID_BYTES} bytes` };
    }
    const tooMany =
      (Buffer.byteLength(name) > MAX_NAME_BYTES && `the name exceeds ${MAX_NAME_BYTES} bytes`) ||
      (layers.length > MAX_LAYERS && `more than ${MAX_LAYERS} layers`) ||
      (simulcastCodecs.length > MAX_CODECS && `more than ${MAX_CODECS} codecs`) ||
      (audioFeatures.length > MAX_FEATURES && `more than ${MAX_FEATURES} features`) ||
      (this.#tracks.filter(({ mid }) => mid === undefined).length >= MAX_PENDING &&
        `more than ${MAX_PENDING} tracks that no offer contains`) ||
      (this.#tracks.length >= MAX_TRACKS && `more than ${MAX_TRACKS} tracks`);

    return tooMany === false ? undefined : { type: 'refused', why: 'limitExceeded', message: tooMany };
  }

  /**
   * Returns the track of each sending m-line: the one that it had, the requested one with the cid in its `a=msid`, or
   * else the oldest requested one of its kind, because Firefox requests a track under a different id than in its offer.
   */
  #match(sending: readonly OfferedMedia[]): Map<string, OwnTrack> {
    const matched = new Map<string, OwnTrack>();
    const waiting = (): OwnTrack[] =>
      this.#tracks.filter((track) => track.mid === undefined && ![...matched.values()].includes(track));
    const rest: OfferedMedia[] = [];
    for (const line of sending) {
      const current = this.#tracks.find(({ mid }) => mid === line.mid);
      const requested = waiting().find(({ cid, kind }) => cid === line.msidTrackId && kind === line.kind);
      const track = requested ?? current;
      if (track === undefined) rest.push(line);
      else matched.set(line.mid, track);
    }
    for (const line of rest) {
      const track = waiting().find(({ kind }) => kind === line.kind);
      if (track !== undefined) matched.set(line.mid, track);
    }

    return matched;
  }

  /** Describes a track that no offer contains yet. */
  #requestedInfo({ trackId, kind, request, metadata, cid }: OwnTrack): TrackInfo {
    const known = commonCodecs(kind, null);
    const wanted = requestedCodec(request);
    const codec = known.find((name) => name === wanted) ?? known[0]!;
    const info = trackInfo({ trackId, kind, codec, metadata, encodings: [], disabledEncodings: [] }, 0);
    info.codecs = [new SimulcastCodecInfo({ mimeType: info.mimeType, cid, layers: info.layers })];
    this.#describeRequest(info, request);

    return info;
  }

  #describeRequest(info: TrackInfo, { layers, stereo, disableDtx, audioFeatures }: AddTrackRequest): void {
    if (layers.length > 0) info.layers = layers.map((layer) => layer.clone());
    info.stereo = stereo;
    info.disableDtx = disableDtx;
    info.audioFeatures = [...audioFeatures];
  }
}
