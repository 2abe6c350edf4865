import { chooseTrackCodec, type Publications, type PublishedMedia, toNegotiatedCodec } from '@bloom/negotiation';
import type { OutboundSlot } from '@bloom/sfu';
import {
  type AnswerMedia,
  type ChosenCodec,
  chooseExtensions,
  choosePublishedCodec,
  type OfferedMedia,
} from '@bloom/webrtc';
import type { Slot, Slots } from './slots.js';

/** One m-line of the offer being answered. */
export interface PlannedMedia {
  line: OfferedMedia;
  published: PublishedMedia | undefined;
  slot: Slot | undefined;
  /** Payload type that the client offers for the slot's track; null when it gets nothing of the track. */
  codec: ChosenCodec | null;
  /** Why the client gets nothing of the slot's track. */
  lacks: 'NO_CODEC' | 'NO_KEY' | null;
}

export interface OfferPlan {
  media: readonly PlannedMedia[];
  outbound: readonly OutboundSlot[];
}

/**
 * Matches the m-lines of an offer with the tracks that the client publishes and receives. Existing slots keep their
 * mids; new slots take the remaining receiving m-lines of their kind in order. A client that does not decrypt gets no
 * encrypted tracks: it would play them as noise.
 */
export function matchSlots(
  { media, decrypts }: { media: readonly OfferedMedia[]; decrypts: boolean },
  published: ReadonlyMap<string, PublishedMedia>,
  slots: Slots,
): OfferPlan {
  const outbound: OutboundSlot[] = [];
  const planned = media.map((line): PlannedMedia => {
    const own = published.get(line.mid);
    const usable = !line.refused && line.kind !== 'other' && own === undefined && line.direction === 'recvonly';
    const slot = usable ? (slots.byMid(line.mid) ?? slots.claim(line.kind as Slot['kind'], line.mid)) : undefined;
    const track = slot?.track;
    const isSealed = track?.info.encrypted === true && !decrypts;
    const isPossible = slot?.kind === line.kind && track !== undefined && !isSealed;
    const codec = isPossible ? chooseTrackCodec(line, track.info) : null;
    if (slot !== undefined && track !== undefined && !track.gone && codec !== null) {
      outbound.push({
        mid: line.mid,
        kind: slot.kind,
        ssrc: slot.ssrc,
        rtxSsrc: slot.rtxSsrc,
        codec: toNegotiatedCodec(codec),
        extensions: slotExtensions(line, slot, codec),
        trackId: track.trackId,
      });
    }
    return { line, published: own, slot, codec, lacks: codec === null ? (isSealed ? 'NO_KEY' : 'NO_CODEC') : null };
  });
  return { media: planned, outbound };
}

/** Returns the track of each m-line: the client's own, ours, and the last one of an inactive m-line. */
export function midToTrackId({ media }: OfferPlan, publications: Publications): Map<string, string> {
  const present = new Set<string>();
  for (const { slot } of media) if (slot?.track !== undefined) present.add(slot.track.trackId);
  const map = new Map<string, string>();
  for (const { line, slot } of media) {
    const trackId = slot === undefined ? publications.lastTrackId(line.mid) : slot.lastTrackId;
    if (trackId === undefined) continue;
    // A dead m-line must not claim a track that has returned on another one.
    if (slot !== undefined && slot.track === undefined && present.has(trackId)) continue;
    map.set(line.mid, trackId);
  }
  return map;
}

/** Answers an m-line according to the current state of its track: tracks may be removed while an offer is processed. */
export function answerMedia({ line, published, slot, codec }: PlannedMedia, cname: string): AnswerMedia {
  if (published?.type === 'receive') {
    return {
      role: { type: 'receive', rids: published.rids },
      codec: published.codec,
      extensions: published.extensions,
    };
  }
  if (slot?.track !== undefined && !slot.track.gone && codec !== null) {
    const { ssrc, rtxSsrc, streamId, msidTrackId } = slot;
    return {
      role: { type: 'send', ssrc, rtxSsrc, cname, streamId, trackId: msidTrackId },
      codec,
      extensions: slotExtensions(line, slot, codec),
    };
  }
  return {
    role: { type: 'inactive', rids: line.rids },
    codec: choosePublishedCodec(line, null),
    extensions: chooseExtensions(line, { audioLevel: true }),
  };
}

function slotExtensions(line: OfferedMedia, slot: Slot, codec: ChosenCodec) {
  return chooseExtensions(line, { audioLevel: slot.track?.info.audioLevel === true, codec: codec.name });
}
