import { RECORDED_VIDEO_CODECS } from '@bloom/rooms';
import { acceptedCodecs, type CodecName, isCodecName, payloadFormat } from '@bloom/rtp';
import type { TrackKind } from '@bloom/sfu';
import {
  type ChosenCodec,
  choosePublishedCodec,
  chooseReceivedCodec,
  type OfferedMedia,
  parseOffer,
  type SdpOffer,
  WebrtcError,
} from '@bloom/webrtc';
import { WhipError } from './errors.js';
import type { RoomRules, SessionRole } from './session-message.js';

/** A browser's offer of one audio and one video m-line takes about 6 KiB. */
const LIMITS = { maxLength: 64 * 1024, maxLines: 2_000, maxLineLength: 4_096, maxMedia: 16, maxPerMedia: 128 };

/**
 * Parses an offer and checks that it fits the role.
 * @throws WhipError INVALID_OFFER when it cannot be parsed or its m-lines do not fit, NO_CODEC when the room, or
 *   a component that takes everything published in it, takes none of its codecs
 */
export function acceptOffer(sdp: string, role: SessionRole['type'], rules: RoomRules): SdpOffer {
  const offer = parsed(sdp);
  if (role === 'publish') checkPublished(offer, rules);
  else checkWatched(offer, rules);

  return offer;
}

function parsed(sdp: string): SdpOffer {
  try {
    return parseOffer(sdp, LIMITS);
  } catch (error) {
    if (!(error instanceof WebrtcError)) throw error;
    throw new WhipError('INVALID_OFFER', `The SDP offer is not usable: ${error.message}`, { cause: error });
  }
}

function checkPublished({ media }: SdpOffer, rules: RoomRules): void {
  const lines = media.filter(isSending);
  if (lines.length === 0) {
    throw new WhipError('INVALID_OFFER', 'The SDP offer has no audio or video m-line that sends (a=sendonly)');
  }
  for (const kind of ['audio', 'video'] as const) {
    const count = lines.filter((line) => line.kind === kind).length;
    if (count > 1)
      throw new WhipError('INVALID_OFFER', `The SDP offer has ${count} ${kind} m-lines, at most one is allowed`);
  }
  for (const line of lines) {
    const codec = choosePublishedCodec(line, rules.videoCodec);
    if (codec === null) throw noCodec(line, rules);
    if (rules.recorder !== undefined && line.kind === 'video' && !isRecorded(codec.name))
      throw unsuitable(line, `The room's ${rules.recorder} takes`, RECORDED_VIDEO_CODECS);
  }
}

function checkWatched({ media }: SdpOffer, rules: RoomRules): void {
  const lines = [...watchedLines(media).values()];
  const [first] = lines;
  if (first === undefined) {
    throw new WhipError('INVALID_OFFER', 'The SDP offer has no audio or video m-line that receives (a=recvonly)');
  }
  if (lines.every((line) => watchableCodecs(line, rules).length === 0)) throw noCodec(first, rules);
}

/** Returns whether the client sends on this m-line. */
export function isSending({ refused, kind, direction }: OfferedMedia): boolean {
  return !refused && kind !== 'other' && (direction === 'sendonly' || direction === 'sendrecv');
}

/** Returns the m-lines on which a viewer receives: the first of each kind. */
export function watchedLines(media: readonly OfferedMedia[]): Map<TrackKind, OfferedMedia> {
  const lines = new Map<TrackKind, OfferedMedia>();
  for (const line of media) {
    if (line.refused || line.kind === 'other' || lines.has(line.kind)) continue;
    if (line.direction === 'recvonly' || line.direction === 'sendrecv') lines.set(line.kind, line);
  }

  return lines;
}

/** Returns every codec in which this m-line can show a track of the room. */
export function watchableCodecs(line: OfferedMedia, rules: RoomRules): ChosenCodec[] {
  return acceptedCodecs(line.kind, rules.videoCodec).flatMap((name) => chooseReceivedCodec(line, name) ?? []);
}

const isRecorded = (name: CodecName): boolean => RECORDED_VIDEO_CODECS.some((recorded) => recorded === name);

function noCodec(line: OfferedMedia, rules: RoomRules): WhipError {
  return unsuitable(line, 'The room allows', acceptedCodecs(line.kind, rules.videoCodec));
}

function unsuitable(line: OfferedMedia, taker: string, names: readonly CodecName[]): WhipError {
  const allowed = names.map((name) => payloadFormat(name).label);
  const offered = [...new Set(line.codecs.filter(({ name }) => name !== 'rtx').map(described))].join(', ') || 'none';

  return new WhipError(
    'NO_CODEC',
    `${taker} ${allowed.join(' or ')} for ${line.kind}, the SDP offer has: ${offered.slice(0, 200)}`,
  );
}

/** Returns the codec's name and, if its parameters are the reason for a refusal, which of them. */
function described({ name, encodingName, parameters }: OfferedMedia['codecs'][number]): string {
  const obstacle = isCodecName(name) ? payloadFormat(name).obstacle(parameters) : undefined;

  return obstacle === undefined ? encodingName : `${encodingName} with ${obstacle}`;
}
