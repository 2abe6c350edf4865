import { SessionDescription } from '@livekit/protocol';
import { type Identifiers, type PublishedMedia } from '@bloom/negotiation';
import type { PeerSessionOptions } from '@bloom/rooms';
import type { TransportNegotiation } from '@bloom/sfu';
import {
  type AnswerMedia,
  type OfferedMedia,
  parseOffer,
  type SdpOffer,
  WebrtcError,
  writeAnswer,
} from '@bloom/webrtc';
import { DATA_LABELS } from './data.js';
import type { RemoteTrack } from './participants.js';
import type { OfferOutcome, Publishing } from './publishing.js';
import { answerSection, inactive, outboundSlot, type PlannedSection, Subscriptions } from './subscriptions.js';

export const SDP_LIMITS = {
  maxLength: 256 * 1024,
  maxLines: 20_000,
  maxLineLength: 4_096,
  maxMedia: 200,
  maxPerMedia: 128,
};

interface Ice {
  localUfrag: string;
  localPwd: string;
  remoteUfrag: string;
  remotePwd: string;
}

/** An offer that waits for the media plane. */
interface Unanswered {
  /** The client's number of the offer. */
  id: number;
  generation: number;
  offer: SdpOffer;
  published: ReadonlyMap<string, PublishedMedia>;
  planned: ReadonlyMap<string, PlannedSection>;
}

/** The one connection of a client: it offers, and the server answers (version 1 of the signalling). */
export class Connection {
  /** True when an offer is needed although no section is missing. */
  needsOffer = false;
  /** What is wrong with the last offer. */
  fault = '';
  descriptions: { offer?: string; answer?: string } = {};
  readonly #options: PeerSessionOptions;
  readonly #identifiers: Identifiers;
  readonly #publishing: Publishing;
  readonly #subscriptions: Subscriptions;
  readonly #sdpSessionId: string;
  #ice: Ice | undefined;
  #generation = 0;
  #unanswered: Unanswered | undefined;
  /** The newest offer that came while the media plane applied another one. */
  #next: SessionDescription | undefined;
  #answered = false;
  /** Tracks that an answer has connected. */
  readonly #connected = new WeakSet<RemoteTrack>();

  constructor(
    options: PeerSessionOptions,
    parts: { identifiers: Identifiers; publishing: Publishing; isWanted: (track: RemoteTrack) => boolean },
  ) {
    this.#options = options;
    this.#identifiers = parts.identifiers;
    this.#publishing = parts.publishing;
    this.#subscriptions = new Subscriptions(parts.identifiers, parts.isWanted);
    this.#sdpSessionId = parts.identifiers.sessionId();
  }

  /** True when the client has been answered and no offer is being processed. */
  get isIdle(): boolean {
    return this.#answered && this.#unanswered === undefined;
  }

  carries(track: RemoteTrack): boolean {
    return this.#subscriptions.carries(track);
  }

  missing(tracks: Iterable<RemoteTrack>): { audio: number; video: number; needsOffer: boolean } {
    const missing = this.#subscriptions.missing(tracks);

    return this.needsOffer ? { ...missing, needsOffer: true } : missing;
  }

  /** Returns true for an offer that has to wait until the media plane has applied another one. */
  postpones(offer: SessionDescription): boolean {
    if (this.#unanswered === undefined) return false;
    this.#next = offer;

    return true;
  }

  /** Applies an offer. Returns undefined if it is not usable. `starting`: tracks that its answer connects first. */
  offer(
    { sdp, id }: { sdp: string; id: number },
    tracks: Iterable<RemoteTrack>,
  ): (OfferOutcome & { negotiation: TransportNegotiation; starting: RemoteTrack[] }) | undefined {
    this.descriptions = { offer: sdp };
    const offer = this.#parse(sdp);
    if (offer === undefined) return undefined;
    this.needsOffer = false;
    for (const track of this.#subscriptions.keepOnly(offer.media)) this.#connected.delete(track);
    const planned = this.#subscriptions.plan(offer.media, tracks);
    const outcome = this.#publishing.offer(offer.media, (mid) => this.#subscriptions.has(mid));
    this.#generation += 1;
    this.#unanswered = { id, generation: this.#generation, offer, published: outcome.media, planned };

    return {
      ...outcome,
      starting: [...planned.values()].flatMap(({ section: { track } }) =>
        track === undefined || this.#connected.has(track) ? [] : [track],
      ),
      negotiation: {
        generation: this.#generation,
        ice: this.#iceFor(offer),
        fingerprint: offer.transport.fingerprint,
        inbound: this.#publishing.inbound,
        outbound: offer.media.flatMap((line) => {
          const plan = planned.get(line.mid);
          return (plan === undefined ? undefined : outboundSlot(line, plan)) ?? [];
        }),
        ...(offer.media.some(({ isData }) => isData) ? { data: DATA_LABELS } : {}),
      },
    };
  }

  /**
   * Returns the answer once the media plane has applied an offer, with the tracks that it connects first; or else the
   * offer that the client has sent in its place.
   */
  answer(
    generation: number,
  ): { description: SessionDescription; started: RemoteTrack[] } | SessionDescription | undefined {
    const { endpoint } = this.#options;
    const unanswered = this.#unanswered;
    if (unanswered?.generation !== generation || this.#ice === undefined) return undefined;
    const next = this.#next;
    this.#unanswered = this.#next = undefined;
    if (next !== undefined) return next;
    this.#answered = true;
    const { offer, published, planned, id } = unanswered;
    const media = offer.media.map((line) => answerLine(line, published.get(line.mid), planned.get(line.mid)));
    const sdp = writeAnswer({
      offer,
      sessionId: this.#sdpSessionId,
      version: generation,
      ice: { ufrag: this.#ice.localUfrag, pwd: this.#ice.localPwd },
      fingerprint: endpoint.fingerprint,
      candidate: endpoint,
      data: true,
      media,
    });
    this.descriptions = { ...this.descriptions, answer: sdp };
    const midToTrackId: Record<string, string> = {};
    const started: RemoteTrack[] = [];
    for (const [mid, { section }] of planned) {
      if (section.track === undefined || section.track.gone) continue;
      midToTrackId[mid] = section.track.sid;
      if (!this.#connected.has(section.track)) started.push(section.track);
      this.#connected.add(section.track);
    }
    // The media plane forgets what it was told of a track with its slot.
    for (const track of this.#subscriptions.answered(planned)) this.#connected.delete(track);

    return { description: new SessionDescription({ type: 'answer', sdp, id, midToTrackId }), started };
  }

  #parse(sdp: string): SdpOffer | undefined {
    try {
      return parseOffer(sdp, SDP_LIMITS);
    } catch (error) {
      if (!(error instanceof WebrtcError)) throw error;
      this.fault = error.message;
      return undefined;
    }
  }

  /** RFC 8445, section 9: new credentials from the client mean a restart, which requires new ones from us. */
  #iceFor({ transport }: SdpOffer): Ice {
    const { iceUfrag: remoteUfrag, icePwd: remotePwd } = transport;
    if (this.#ice?.remoteUfrag !== remoteUfrag) {
      const { ufrag, pwd } = this.#identifiers.iceCredentials();
      this.#ice = { localUfrag: ufrag, localPwd: pwd, remoteUfrag, remotePwd };
    }

    return this.#ice;
  }
}

function answerLine(
  line: OfferedMedia,
  published: PublishedMedia | undefined,
  planned: PlannedSection | undefined,
): AnswerMedia {
  if (published?.type === 'receive') {
    const { rids, codec, extensions } = published;
    return { role: { type: 'receive', rids }, codec, extensions };
  }

  return planned === undefined ? inactive(line) : answerSection(line, planned);
}
