import type { ServedFile } from './served-file.js';

/** A position in a low-latency stream that a player waits for. */
export interface BlockingPosition {
  /** Media sequence number of a segment. */
  segment: number;
  /** Part of the segment; undefined = the whole segment. */
  part: number | undefined;
}

export interface StreamRequest {
  roomId: string;
  /** Decoded name, with `_HLS_skip` already applied (`x.m3u8` became `x_delta.m3u8`). Stays within the directory. */
  fileName: string;
  /** Streams without low latency ignore a segment on its own, and reject one with a part. */
  blocking: BlockingPosition | undefined;
  /** The file on the disk, also after the room has left the node: for the next one. */
  stored?: boolean;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
}

/** Live HLS output of rooms. */
export interface LiveStreams {
  /**
   * @throws MediaFileError, including INVALID_NAME for a position too far ahead, WAITED_TOO_LONG, and OWNER_UNREACHABLE
   *   without a cause for the stream of a room that has just left this node
   */
  open(request: StreamRequest): Promise<ServedFile>;
  /** Called when `node` says that it has got the stored files of a stream whose room has left this one. */
  taken?(report: TakenFiles, node: string): void;
}

/** How another node has got the stored files of a stream: all, those on a disk that both use, or the newest only. */
export const TAKEN_HOW = ['copied', 'shared', 'incomplete'] as const;

export interface TakenFiles {
  roomId: string;
  /** Part of the names of the files. */
  track: string;
  how: (typeof TAKEN_HOW)[number];
}

/** Playable recordings: persistent HLS output of rooms that have ended. */
export interface RecordingStore {
  /** With scope `cluster`, lists those of every node; `unreachable` names the nodes that did not answer. */
  list(scope: 'local' | 'cluster'): Promise<{ ids: string[]; unreachable: string[] }>;
  /** @throws MediaFileError */
  remove(id: string): Promise<void>;
  /** `signal` is aborted when the client disconnects. @throws MediaFileError */
  open(id: string, fileName: string, signal: AbortSignal): Promise<ServedFile>;
}
