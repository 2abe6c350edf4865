/** Codecs of recorded files. */
import { RECORDED_VIDEO_CODECS } from '@bloom/rooms';

/** Names in `report.json`: Opus in .ogg, H.264 in .mp4, VP8 and VP9 in .webm. */
export const ENCODINGS = { opus: 'OPUS', h264: 'H264', vp8: 'VP8', vp9: 'VP9' } as const;

export type RecordedCodec = keyof typeof ENCODINGS;

const BY_KIND = { audio: ['opus'], video: RECORDED_VIDEO_CODECS } as const satisfies Record<
  string,
  readonly RecordedCodec[]
>;

/** Returns the names of the codecs of a kind. */
export function encodingsOf(kind: keyof typeof BY_KIND): string[] {
  return BY_KIND[kind].map((codec) => ENCODINGS[codec]);
}

/** Returns the codec with that name in a report; undefined if the kind has none. */
export function codecOf(kind: keyof typeof BY_KIND, encoding: unknown): RecordedCodec | undefined {
  return BY_KIND[kind].find((codec) => ENCODINGS[codec] === encoding);
}
