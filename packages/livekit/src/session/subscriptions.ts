import { chooseTrackCodec, type Identifiers, toNegotiatedCodec } from '@bloom/negotiation';
import type { OutboundSlot, TrackKind } from '@bloom/sfu';
import {
  type AnswerMedia,
  type ChosenCodec,
  chooseExtensions,
  choosePublishedCodec,
  type OfferedMedia,
} from '@bloom/webrtc';
import type { RemoteTrack } from './participants.js';

/** A section in which the client receives. It stays while the client's offers have its m-line, and is reused. */
interface Section {
  readonly mid: string;
  readonly kind: TrackKind;
  /** Stays after the track has ended until an answer has made the section inactive. */
  track: RemoteTrack | undefined;
  /** New for each track: browsers show no picture of a new track that reuses another track's SSRC. */
  ssrc: number;
  rtxSsrc: number;
}

/** One m-line of the offer being answered, in which the client receives. */
export interface PlannedSection {
  section: Section;
  codec: ChosenCodec;
}

/** The sections of one client's connection, and the tracks that they carry. */
export class Subscriptions {
  readonly #identifiers: Identifiers;
  readonly #isWanted: (track: RemoteTrack) => boolean;
  readonly #sections = new Map<string, Section>();
  /** Tracks in codecs that the client does not offer. */
  readonly #impossible = new WeakSet<RemoteTrack>();

  constructor(identifiers: Identifiers, isWanted: (track: RemoteTrack) => boolean) {
    this.#identifiers = identifiers;
    this.#isWanted = isWanted;
  }

  has(mid: string): boolean {
    return this.#sections.has(mid);
  }

  /** True while a section carries the track. */
  carries(track: RemoteTrack): boolean {
    for (const section of this.#sections.values()) if (section.track === track) return true;
    return false;
  }

  /**
   * Forgets the sections without an m-line in an offer, and those in which the client sends now: the Go SDK publishes
   * in sections that it has offered to receive in. Returns the tracks that they carried.
   */
  keepOnly(media: readonly OfferedMedia[]): RemoteTrack[] {
    const offered = new Set(media.flatMap(({ mid, direction }) => (direction.startsWith('send') ? [] : [mid])));
    const gone = [...this.#sections.values()].filter(({ mid }) => !offered.has(mid));
    for (const { mid } of gone) this.#sections.delete(mid);

    return gone.flatMap(({ track }) => track ?? []);
  }

  /** Returns the plan for the m-lines in which the client wants to receive, by mid. */
  plan(media: readonly OfferedMedia[], tracks: Iterable<RemoteTrack>): Map<string, PlannedSection> {
    const lines = media.filter(
      ({ direction, kind, refused }) => direction === 'recvonly' && kind !== 'other' && !refused,
    );
    for (const { mid, kind } of lines) {
      if (this.#sections.has(mid)) continue;
      this.#sections.set(mid, { mid, kind: kind as TrackKind, track: undefined, ssrc: 0, rtxSsrc: 0 });
    }
    const carried = this.#carried();
    const waiting = [...tracks].filter((track) => this.#isWanted(track) && !carried.has(track));
    const taken = new Set(
      media.flatMap(({ sources }) => sources.flatMap(({ ssrc, rtx }) => (rtx === undefined ? [ssrc] : [ssrc, rtx]))),
    );
    const planned = new Map<string, PlannedSection>();
    for (const line of lines) {
      const section = this.#sections.get(line.mid);
      if (section === undefined || section.kind !== line.kind) continue;
      // A section whose track has ended has to be inactive once before another track may use it.
      if (section.track === undefined) this.#assign(section, line, { waiting, taken });
      const { track } = section;
      const codec = track === undefined || !this.#isWanted(track) ? null : receivedCodec(line, track);
      if (codec !== null) planned.set(line.mid, { section, codec });
    }

    return planned;
  }

  /** Returns how many sections of each kind are missing, and whether an offer is needed at all. */
  missing(tracks: Iterable<RemoteTrack>): { audio: number; video: number; needsOffer: boolean } {
    const missing = { audio: 0, video: 0 };
    let needsOffer = false;
    const carried = this.#carried();
    for (const track of tracks) {
      if (!this.#isWanted(track) || this.#impossible.has(track) || carried.has(track)) continue;
      missing[track.info.kind] += 1;
      needsOffer = true;
    }
    for (const { track, kind } of this.#sections.values()) {
      if (track !== undefined && !this.#isWanted(track)) needsOffer = true;
      if (track === undefined || !this.#isWanted(track)) missing[kind] -= 1;
    }

    return { audio: Math.max(0, missing.audio), video: Math.max(0, missing.video), needsOffer };
  }

  /**
   * Records that the answer was sent: sections without a wanted track are inactive now, and free. Returns the tracks
   * that they carried.
   */
  answered(planned: ReadonlyMap<string, PlannedSection>): RemoteTrack[] {
    const ended: RemoteTrack[] = [];
    for (const section of this.#sections.values()) {
      if (planned.has(section.mid)) continue;
      if (section.track !== undefined) ended.push(section.track);
      section.track = undefined;
    }

    return ended;
  }

  #carried(): ReadonlySet<RemoteTrack | undefined> {
    return new Set([...this.#sections.values()].map(({ track }) => track));
  }

  #assign(
    section: Section,
    line: OfferedMedia,
    { waiting, taken }: { waiting: RemoteTrack[]; taken: ReadonlySet<number> },
  ): void {
    for (const track of waiting.filter(({ info }) => info.kind === section.kind)) {
      if (receivedCodec(line, track) === null) {
        this.#impossible.add(track);
        continue;
      }
      waiting.splice(waiting.indexOf(track), 1);
      section.track = track;
      section.ssrc = this.#identifiers.ssrc(taken);
      section.rtxSsrc = this.#identifiers.ssrc(taken);
      return;
    }
  }
}

/** Returns a planned section as the media plane sees it. */
export function outboundSlot(line: OfferedMedia, { section, codec }: PlannedSection): OutboundSlot | undefined {
  const { track, mid, kind, ssrc, rtxSsrc } = section;
  if (track === undefined) return undefined;

  return {
    mid,
    kind,
    ssrc,
    rtxSsrc,
    codec: toNegotiatedCodec(codec),
    extensions: sectionExtensions(line, track),
    trackId: track.trackId,
    cname: track.stream,
  };
}

/** Returns the answer to a section in which the client receives, or does not yet. */
export function answerSection(line: OfferedMedia, planned: PlannedSection | undefined): AnswerMedia {
  const track = planned?.section.track;
  if (planned === undefined || track === undefined || track.gone) return inactive(line);
  const { ssrc, rtxSsrc } = planned.section;

  return {
    role: {
      type: 'send',
      ssrc,
      rtxSsrc,
      cname: track.stream,
      streamId: track.stream,
      trackId: track.sid,
    },
    codec: planned.codec,
    extensions: sectionExtensions(line, track),
  };
}

/** Returns the answer to an m-line without media. */
export function inactive(line: OfferedMedia): AnswerMedia {
  return {
    role: { type: 'inactive', rids: line.rids },
    codec: choosePublishedCodec(line, null),
    extensions: chooseExtensions(line, { audioLevel: true }),
  };
}

function receivedCodec(line: OfferedMedia, track: RemoteTrack): ChosenCodec | null {
  return chooseTrackCodec(line, track.info, { redundancy: !track.isEncrypted });
}

function sectionExtensions(line: OfferedMedia, track: RemoteTrack) {
  return chooseExtensions(line, { audioLevel: track.info.audioLevel === true });
}
