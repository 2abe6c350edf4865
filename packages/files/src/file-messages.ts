/** What the nodes of a cluster say to each other about files of streams and recordings. Plain data throughout. */
import type { MediaFileErrorCode } from './errors.js';
import type { BlockingPosition } from './stores.js';

export type FileAddress =
  | { kind: 'stream'; roomId: string; fileName: string; blocking?: BlockingPosition }
  | { kind: 'recording'; id: string; fileName: string };

export type FileOutcome<T> = { ok: true; value: T } | { ok: false; code: MediaFileErrorCode; message: string };

export interface OpenedFile {
  /** Bytes. */
  size: number;
  /** How it begins. What fits in here whole is not open any more. */
  head: Uint8Array;
}

export interface RecordingStart {
  id: string;
  /** Unix milliseconds. */
  startedAt: number;
}

/** The actor `files_node` of each node. */
export type FilesProtocol = {
  /** `request` names it from now on, also while it is waited for. */
  open: (message: { request: string; file: FileAddress }) => FileOutcome<OpenedFile>;
  /** Bytes of an open file. */
  read: (message: { request: string; start: number; length: number }) => FileOutcome<Uint8Array>;
  /** Nobody wants it any more, whether it is open or still waited for. */
  close: (message: { request: string }) => void;
  /** Ids of the recordings there. */
  recordings: (message: object) => FileOutcome<readonly string[]>;
  /** When the recording there started, Unix milliseconds; null: it is not there, or still being made. */
  startOf: (message: { id: string }) => number | null;
  /** Starts of those of the recordings that are there, finished or not. */
  startsOf: (message: { ids: readonly string[] }) => FileOutcome<readonly RecordingStart[]>;
  /** A new recording of that id has begun on another node. */
  began: (message: { id: string }) => void;
  remove: (message: { id: string }) => FileOutcome<null>;
};

/** Name of the actor. */
export const FILES_ACTOR = 'files_node';

/** Longest `head`, bytes: playlists and most parts of a third of a second come with the answer. */
export const HEAD_BYTES = 128 * 1024;
/** Longest `read`, bytes: what else two nodes say to each other does not wait long behind one. */
export const CHUNK_BYTES = 128 * 1024;
