import type { RecordedTrack } from './recording-folder.js';

/** The job of the mixing process. */
export interface MixJob {
  tracks: RecordedTrack[];
  output: string;
  picture: MixPicture;
}

/** The picture of a mix, in pixels. */
export interface MixPicture {
  /** `speaker`: whoever speaks is large, the others are small. */
  layout: 'grid' | 'speaker';
  width: number;
  height: number;
}

/** Messages from the mixing process. */
export type FromMixer =
  | { type: 'progress'; doneMs: number }
  /** A file's pictures exceed a limit or do not fit in memory. Sent once per cause. */
  | { type: 'leftOut'; path: string; reason: string }
  | { type: 'done'; durationMs: number }
  | { type: 'failed'; message: string };
