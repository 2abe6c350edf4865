import type { TrackKind } from '@bloom/sfu';
import {
  type ChosenCodec,
  chooseExtensions,
  choosePublishedCodec,
  chooseReceivedCodec,
  formatParameters,
  type OfferedMedia,
  parseOffer,
  type SdpOffer,
  WebrtcError,
} from '@bloom/webrtc';
import { WhipError } from './errors.js';
import type { RoomRules, SessionRole } from './session-message.js';

/** A browser's offer of one audio and one video m-line has about 6 KiB. */
const LIMITS = { maxLength: 64 * 1024, maxLines: 2_000, maxLineLength: 4_096, maxMedia: 16, maxPerMedia: 128 };

/**
 * Parses an offer and checks that it fits the role.
 * @throws WhipError INVALID_OFFER when it cannot be parsed or its m-lines do not fit, NO_CODEC when the room allows
 *   none of its codecs
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

function checkPublished({ media }: SdpOffer, { videoCodec }: RoomRules): void {
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
    if (choosePublishedCodec(line, videoCodec) === null) throw noCodec(line, videoCodec);
  }
}

function checkWatched({ media }: SdpOffer, { videoCodec }: RoomRules): void {
  const lines = [...watchedLines(media).values()];
  const [first] = lines;
  if (first === undefined) {
    throw new WhipError('INVALID_OFFER', 'The SDP offer has no audio or video m-line that receives (a=recvonly)');
  }
  if (lines.every((line) => watchableCodecs(line, { videoCodec }).length === 0)) throw noCodec(first, videoCodec);
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
export function watchableCodecs(line: OfferedMedia, { videoCodec }: RoomRules): ChosenCodec[] {
  const names =
    line.kind === 'audio' ? (['opus'] as const) : videoCodec === null ? (['vp8', 'h264'] as const) : [videoCodec];

  return names.flatMap((name) => chooseReceivedCodec(line, name) ?? []);
}

/**
 * Returns the m-line as it can be published. Simulcast requires variant names that the rooms know and ids that identify
 * the streams; otherwise the client sends only its first encoding.
 */
export function publishableLine(line: OfferedMedia, { enableSimulcast }: { enableSimulcast: boolean }): OfferedMedia {
  const { mid, rid } = chooseExtensions(line, { audioLevel: true });
  const known = line.rids.every((name) => name === 'l' || name === 'm' || name === 'h');
  const usable = enableSimulcast && line.kind === 'video' && known && mid !== undefined && rid !== undefined;

  return usable ? line : { ...line, rids: [] };
}

function noCodec({ kind, codecs }: OfferedMedia, videoCodec: RoomRules['videoCodec']): WhipError {
  const allowed = kind === 'audio' ? 'Opus' : { vp8: 'VP8', h264: 'constrained baseline H.264' }[videoCodec ?? 'vp8'];
  const both = kind === 'video' && videoCodec === null ? ' or constrained baseline H.264' : '';
  const offered = [...new Set(codecs.filter(({ name }) => name !== 'rtx').map(described))].join(', ') || 'none';

  return new WhipError(
    'NO_CODEC',
    `The room allows ${allowed}${both} for ${kind}, the SDP offer has: ${offered.slice(0, 200)}`,
  );
}

/** Returns the codec's name; for H.264 with the profile, which may be the reason for a refusal. */
function described({ name, encodingName, parameters }: OfferedMedia['codecs'][number]): string {
  if (name !== 'h264') return encodingName;

  return `${encodingName} with profile-level-id ${formatParameters(parameters).get('profile-level-id') ?? 'missing'}`;
}
