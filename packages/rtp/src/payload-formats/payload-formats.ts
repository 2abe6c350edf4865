import { H264 } from './h264.js';
import { OPUS } from './opus.js';
import type { PayloadFormat } from './payload-format.js';
import { VP8 } from './vp8.js';

/** Every codec that the media plane forwards, by its lower-case SDP name. */
const FORMATS = { opus: OPUS, vp8: VP8, h264: H264 } as const satisfies Record<string, PayloadFormat>;

export type CodecName = keyof typeof FORMATS;

export function payloadFormat(name: CodecName): PayloadFormat {
  return FORMATS[name];
}
