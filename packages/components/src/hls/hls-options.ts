import type { Log } from '@bloom/log';
import type { Processes } from '@bloom/processes';
import type { Clock } from '@bloom/time';
import type { StreamTaken } from './handover.js';
import type { WaitPosition } from './live-stream.js';

export interface HlsServiceOptions {
  /**
   * Root of all files. A stream lives in a directory of its own in `temporary_hls`, or in `recordings/<roomId>` if it
   * is kept.
   */
  resourcesPath: string;
  /** `JF_S3_ENDPOINT`; null = AWS. */
  s3Endpoint: string | null;
  /** Makes way for a new recording with that id by moving an older one to another id. */
  beginRecording(id: string): Promise<void>;
  /** Called when a recording is complete: its room has ended, or the process recording it was killed. */
  endRecording(id: string): void;
  /** Returns when a running room was created, in Unix milliseconds; kept with its recording. */
  createdAt?(roomId: string): number | undefined;
  /** Called when an upload has finished, after its room has ended. */
  notify(notification: { type: 'hlsUploaded' | 'hlsUploadCrashed'; roomId: string }): void;
  /** Keeps the room's webhook for `notify` until the returned function is called. */
  hold(roomId: string): () => void;
  /** Reads a file of a stream on another node. Without it, rooms with streams do not move here. */
  fetch?: FetchStreamFile;
  /** Tells the node that a stream has left how this one has got its files. Rejects when it does not answer. */
  taken?(node: string, report: TakenStream): Promise<void>;
  /** Returns the node that a room has just been given to. Without it, nobody is believed to have taken files. */
  takerOf?(roomId: string): string | undefined;
  /** Returns true while a room that has moved away from here may not have arrived yet. */
  passesOn?(roomId: string): boolean;
  /** Called with the number of pictures left out by compositors. */
  onPicturesLeftOut?(pictures: number): void;
  log: Log;
  processes: Processes;
  /** Built entry of the compositor; defaults to the one beside this file. */
  engineEntry?: URL;
  /** Returns whether the native library is installed; by default whether Node.js can resolve it. */
  nativeInstalled?: () => boolean;
  /** A compositor that sends nothing for this many ms is killed. */
  hangMs?: number;
  clock?: Clock;
}

/** The stored files of a stream have got to another node. */
export interface TakenStream {
  roomId: string;
  /** Part of the names of its files. */
  track: string;
  how: StreamTaken;
}

export interface LocateRequest {
  roomId: string;
  /** Must stay within the directory. */
  fileName: string;
  waitFor: WaitPosition | undefined;
  /** Asks for the file on the disk, even if the room has moved away: for its next node. */
  stored?: boolean;
  signal: AbortSignal;
}

/** Fetches a file of a stream from another node. Rejects when it is longer, or does not exist. */
export type FetchStreamFile = (file: {
  node: string;
  roomId: string;
  fileName: string;
  maxBytes: number;
  /** See `LocateRequest`. */
  stored?: boolean;
  signal: AbortSignal;
}) => Promise<Buffer>;

/** Location of a file. */
export type Located = { bytes: Buffer } | { directory: string };
