import type { CodecName } from '@bloom/rtp';
import type { OfferedCodec, OfferedMedia } from './offer.js';

/** The one codec of an answered m-line, with the client's payload types. */
export interface ChosenCodec {
  name: CodecName;
  encodingName: string;
  payloadType: number;
  clockRate: number;
  channels?: number;
  /** Value of `a=fmtp`, echoed. */
  parameters: string;
  /** Offered feedback that we send or understand. */
  feedback: readonly string[];
  rtxPayloadType?: number;
}

/** Feedback types in the order of an answer. `transport-cc` is negotiated, so `goog-remb` is not. */
const FEEDBACK = ['ccm fir', 'nack', 'nack pli', 'transport-cc'] as const;

/**
 * Returns the codec in which a client must publish on this m-line; null if it offers no accepted codec. `required` is
 * the codec enforced in the room; without one, the first of VP8 and H.264 in offer order is chosen.
 */
export function choosePublishedCodec(media: OfferedMedia, required: 'vp8' | 'h264' | null): ChosenCodec | null {
  const accepted = media.codecs.find((codec) => {
    if (media.kind === 'audio') return isOpus(codec);
    if (required !== 'h264' && isVp8(codec)) return true;
    return required !== 'vp8' && isH264(codec) && isConstrainedBaseline(codec);
  });
  return accepted === undefined ? null : choose(media, accepted);
}

/** Returns the codec in which a client receives a track published as `name`; null if it offers none. */
export function chooseReceivedCodec(media: OfferedMedia, name: CodecName): ChosenCodec | null {
  if (name === 'h264') {
    const all = media.codecs.filter(isH264);
    const baseline = all.filter(isConstrainedBaseline);
    const codec = baseline.find((c) => packetizationMode(c) === '1') ?? baseline[0] ?? all[0];
    return codec === undefined ? null : choose(media, codec);
  }
  const codec = media.codecs.find(name === 'opus' ? isOpus : isVp8);
  return codec === undefined ? null : choose(media, codec);
}

function choose(media: OfferedMedia, codec: OfferedCodec): ChosenCodec {
  const rtx = media.codecs.find(
    (c) => c.name === 'rtx' && formatParameters(c.parameters).get('apt') === String(codec.payloadType),
  );
  return {
    name: codec.name as CodecName,
    encodingName: codec.encodingName,
    payloadType: codec.payloadType,
    clockRate: codec.clockRate,
    ...(codec.channels === undefined ? {} : { channels: codec.channels }),
    parameters: codec.parameters,
    feedback: FEEDBACK.filter((value) => codec.feedback.includes(value)),
    ...(rtx === undefined ? {} : { rtxPayloadType: rtx.payloadType }),
  };
}

function isOpus(codec: OfferedCodec): boolean {
  return codec.name === 'opus' && codec.clockRate === 48_000;
}

function isVp8(codec: OfferedCodec): boolean {
  return codec.name === 'vp8' && codec.clockRate === 90_000;
}

function isH264(codec: OfferedCodec): boolean {
  return codec.name === 'h264' && codec.clockRate === 90_000;
}

/**
 * Returns true if every constrained baseline decoder can play the codec (RFC 6184 section 8.1, table 5). Without a
 * `profile-level-id` the profile is plain baseline, which such decoders cannot play.
 */
export function isConstrainedBaseline(codec: Pick<OfferedCodec, 'parameters'>): boolean {
  const match = /^([0-9a-f]{2})([0-9a-f]{2})[0-9a-f]{2}$/i.exec(
    formatParameters(codec.parameters).get('profile-level-id') ?? '',
  );
  if (match === null) return false;
  const profile = Number.parseInt(match[1] ?? '', 16);
  const constraints = Number.parseInt(match[2] ?? '', 16);
  switch (profile) {
    case 0x42:
      return (constraints & 0x4f) === 0x40;
    case 0x4d:
      return (constraints & 0x8f) === 0x80;
    case 0x58:
      return (constraints & 0xcf) === 0xc0;
    default:
      return false;
  }
}

function packetizationMode(codec: OfferedCodec): string {
  return formatParameters(codec.parameters).get('packetization-mode') ?? '0';
}

/** Parses `a=1;b=2` with lower-case keys; the first value of a repeated key wins. */
export function formatParameters(text: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const part of text.split(';')) {
    const equals = part.indexOf('=');
    const key = (equals < 0 ? part : part.slice(0, equals)).trim().toLowerCase();
    if (key !== '' && !parameters.has(key)) parameters.set(key, equals < 0 ? '' : part.slice(equals + 1).trim());
  }
  return parameters;
}
