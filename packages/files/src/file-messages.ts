/** Messages between nodes about the files of streams and recordings; plain data only. */
import {
  bytes,
  constant,
  count,
  flag,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  origin,
  outcome,
  tagged,
  takes,
  text,
  type Outcome,
  type Shape,
  type Shapes,
} from '@bloom/actors';
import type { MediaFileErrorCode } from './errors.js';
import { MAX_LATER, MAX_RAW_LISTED, MIX_LAYOUTS, MIX_STATES, RAW_STATES } from './raw-recordings.js';
import type { RawFile, RawList, RawMix, RawMixOrder, RawPlace, RawQuery, RawRecording } from './raw-recordings.js';
import { type BlockingPosition, TAKEN_HOW, type TakenFiles } from './stores.js';

export type FileAddress =
  | { kind: 'stream'; roomId: string; fileName: string; blocking?: BlockingPosition; stored?: boolean }
  | { kind: 'recording'; id: string; fileName: string };

/** A file of a recording of tracks. */
export type RawAddress = RawFile & { kind: 'raw' };

export type FileOutcome<T> = Outcome<T, MediaFileErrorCode>;

export interface OpenedFile {
  /** Bytes. */
  size: number;
  /** First bytes of the file. A file that fits in here is already closed. */
  head: Uint8Array;
}

export interface RecordingStart {
  id: string;
  /** Unix milliseconds. */
  startedAt: number;
}

/** The `files_node` actor on each node. */
export type FilesProtocol = {
  /** Opens a file, which `request` identifies from then on, even while it is awaited. */
  open: (message: { request: string; file: FileAddress }) => FileOutcome<OpenedFile>;
  /** Reads from an open file. */
  read: (message: { request: string; start: number; length: number }) => FileOutcome<Uint8Array>;
  /** Closes a file, or stops waiting for it. */
  close: (message: { request: string }) => void;
  /** Returns the ids of finished recordings. */
  recordings: (message: object) => FileOutcome<readonly string[]>;
  /**
   * Returns when a recording started in Unix milliseconds; null when the node does not have it or is still making it.
   */
  startOf: (message: { id: string }) => number | null;
  /** Returns the start times of those recordings that the node has, finished or not. */
  startsOf: (message: { ids: readonly string[] }) => FileOutcome<readonly RecordingStart[]>;
  /** Reports that a new recording with that id has begun on the sender. */
  began: (message: { id: string }) => void;
  remove: (message: { id: string }) => FileOutcome<null>;
  /**
   * Reports that the sender has got the stored files of a stream whose room has moved to it. `from` is read from the
   * link.
   */
  streamTaken: (message: TakenFiles & { from?: string }) => FileOutcome<null>;
  /** Returns recordings of tracks, newest first. */
  listRaw: (message: RawQuery) => FileOutcome<RawList>;
  /** Opens a file of a recording of tracks, as `open` does. */
  openRaw: (message: RawFile & { request: string }) => FileOutcome<OpenedFile>;
  removeRaw: (message: RawPlace) => FileOutcome<null>;
  /** Queues the mix of a recording of tracks. */
  mixRaw: (message: RawPlace & RawMixOrder) => FileOutcome<RawMix>;
  /** Ends the mix of a recording of tracks, and removes the movie. */
  removeRawMix: (message: RawPlace) => FileOutcome<null>;
};

/** Name of the actor. */
export const FILES_ACTOR = 'files_node';

/** Maximum size of `head`: playlists and most parts of a third of a second fit in the first answer. */
export const HEAD_BYTES = 128 * 1024;
/** Maximum size of one `read`, so that other messages on the link do not have to wait long behind it. */
export const CHUNK_BYTES = 128 * 1024;

/** Maximum number of ids in one `startsOf`. */
export const MAX_COMPARED = 1_000;

const CODES: Record<MediaFileErrorCode, true> = {
  INVALID_NAME: true,
  INVALID_OPTIONS: true,
  IN_PROGRESS: true,
  NOT_INSTALLED: true,
  NOT_FOUND: true,
  OWNER_UNREACHABLE: true,
  TOO_BUSY: true,
  WAITED_TOO_LONG: true,
};

const fileOutcome = <T>(value: Shape<T>): Shape<FileOutcome<T>> => outcome(value, CODES, 'OWNER_UNREACHABLE');

/** Requests are named by the caller; the name is stored while the request is open. */
const request = text(100);
const position = object({ segment: count, part: optional(count) } satisfies Record<
  keyof BlockingPosition,
  unknown
>) as Shape<BlockingPosition>;
const address: Shape<FileAddress> = tagged('kind', {
  stream: { roomId: text(), fileName: text(), blocking: optional(position), stored: optional(flag) },
  recording: { id: text(), fileName: text() },
});

const place = { roomId: text(), part: text() };
const mix = object({
  state: oneOf(MIX_STATES),
  progress: optional(number),
  reason: optional(text()),
  // An earlier part may be missing too.
  missing: optional(list(text(100), MAX_LATER + 1)),
  layout: oneOf(MIX_LAYOUTS),
  width: count,
  height: count,
  seconds: optional(number),
  bytes: optional(count),
  file: optional(text()),
  requestedAt: number,
  endedAt: nullable(number),
}) as Shape<RawMix>;
const order = {
  layout: optional(oneOf(MIX_LAYOUTS)),
  width: optional(count),
  height: optional(count),
  credentials: optional(
    object({
      accessKeyId: text(),
      secretAccessKey: text(),
      region: text(),
      bucket: text(),
      endpoint: optional(text()),
    }),
  ),
  skipMissing: optional(flag),
  later: optional(list(text(100), MAX_LATER)),
};
const rawRecording: Shape<RawRecording> = object({
  ...place,
  state: oneOf(RAW_STATES),
  reason: optional(text()),
  progress: optional(number),
  tracks: count,
  seconds: number,
  bytes: count,
  startedAt: number,
  uploadedAt: nullable(number),
  continues: optional(text(100)),
  mix: optional(mix),
  isHere: flag,
}) as Shape<RawRecording>;
const opened = fileOutcome(object({ size: count, head: bytes }));

export const FILES_SHAPES: Shapes<FilesProtocol> = {
  open: takes({ request, file: address }, opened),
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
  streamTaken: takes(
    { roomId: text(), track: text(), how: oneOf(TAKEN_HOW), from: origin },
    fileOutcome(constant(null)),
  ),
  listRaw: takes(
    { limit: count, roomId: optional(text()), after: optional(object(place)) },
    fileOutcome(object({ recordings: list(rawRecording, MAX_RAW_LISTED), isWhole: flag })),
  ),
  openRaw: takes({ ...place, fileName: text(), request }, opened),
  removeRaw: takes(place, fileOutcome(constant(null))),
  mixRaw: takes({ ...place, ...order }, fileOutcome(mix)) as Shapes<FilesProtocol>['mixRaw'],
  removeRawMix: takes(place, fileOutcome(constant(null))),
};
