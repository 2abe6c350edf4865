import { SessionDescription } from '@livekit/protocol';
import { chooseTrackCodec, type Identifiers, toNegotiatedCodec } from '@bloom/negotiation';
import type { PeerSessionOptions } from '@bloom/rooms';
import type { OutboundSlot, TrackKind, TransportNegotiation } from '@bloom/sfu';
import {
  chooseExtensions,
  type OfferedMedia,
  parseAnswer,
  type SdpOffer,
  WebrtcError,
  writeOffer,
} from '@bloom/webrtc';
import { SDP_LIMITS } from './connection.js';
import { SERVER_CHANNELS } from './data.js';
import type { RemoteTrack } from './participants.js';

const DATA_MID = '0';
/** Sections of one connection; tracks beyond them wait until one is free. */
const MAX_SECTIONS = SDP_LIMITS.maxMedia - 1;

/** An m-line on which the server sends. It is never removed, only reused. */
interface Section {
  readonly mid: string;
  readonly kind: TrackKind;
  /** Stays after the track has ended until the client has answered an offer in which the section is inactive. */
  track: RemoteTrack | undefined;
  codec: RemoteTrack['info']['codec'];
  fallback: RemoteTrack['info']['fallback'];
  /** New for each track. */
  ssrc: number;
  rtxSsrc: number;
  /** Number of tracks so far. */
  uses: number;
}

/** An offer of the server that the client has not answered. */
interface Unanswered {
  id: number;
  /** Sections that carry a track according to the offer. */
  sending: ReadonlySet<Section>;
}

/** The connection on which a client with two connections receives: the server offers, the client answers. */
export class Downlink {
  /** The last offer and answer. */
  descriptions: { offer?: string; answer?: string } = {};
  /** Why the last answer cannot be used. */
  fault = '';
  readonly #options: PeerSessionOptions;
  readonly #identifiers: Identifiers;
  readonly #isWanted: (track: RemoteTrack) => boolean;
  readonly #sdpSessionId: string;
  readonly #sections: Section[] = [];
  /** Tracks in codecs that the client does not take. */
  readonly #impossible = new WeakSet<RemoteTrack>();
  /** Tracks that a negotiation has connected. */
  readonly #connected = new WeakSet<RemoteTrack>();
  #ice: { ufrag: string; pwd: string };
  /** Number of offers. */
  #offers = 0;
  #generation = 0;
  #unanswered: Unanswered | undefined;
  /** The next offer restarts ICE, or is the first one although there is nothing to send. */
  #isDue = false;

  constructor(
    options: PeerSessionOptions,
    parts: { identifiers: Identifiers; isWanted: (track: RemoteTrack) => boolean },
  ) {
    this.#options = options;
    this.#identifiers = parts.identifiers;
    this.#isWanted = parts.isWanted;
    this.#sdpSessionId = parts.identifiers.sessionId();
    this.#ice = parts.identifiers.iceCredentials();
  }

  carries(track: RemoteTrack): boolean {
    return this.#sections.some((section) => section.track === track);
  }

  /** Lets the next call of `offer` return one in any case. */
  open(): void {
    this.#isDue = true;
  }

  /** The client has returned: its next offer restarts ICE. One that it has not answered is lost. */
  restart(): void {
    if (this.#offers === 0) return;
    this.#ice = this.#identifiers.iceCredentials();
    this.#unanswered = undefined;
    this.#isDue = true;
  }

  /** Returns an offer if the client is to receive something else than it has last answered. */
  offer(tracks: Iterable<RemoteTrack>): SessionDescription | undefined {
    if (this.#unanswered !== undefined) return undefined;
    const carried = new Set(this.#sections.map(({ track }) => track));
    const waiting = [...tracks].filter(
      (track) => this.#isWanted(track) && !this.#impossible.has(track) && !carried.has(track),
    );
    const ends = this.#sections.some(({ track }) => track !== undefined && !this.#isWanted(track));
    const starts = waiting.filter((track) => this.#assign(track));
    if (starts.length === 0 && !ends && !this.#isDue) return undefined;
    this.#isDue = false;
    this.#offers += 1;
    const sending = new Set(this.#sections.filter(({ track }) => track !== undefined && this.#isWanted(track)));
    const id = this.#offers;
    this.#unanswered = { id, sending };
    const sdp = this.#write(sending);
    this.descriptions = { offer: sdp };
    const midToTrackId = Object.fromEntries([...sending].map(({ mid, track }) => [mid, track?.sid ?? '']));

    return new SessionDescription({ type: 'offer', sdp, id, midToTrackId });
  }

  /**
   * Applies the answer to the last offer. Returns undefined for an answer to an earlier one, and 'unusable' for one
   * that cannot be used.
   */
  answer({ sdp, id }: { sdp: string; id: number }): TransportNegotiation | 'unusable' | undefined {
    const unanswered = this.#unanswered;
    // Native clients do not say which offer they answer.
    if (unanswered === undefined || (id !== 0 && id !== unanswered.id)) return undefined;
    this.descriptions = { ...this.descriptions, answer: sdp };
    const answer = this.#parse(sdp);
    if (answer === undefined) return 'unusable';
    this.#unanswered = undefined;
    const lines = new Map(answer.media.map((line) => [line.mid, line]));
    const { iceUfrag: remoteUfrag, icePwd: remotePwd, fingerprint, setup } = answer.transport;
    this.#generation += 1;

    return {
      generation: this.#generation,
      receiver: true,
      ice: { localUfrag: this.#ice.ufrag, localPwd: this.#ice.pwd, remoteUfrag, remotePwd },
      fingerprint,
      passive: setup === 'passive',
      inbound: [],
      outbound: this.#sections.flatMap((section) => this.#settle(section, unanswered, lines.get(section.mid)) ?? []),
      ...(lines.get(DATA_MID)?.isData === true ? { data: { opens: SERVER_CHANNELS } } : {}),
    };
  }

  /** Returns the tracks that flow for the first time once the media plane has applied the newest answer. */
  negotiated(generation: number): RemoteTrack[] {
    if (generation !== this.#generation) return [];
    const carried = this.#sections.flatMap(({ track }) => track ?? []);
    const started = carried.filter((track) => !this.#connected.has(track));
    for (const track of started) this.#connected.add(track);

    return started;
  }

  /** Gives a track a section. Returns false if none is free. */
  #assign(track: RemoteTrack): boolean {
    const { kind, codec, fallback } = track.info;
    let section = this.#sections.find((each) => each.kind === kind && each.track === undefined);
    if (section === undefined) {
      if (this.#sections.length >= MAX_SECTIONS) return false;
      const mid = String(this.#sections.length + 1);
      section = { mid, kind, track: undefined, codec, fallback, ssrc: 0, rtxSsrc: 0, uses: 0 };
      this.#sections.push(section);
    }
    section.track = track;
    section.uses += 1;
    section.codec = codec;
    section.fallback = fallback;
    section.ssrc = this.#identifiers.ssrc(new Set());
    section.rtxSsrc = this.#identifiers.ssrc(new Set());

    return true;
  }

  /** Applies the answer to one section. Returns the slot in which its track flows. */
  #settle(section: Section, { sending }: Unanswered, line: OfferedMedia | undefined): OutboundSlot | undefined {
    const { track, mid, kind, ssrc, rtxSsrc } = section;
    if (track === undefined) return undefined;
    if (!sending.has(section)) {
      section.track = undefined;
      this.#connected.delete(track);
      return undefined;
    }
    const isTaken = line !== undefined && !line.refused && line.direction === 'recvonly' && line.kind === kind;
    const codec = isTaken ? chooseTrackCodec(line, section, { redundancy: true }) : null;
    if (line === undefined || codec === null) {
      this.#impossible.add(track);
      section.track = undefined;
      return undefined;
    }

    return {
      mid,
      kind,
      ssrc,
      rtxSsrc,
      codec: toNegotiatedCodec(codec),
      extensions: chooseExtensions(line, { audioLevel: track.info.audioLevel === true }),
      trackId: track.trackId,
      cname: track.stream,
    };
  }

  #write(sending: ReadonlySet<Section>): string {
    const { endpoint } = this.#options;

    return writeOffer({
      sessionId: this.#sdpSessionId,
      version: this.#offers,
      ice: this.#ice,
      fingerprint: endpoint.fingerprint,
      candidate: endpoint,
      dataMid: DATA_MID,
      sections: this.#sections.map((section) => {
        const { mid, kind, codec, fallback, track, ssrc, rtxSsrc } = section;
        const redundancy = kind === 'audio' && track?.isEncrypted === false;
        const base = { mid, kind, codec, fallback, audioLevel: track?.info.audioLevel === true, redundancy };
        if (track === undefined || !sending.has(section)) return { ...base, stream: undefined };
        const { stream: cname, sid: trackId, owner } = track;
        // Browsers keep the first track's id while the section lasts, but clients prefer a sid in the stream's.
        const streamId = section.uses > 1 ? `${owner.sid}|${trackId}` : cname;

        return { ...base, stream: { ssrc, rtxSsrc, cname, streamId, trackId } };
      }),
    });
  }

  #parse(sdp: string): SdpOffer | undefined {
    try {
      return parseAnswer(sdp, SDP_LIMITS);
    } catch (error) {
      if (!(error instanceof WebrtcError)) throw error;
      this.fault = error.message;
      return undefined;
    }
  }
}
