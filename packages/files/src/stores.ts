import type { ServedFile } from './served-file.js';

/** The position in a low-latency stream that a player waits for. */
export interface BlockingPosition {
  /** Media sequence number of a segment. */
  segment: number;
  /** A part of it; undefined = the whole segment. */
  part: number | undefined;
}

export interface StreamRequest {
  roomId: string;
  /** Decoded name; `_HLS_skip` has turned `x.m3u8` into `x_delta.m3u8` already. Does not leave the directory. */
  fileName: string;
  /** Streams without low latency ignore a segment alone, and reject a segment with a part. */
  blocking: BlockingPosition | undefined;
  /** Aborted when the client is gone. */
  signal: AbortSignal;
}

/** Live HLS output of rooms. */
export interface LiveStreams {
  /** @throws MediaFileError, also INVALID_NAME for a position too far ahead and WAITED_TOO_LONG */
  open(request: StreamRequest): Promise<ServedFile>;
}

/** Recordings that can be played: persistent HLS output of rooms that ended. */
export interface RecordingStore {
  /** With scope `cluster` those of every node; `unreachable` names the nodes that did not answer. */
  list(scope: 'local' | 'cluster'): Promise<{ ids: string[]; unreachable: string[] }>;
  /** @throws MediaFileError */
  remove(id: string): Promise<void>;
  /** `signal` is aborted when the client is gone. @throws MediaFileError */
  open(id: string, fileName: string, signal: AbortSignal): Promise<ServedFile>;
}
