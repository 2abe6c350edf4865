/** Messages between nodes about files of streams and recordings; plain data only. */
import {
  bytes,
  constant,
  count,
  list,
  nullable,
  number,
  object,
  optional,
  outcome,
  tagged,
  takes,
  text,
  type Outcome,
  type Shape,
  type Shapes,
} from '@bloom/actors';
import type { MediaFileErrorCode } from './errors.js';
import type { BlockingPosition } from './stores.js';

export type FileAddress =
  | { kind: 'stream'; roomId: string; fileName: string; blocking?: BlockingPosition }
  | { kind: 'recording'; id: string; fileName: string };

export type FileOutcome<T> = Outcome<T, MediaFileErrorCode>;

export interface OpenedFile {
  /** Bytes. */
  size: number;
  /** First bytes. A file that fits in here is closed already. */
  head: Uint8Array;
}

export interface RecordingStart {
  id: string;
  /** Unix milliseconds. */
  startedAt: number;
}

/** The actor `files_node` of each node. */
export type FilesProtocol = {
  /** Opens a file. `request` identifies it from now on, also while it is waited for. */
  open: (message: { request: string; file: FileAddress }) => FileOutcome<OpenedFile>;
  /** Reads from an open file. */
  read: (message: { request: string; start: number; length: number }) => FileOutcome<Uint8Array>;
  /** Closes a file, or ends the wait for it. */
  close: (message: { request: string }) => void;
  /** Returns the ids of the finished recordings. */
  recordings: (message: object) => FileOutcome<readonly string[]>;
  /** Returns the start of a recording, Unix milliseconds; null when it is not there or still being made. */
  startOf: (message: { id: string }) => number | null;
  /** Returns the starts of those recordings that exist there, finished or not. */
  startsOf: (message: { ids: readonly string[] }) => FileOutcome<readonly RecordingStart[]>;
  /** A new recording of that id has begun on the sender. */
  began: (message: { id: string }) => void;
  remove: (message: { id: string }) => FileOutcome<null>;
};

/** Name of the actor. */
export const FILES_ACTOR = 'files_node';

/** Limit of `head`: playlists and most parts of a third of a second fit in the first answer. */
export const HEAD_BYTES = 128 * 1024;
/** Limit of `read`: other messages on the link must not wait long behind one. */
export const CHUNK_BYTES = 128 * 1024;

/** Ids in one `startsOf`. */
export const MAX_COMPARED = 1_000;

const CODES: Record<MediaFileErrorCode, true> = {
  INVALID_NAME: true,
  NOT_FOUND: true,
  OWNER_UNREACHABLE: true,
  TOO_BUSY: true,
  WAITED_TOO_LONG: true,
};

const fileOutcome = <T>(value: Shape<T>): Shape<FileOutcome<T>> => outcome(value, CODES, 'OWNER_UNREACHABLE');

/** Requests are named by the asker and held while they are open. */
const request = text(100);
const position = object({ segment: count, part: optional(count) } satisfies Record<
  keyof BlockingPosition,
  unknown
>) as Shape<BlockingPosition>;
const address: Shape<FileAddress> = tagged('kind', {
  stream: { roomId: text(), fileName: text(), blocking: optional(position) },
  recording: { id: text(), fileName: text() },
});

export const FILES_SHAPES: Shapes<FilesProtocol> = {
  open: takes({ request, file: address }, fileOutcome(object({ size: count, head: bytes }))),
  read: takes({ request, start: count, length: count }, fileOutcome(bytes)),
  close: takes({ request }),
  recordings: takes({}, fileOutcome(list(text()))),
  startOf: takes({ id: text() }, nullable(number)),
  startsOf: takes(
    { ids: list(text(), MAX_COMPARED) },
    fileOutcome(list(object({ id: text(), startedAt: number }), MAX_COMPARED)),
  ),
  began: takes({ id: text() }),
  remove: takes({ id: text() }, fileOutcome(constant(null))),
};
