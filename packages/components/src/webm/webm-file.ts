/** WebM files (RFC 9559) with one track of VP8 or VP9. Times are milliseconds from the first picture. */
import type { PictureSize } from '../h264/parameter-sets.js';
import { element, float, Id, idBytes, text, unsigned } from './ebml.js';

export type WebmCodec = 'vp8' | 'vp9';

/** Codec ids of RFC 9559, section 27. */
export const CODEC_IDS: Readonly<Record<WebmCodec, string>> = { vp8: 'V_VP8', vp9: 'V_VP9' };

export interface WebmTrack extends PictureSize {
  codec: WebmCodec;
}

export interface WebmPicture {
  timeMs: number;
  /** Decodable without earlier pictures. */
  key: boolean;
  data: Buffer;
}

/** The end of a complete file. */
export interface WebmEnd {
  durationMs: number;
  /** Where the cues are: bytes from the start of the file. */
  cuesAt: number;
  /** Size of the file. */
  bytes: number;
}

/** Ticks of a millisecond. */
const NANOSECONDS = 1_000_000;
const TRACK = 1;
const VIDEO = 1;
const KEY_FLAG = 0x80;
const UNKNOWN_LENGTH = Buffer.from('01ffffffffffffff', 'hex');

const EBML_HEADER = element(
  Id.ebml,
  unsigned(Id.ebmlVersion, 1),
  unsigned(Id.ebmlReadVersion, 1),
  unsigned(Id.ebmlMaxIdLength, 4),
  unsigned(Id.ebmlMaxSizeLength, 8),
  text(Id.docType, 'webm'),
  unsigned(Id.docTypeVersion, 4),
  unsigned(Id.docTypeReadVersion, 2),
);
/** Positions in a file count from here. */
const SEGMENT_START = EBML_HEADER.length + 4 + UNKNOWN_LENGTH.length;

/**
 * Returns the start of a file. It has the same length with and without `end`: a file without one plays to its last
 * cluster, and one with it has a length and can be sought.
 */
export function webmHeader({ codec, width, height }: WebmTrack, end?: WebmEnd): Buffer {
  return Buffer.concat([
    EBML_HEADER,
    idBytes(Id.segment),
    end === undefined ? UNKNOWN_LENGTH : longLength(end.bytes - SEGMENT_START),
    seekHead(end),
    element(
      Id.info,
      unsigned(Id.timestampScale, NANOSECONDS),
      text(Id.muxingApp, 'Bloom'),
      text(Id.writingApp, 'Bloom'),
      end === undefined ? padding(float(Id.duration, 0).length) : float(Id.duration, end.durationMs),
    ),
    element(
      Id.tracks,
      element(
        Id.trackEntry,
        unsigned(Id.trackNumber, TRACK),
        unsigned(Id.trackUid, TRACK),
        unsigned(Id.trackType, VIDEO),
        unsigned(Id.flagLacing, 0),
        text(Id.codecId, CODEC_IDS[codec]),
        element(Id.video, unsigned(Id.pixelWidth, width), unsigned(Id.pixelHeight, height)),
      ),
    ),
  ]);
}

/** Writes consecutive pictures, of which the last is at most 32 s after the first: its time has 16 bits. */
export function cluster(pictures: readonly WebmPicture[]): Buffer {
  const startMs = pictures[0]!.timeMs;
  const blocks = pictures.map(({ timeMs, key, data }) => {
    const head = Buffer.from([0x80 + TRACK, 0, 0, key ? KEY_FLAG : 0]);
    head.writeInt16BE(timeMs - startMs, 1);

    return element(Id.simpleBlock, head, data);
  });

  return element(Id.cluster, unsigned(Id.timestamp, startMs), ...blocks);
}

/** A cluster that starts with a key picture. */
interface Cue {
  timeMs: number;
  /** Bytes from the start of the file. */
  at: number;
}

/** Most places of a file that players can seek to: one every 11 s in a day. */
const MAX_CUES = 8_192;

/** Where players can start. Beyond `MAX_CUES`, every second place is forgotten. */
export class Cues {
  #cues: Cue[] = [];
  /** Least distance of two places. */
  #spacingMs = 0;

  add(timeMs: number, at: number): void {
    const last = this.#cues.at(-1);
    if (last !== undefined && timeMs - last.timeMs < this.#spacingMs) return;
    this.#cues.push({ timeMs, at });
    if (this.#cues.length <= MAX_CUES) return;
    this.#spacingMs = Math.max(1, (2 * (timeMs - this.#cues[0]!.timeMs)) / MAX_CUES);
    this.#cues = this.#cues.filter((_, i) => i % 2 === 0);
  }

  /** Returns the element for the end of the file. */
  bytes(): Buffer {
    return element(
      Id.cues,
      ...this.#cues.map(({ timeMs, at }) =>
        element(
          Id.cuePoint,
          unsigned(Id.cueTime, timeMs),
          element(
            Id.cueTrackPositions,
            unsigned(Id.cueTrack, TRACK),
            unsigned(Id.cueClusterPosition, at - SEGMENT_START),
          ),
        ),
      ),
    );
  }
}

function seekHead(end: WebmEnd | undefined): Buffer {
  const position = end === undefined ? 0 : end.cuesAt - SEGMENT_START;
  const seek = element(Id.seek, element(Id.seekId, idBytes(Id.cues)), unsigned(Id.seekPosition, position));
  const bytes = element(Id.seekHead, seek);

  return end === undefined ? padding(bytes.length) : bytes;
}

/** An element without meaning, whose place another one takes later. */
function padding(bytes: number): Buffer {
  return element(Id.void, Buffer.alloc(bytes - 5));
}

function longLength(bytes: number): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE((1n << 56n) + BigInt(bytes));

  return length;
}
