/** Format of every stream: one rendition with one composed picture. Segments last 2 s, parts 1/3 s. */
export const HLS_PROFILE = {
  width: 1280,
  height: 720,
  framesPerSecond: 30,
  framesPerPart: 10,
  partsPerSegment: 6,
  /** Stereo. */
  sampleRate: 48_000,
  videoBitrateBps: 2_500_000,
  audioBitrateBps: 128_000,
} as const;

export const FRAMES_PER_SEGMENT = HLS_PROFILE.framesPerPart * HLS_PROFILE.partsPerSegment;
export const SEGMENT_SECONDS = FRAMES_PER_SEGMENT / HLS_PROFILE.framesPerSecond;
