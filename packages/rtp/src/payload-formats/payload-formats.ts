import { AV1 } from './av1.js';
import { H264 } from './h264.js';
import { H265 } from './h265.js';
import { OPUS } from './opus.js';
import type { PayloadFormat } from './payload-format.js';
import { VP8 } from './vp8.js';
import { VP9 } from './vp9.js';

/** Every codec that rooms accept, by its lower-case SDP name. */
const FORMATS = {
  opus: OPUS,
  vp8: VP8,
  h264: H264,
  vp9: VP9,
  av1: AV1,
  h265: H265,
} as const satisfies Record<string, PayloadFormat>;

/** SDP name in lower case. */
export type CodecName = keyof typeof FORMATS;

export const CODEC_NAMES = Object.keys(FORMATS) as readonly CodecName[];

export function isCodecName(name: string): name is CodecName {
  return Object.hasOwn(FORMATS, name);
}

/** Returns the codecs of a kind that a room accepts. `required` is the video codec that the room enforces. */
export function acceptedCodecs(kind: string, required: CodecName | null): CodecName[] {
  return CODEC_NAMES.filter((name) => {
    if (FORMATS[name].kind !== kind) return false;
    return kind === 'audio' || required === null || name === required;
  });
}

/** Returns those of `acceptedCodecs` that clients send without having asked for them. */
export function commonCodecs(kind: string, required: CodecName | null): CodecName[] {
  return acceptedCodecs(kind, required).filter((name) => !FORMATS[name].onRequest);
}

/** Returns the payload format of a codec. */
export function payloadFormat(name: CodecName): PayloadFormat {
  return FORMATS[name];
}
