/** Messages between the server and the forked compositor, as structured clones over the IPC channel. */
export interface EngineTrack {
  id: string;
  /** Publisher of the track. Tracks of one publisher share its clock. */
  origin: string;
  kind: 'audio' | 'video';
}

/** Codecs that the compositor decodes. */
export const COMPOSED_CODECS = ['opus', 'vp8', 'vp9', 'h264'] as const;

/** One frame of a track from the media plane. */
export interface EngineUnit {
  track: string;
  codec: (typeof COMPOSED_CODECS)[number];
  /** Ticks of the codec's clock. */
  timestamp: number;
  /** Capture time on the publisher's clock in Unix milliseconds; absent before the publisher's first sender report. */
  senderMs?: number;
  key: boolean;
  data: Uint8Array;
}

export type ToEngine =
  /** Replaces the tracks to compose, in tile order. The first track starts the clock. */
  | { type: 'tracks'; tracks: EngineTrack[] }
  /** Starts the clock without a track. */
  | { type: 'start' }
  | { type: 'unit'; unit: EngineUnit }
  /** Sends the remaining parts and exits. */
  | { type: 'finish' };

/** One part of a segment. Parts arrive in order and without gaps. */
export interface EnginePart {
  segment: number;
  part: number;
  frames: number;
  independent: boolean;
  /** True for the last part of its segment. */
  last: boolean;
  /** Capture time of the first frame in Unix milliseconds. */
  startedAtMs: number;
  /** True once a picture has been drawn in this stream. */
  hasPicture: boolean;
  /** One MP4 fragment. */
  data: Uint8Array;
}

export type FromEngine =
  /** The native library is loaded. */
  | { type: 'ready' }
  | { type: 'started'; init: Uint8Array; codecs: string }
  | { type: 'part'; part: EnginePart }
  | { type: 'keyframeWanted'; track: string }
  /** A track's pictures exceed a limit or do not fit in memory. Sent once per cause. */
  | { type: 'leftOut'; track: string; reason: string }
  /** Heartbeat, sent every second. `picturesLeftOut` counts the pictures withheld from decoders since the start. */
  | { type: 'alive'; picturesLeftOut: number }
  | { type: 'finished' };
