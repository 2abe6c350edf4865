/** Messages between the server and the forked compositor: structured clones over the IPC channel. */
export interface EngineTrack {
  id: string;
  /** Publisher of the track: tracks of one publisher share its clock. */
  origin: string;
  kind: 'audio' | 'video';
}

/** One frame of a track from the media plane. */
export interface EngineUnit {
  track: string;
  codec: 'opus' | 'vp8' | 'h264';
  /** Ticks of the codec's clock. */
  timestamp: number;
  /** Capture time by the publisher's clock, Unix milliseconds; absent before the publisher's first sender report. */
  senderMs?: number;
  key: boolean;
  data: Uint8Array;
}

export type ToEngine =
  /** Replaces the tracks to compose, in the order of their tiles. The first one starts the clock. */
  | { type: 'tracks'; tracks: EngineTrack[] }
  | { type: 'unit'; unit: EngineUnit }
  /** Send the remaining parts, and end. */
  | { type: 'finish' };

export interface EnginePart {
  segment: number;
  part: number;
  frames: number;
  independent: boolean;
  last: boolean;
  startedAtMs: number;
  /** A picture has been drawn since the start of the stream. */
  hasPicture: boolean;
  data: Uint8Array;
}

export type FromEngine =
  /** The native library is loaded. */
  | { type: 'ready' }
  | { type: 'started'; init: Uint8Array; codecs: string }
  | { type: 'part'; part: EnginePart }
  | { type: 'keyFrameWanted'; track: string }
  /** The pictures of a track are beyond a limit, or there is no memory for them. Once for each cause. */
  | { type: 'leftOut'; track: string; reason: string }
  /** Sent every second, as a sign of life. `picturesLeftOut` is how many no decoder got, since the start. */
  | { type: 'alive'; picturesLeftOut: number }
  | { type: 'finished' };
