import type { Endpoint, EndpointTrack, PeerSessionOptions, SessionInput } from '@bloom/rooms';
import type { OutboundSlot, TrackKind } from '@bloom/sfu';
import { type Identifiers, toNegotiatedCodec } from '@bloom/negotiation';
import {
  type AgreedExtensions,
  type AnswerMedia,
  type ChosenCodec,
  chooseExtensions,
  type OfferedMedia,
  type SdpOffer,
} from '@bloom/webrtc';
import { watchableCodecs, watchedLines } from './offer.js';
import { inactive } from './publisher.js';
import type { Negotiated, Role } from './role.js';
import type { WatchedSource } from './session-message.js';
import { HOLD_MS } from './speaker-choice.js';
import { type ShownTracks, WatchedRoom } from './watched-room.js';

/** Tracks of which it is remembered that the viewer lacks their codec, or their key. */
const MAX_LACKING = 256;

/** One m-line to the viewer. It keeps its SSRC whichever track it shows, so the client sees one stream. */
interface ViewerSlot {
  readonly line: OfferedMedia;
  readonly kind: TrackKind;
  readonly codecs: readonly ChosenCodec[];
  readonly extensions: AgreedExtensions;
  readonly ssrc: number;
  readonly rtxSsrc: number;
  readonly msidTrackId: string;
}

/** A client that watches. Its answer is valid for every track that its slots will ever show. */
export class Viewer implements Role {
  readonly #media: readonly OfferedMedia[];
  readonly #room: WatchedRoom;
  readonly #slots: ReadonlyMap<string, ViewerSlot>;
  /** Kinds of the m-lines on which the viewer receives. */
  readonly #kinds: ReadonlySet<TrackKind>;
  /** Ids of the tracks whose codec or key the viewer lacks. */
  readonly #lacking = new Set<string>();
  readonly #streamId: string;
  readonly #cname: string;
  #shown: ShownTracks = {};
  #hold = false;

  constructor(
    {
      offer,
      source,
      present,
      speaking = [],
    }: {
      offer: SdpOffer;
      source: WatchedSource;
      present: readonly Endpoint[];
      /** Ids of the tracks with speech, newest last. */
      speaking?: readonly string[] | undefined;
    },
    { videoCodec }: PeerSessionOptions,
    identifiers: Identifiers,
  ) {
    this.#media = offer.media;
    this.#streamId = identifiers.token();
    this.#cname = identifiers.token();
    const slots: [string, ViewerSlot][] = [];
    const lines = watchedLines(offer.media);
    this.#kinds = new Set(lines.keys());
    for (const [kind, line] of lines) {
      const codecs = watchableCodecs(line, { videoCodec });
      if (codecs.length === 0) continue;
      const taken = new Set<number>();
      slots.push([
        line.mid,
        {
          line,
          kind,
          codecs,
          extensions: chooseExtensions(line, { audioLevel: true }),
          ssrc: identifiers.ssrc(taken),
          rtxSsrc: identifiers.ssrc(taken),
          msidTrackId: identifiers.token(),
        },
      ]);
    }
    this.#slots = new Map(slots);
    this.#room = new WatchedRoom(source, present, speaking);
    this.#choose();
  }

  handle(input: SessionInput): boolean {
    if (!this.#room.handle(input)) return false;

    return this.#choose() || this.#newlyEncrypted().length > 0;
  }

  negotiate(): Negotiated {
    const outbound: OutboundSlot[] = [];
    const holdMs = this.#hold ? HOLD_MS : 0;
    this.#hold = false;
    for (const slot of this.#slots.values()) {
      const track = this.#shown[slot.kind];
      const codec = track === undefined ? undefined : codecOf(slot.codecs, track);
      if (track === undefined || codec === undefined) continue;
      const { ssrc, rtxSsrc, kind, extensions } = slot;
      const { trackId } = track;
      const { mid } = slot.line;
      const cname = this.#cname;
      outbound.push({ mid, kind, ssrc, rtxSsrc, codec: toNegotiatedCodec(codec), extensions, trackId, cname });
    }
    const targets = Object.values(this.#shown)
      .filter(({ encodings }) => encodings.length > 0)
      .map(
        ({ trackId, encodings }) => ({ trackId, variant: encodings.includes('h') ? 'h' : encodings.at(-1)! }) as const,
      );

    return { inbound: [], outbound, requests: [], targets, lacking: this.#newlyLacking(outbound), holdMs };
  }

  #newlyLacking(outbound: readonly OutboundSlot[]): EndpointTrack[] {
    const sent = new Set(outbound.map(({ trackId }) => trackId));
    const lacking = [
      ...Object.values(this.#shown).filter((track) => !sent.has(track.trackId) && this.#isNews(track)),
      ...this.#newlyEncrypted(),
    ];
    if (this.#lacking.size > MAX_LACKING) this.#lacking.clear();
    for (const { trackId } of lacking) this.#lacking.add(trackId);

    return lacking;
  }

  #newlyEncrypted(): EndpointTrack[] {
    const news = this.#room.encrypted().filter((track) => this.#isNews(track));

    return news.slice(0, Math.max(0, MAX_LACKING - this.#lacking.size));
  }

  #isNews({ kind, trackId }: EndpointTrack): boolean {
    return this.#kinds.has(kind) && !this.#lacking.has(trackId);
  }

  answer(): AnswerMedia[] {
    return this.#media.map((line): AnswerMedia => {
      const slot = this.#slots.get(line.mid);
      if (slot === undefined) return inactive(line);
      const { codecs, extensions, ssrc, rtxSsrc, msidTrackId } = slot;
      const [codec = null, ...moreCodecs] = preferred(codecs, this.#shown[slot.kind]);

      return {
        role: { type: 'send', ssrc, rtxSsrc, cname: this.#cname, streamId: this.#streamId, trackId: msidTrackId },
        codec,
        moreCodecs,
        extensions,
      };
    });
  }

  /** Chooses the tracks to show. Returns whether they have changed. */
  #choose(): boolean {
    const { tracks, hold } = this.#room.shown();
    const before = this.#shown;
    this.#shown = tracks;
    this.#hold ||= hold;

    return before.audio?.trackId !== tracks.audio?.trackId || before.video?.trackId !== tracks.video?.trackId || hold;
  }
}

/** Returns the codec in which a track is shown: its own, else that of its fallback. */
function codecOf(codecs: readonly ChosenCodec[], { codec, fallback }: EndpointTrack): ChosenCodec | undefined {
  return codecs.find(({ name }) => name === codec) ?? codecs.find(({ name }) => name === fallback);
}

/** Returns the codecs with that of the track first: some clients configure a decoder before any packet arrives. */
function preferred(codecs: readonly ChosenCodec[], track: EndpointTrack | undefined): ChosenCodec[] {
  const first = track === undefined ? undefined : codecOf(codecs, track);
  return codecs.toSorted((a, b) => Number(b === first) - Number(a === first));
}
