/** What the server and the forked compositor say to each other; structured clones over the IPC channel. */
export interface EngineTrack {
  id: string;
  /** Whoever publishes it: tracks of one publisher share its clock. */
  origin: string;
  kind: 'audio' | 'video';
}

/** One frame of a track, as the media plane hands it over. */
export interface EngineUnit {
  track: string;
  codec: 'opus' | 'vp8' | 'h264';
  /** Ticks of the codec's clock. */
  timestamp: number;
  /** When it was captured by the publisher's clock, Unix milliseconds; absent before the publisher's first sender report. */
  senderMs?: number;
  key: boolean;
  data: Uint8Array;
}

export type ToEngine =
  /** The tracks to compose from now on, in the order of their tiles. The first one starts the clock. */
  | { type: 'tracks'; tracks: EngineTrack[] }
  | { type: 'unit'; unit: EngineUnit }
  /** Frames of the track are missing before its next one. */
  | { type: 'gap'; track: string }
  /** Hand over what there is, and end. */
  | { type: 'finish' };

export interface EnginePart {
  segment: number;
  part: number;
  frames: number;
  independent: boolean;
  last: boolean;
  startedAtMs: number;
  /** A picture of somebody has been drawn since the start of the stream. */
  hasPicture: boolean;
  data: Uint8Array;
}

export type FromEngine =
  /** The native library is there. */
  | { type: 'ready' }
  | { type: 'started'; init: Uint8Array; codecs: string }
  | { type: 'part'; part: EnginePart }
  | { type: 'keyFrameWanted'; track: string }
  /** Every second: it is not stuck. */
  | { type: 'alive' }
  | { type: 'finished' };
