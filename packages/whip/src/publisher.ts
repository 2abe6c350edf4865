import type { PeerRequest, PeerSessionOptions, SessionInput } from '@bloom/rooms';
import type { TrackKind } from '@bloom/sfu';
import { describePublication, type Identifiers, Publications, type PublishedMedia } from '@bloom/negotiation';
import {
  type AnswerMedia,
  chooseExtensions,
  choosePublishedCodec,
  type OfferedMedia,
  type SdpOffer,
} from '@bloom/webrtc';
import { isSending } from './offer.js';
import type { Negotiated, Role } from './role.js';

/** A client that publishes the contents of its only offer. */
export class Publisher implements Role {
  #media: readonly OfferedMedia[];
  readonly #publications: Publications;
  readonly #trackIds: ReadonlyMap<string, string>;
  #kinds: ReadonlySet<TrackKind>;
  #published: ReadonlyMap<string, PublishedMedia> = new Map();

  constructor(offer: SdpOffer, options: PeerSessionOptions, identifiers: Identifiers) {
    const { peerId, videoCodec, enableSimulcast } = options;
    this.#kinds = new Set(options.publishes);
    this.#media = offer.media;
    this.#trackIds = new Map(this.#media.filter(isSending).map(({ mid }) => [mid, `${peerId}:${identifiers.token()}`]));
    this.#publications = new Publications({
      videoCodec,
      enableSimulcast,
      mayPublish: (kind) => this.#kinds.has(kind),
      identifiers,
      takesAnyRids: true,
    });
  }

  handle(input: SessionInput): boolean {
    if (input.type === 'setPublishes') {
      this.#kinds = new Set(input.kinds);
      return true;
    }
    if (input.type !== 'trackRemovedByServer') return false;
    this.#publications.withdraw(input.trackId);
    return true;
  }

  negotiate(): Negotiated {
    const none = new Map<string, never>();
    const { media, added, removed } = this.#publications.accept(
      this.#media,
      { midToTrackId: this.#trackIds, metadata: none, bitrates: none },
      // Track ids are random, and a publisher receives nothing.
      { trackId: () => false, mid: () => false },
    );
    this.#published = media;
    const requests: PeerRequest[] = [];
    if (removed.length > 0) requests.push({ type: 'unpublish', trackIds: removed });
    if (added.length > 0) requests.push({ type: 'publish', tracks: added.map(describePublication) });
    const inbound = [...this.#publications].map((publication) => publication.inbound);

    return { inbound, outbound: [], requests, targets: [], lacking: [], holdMs: 0 };
  }

  answer(): AnswerMedia[] {
    const answered = this.#media.map((line): AnswerMedia => {
      const published = this.#published.get(line.mid);
      if (published?.type !== 'receive') return inactive(line);
      const { codec, extensions, rids } = published;

      return { role: { type: 'receive', rids }, codec, extensions };
    });
    // The client never sends on an m-line that is refused here, whatever is permitted later.
    this.#media = this.#media.map((line, i) =>
      answered[i]?.role.type === 'receive' ? line : { ...line, direction: 'inactive' },
    );

    return answered;
  }
}

/** Returns the answer to an m-line without media. */
export function inactive(line: OfferedMedia): AnswerMedia {
  const extensions = chooseExtensions(line, { audioLevel: true });

  return { role: { type: 'inactive' }, codec: choosePublishedCodec(line, null), extensions };
}
