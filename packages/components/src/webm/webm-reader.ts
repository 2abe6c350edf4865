import { ComponentError } from '../errors.js';
import { type ElementHeader, Id, readHeader, readUnsigned } from './ebml.js';
import { CODEC_IDS, Cues, type WebmCodec, type WebmPicture, type WebmTrack } from './webm-file.js';

/** Longest element that is read whole: a cluster, which holds a second or two megabytes, and one picture more. */
const MAX_READ_BYTES = 16 * 1024 * 1024;
/** The last picture of a file without a length. */
const LAST_PICTURE_MS = 1_000 / 30;
const BLOCK_HEADER_BYTES = 4;
const TRACK_ONE = 0x81;
const LACING = 0x06;

export interface ShownPicture extends WebmPicture {
  durationMs: number;
}

/**
 * Reads recorded files with one track of VP8 or VP9, as written by `webmHeader` and `cluster`. A file that ends within
 * a cluster, as after a crash, is read up to that cluster.
 */
export class WebmReader {
  #rest: Buffer = Buffer.alloc(0);
  #skip = 0;
  #isInSegment = false;
  #durationMs: number | undefined;
  #track: WebmTrack | undefined;
  #last: WebmPicture | undefined;
  readonly #cues = new Cues();
  /** Bytes of the elements read so far. */
  #read = 0;
  #wholeBytes = 0;

  /** Set once the header has been read. */
  get track(): WebmTrack | undefined {
    return this.#track;
  }

  /** End of the last picture read so far; 0 if there is none. */
  get endMs(): number {
    if (this.#last === undefined) return 0;
    const shownMs = (this.#durationMs ?? 0) - this.#last.timeMs;

    return this.#last.timeMs + (shownMs > 0 ? shownMs : LAST_PICTURE_MS);
  }

  /** Bytes up to the end of the last complete cluster; valid even after an error. */
  get wholeBytes(): number {
    return this.#wholeBytes;
  }

  /** Places among those bytes that players can seek to. */
  get cues(): Cues {
    return this.#cues;
  }

  /** Returns the pictures whose end is known, all but the newest. @throws ComponentError `BAD_WEBM` */
  push(chunk: Buffer): ShownPicture[] {
    const pictures: ShownPicture[] = [];
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, bytes.length);
        this.#skip -= skipped;
        this.#read += skipped;
        bytes = bytes.subarray(skipped);
      }
      const header = readHeader(bytes, 0);
      if (header === 'invalid') throw bad('an element without an id');
      if (header === 'short') break;
      const { id, length, headerBytes } = header;
      if (id === Id.segment && !this.#isInSegment) {
        this.#isInSegment = true;
        this.#skip = headerBytes;
        continue;
      }
      if (id !== Id.info && id !== Id.tracks && id !== Id.cluster) {
        if (!Number.isSafeInteger(length)) throw bad('an element without a length');
        this.#skip = headerBytes + length;
        continue;
      }
      if (length > MAX_READ_BYTES) throw bad(`an element of ${length} bytes`);
      if (bytes.length < headerBytes + length) break;
      for (const picture of this.#element(header, bytes.subarray(headerBytes, headerBytes + length))) {
        pictures.push(picture);
      }
      this.#read += headerBytes + length;
      if (id === Id.cluster) this.#wholeBytes = this.#read;
      bytes = bytes.subarray(headerBytes + length);
    }
    this.#rest = Buffer.from(bytes);

    return pictures;
  }

  /** Returns the last picture. */
  end(): ShownPicture[] {
    const last = this.#last;

    return last === undefined ? [] : [{ ...last, durationMs: this.endMs - last.timeMs }];
  }

  #element({ id }: ElementHeader, body: Buffer): ShownPicture[] {
    if (id === Id.cluster) return this.#cluster(body);
    if (id === Id.tracks) this.#track = readTrack(body);
    else this.#durationMs = readDuration(body);

    return [];
  }

  #cluster(body: Buffer): ShownPicture[] {
    if (this.#track === undefined) throw bad('pictures before the track');
    const blocks = readBlocks(body);
    const [first] = blocks;
    if (first?.key === true) this.#cues.add(first.timeMs, this.#read);
    const pictures: ShownPicture[] = [];
    for (const picture of blocks) {
      const last = this.#last;
      if (last !== undefined) pictures.push({ ...last, durationMs: Math.max(0, picture.timeMs - last.timeMs) });
      this.#last = picture;
    }

    return pictures;
  }
}

/** Yields the elements of a body in order. */
function* children(body: Buffer): Generator<{ id: number; body: Buffer }> {
  let at = 0;
  while (at < body.length) {
    const header = readHeader(body, at);
    if (typeof header === 'string') throw bad('an incomplete element');
    const start = at + header.headerBytes;
    const end = start + header.length;
    if (end > body.length) throw bad(`an element of ${header.length} bytes in ${body.length - start}`);
    yield { id: header.id, body: body.subarray(start, end) };
    at = end;
  }
}

function readBlocks(cluster: Buffer): WebmPicture[] {
  const pictures: WebmPicture[] = [];
  let startMs: number | undefined;
  for (const { id, body } of children(cluster)) {
    if (id === Id.timestamp) startMs = readUnsigned(body);
    if (id !== Id.simpleBlock) continue;
    if (startMs === undefined) throw bad('a cluster without a time');
    pictures.push(readBlock(body, startMs));
  }

  return pictures;
}

function readBlock(content: Buffer, startMs: number): WebmPicture {
  if (content.length <= BLOCK_HEADER_BYTES) throw bad('a block without a picture');
  const [track, flags] = [content[0], content[3]!];
  if (track !== TRACK_ONE || (flags & LACING) !== 0) throw bad('a block of another track, or of several pictures');
  const timeMs = startMs + content.readInt16BE(1);
  if (timeMs < 0) throw bad(`the time ${timeMs}`);

  return { timeMs, key: (flags & 0x80) !== 0, data: Buffer.from(content.subarray(BLOCK_HEADER_BYTES)) };
}

function readTrack(body: Buffer): WebmTrack {
  const entry = find(body, Id.trackEntry);
  const video = find(entry, Id.video);
  const name = find(entry, Id.codecId).toString('latin1');
  const codec = (Object.keys(CODEC_IDS) as WebmCodec[]).find((known) => CODEC_IDS[known] === name);
  if (codec === undefined) throw bad(`the codec ${JSON.stringify(name.slice(0, 40))}`);
  const [width, height] = [readUnsigned(find(video, Id.pixelWidth)), readUnsigned(find(video, Id.pixelHeight))];
  if (width === undefined || height === undefined) throw bad('no picture size');

  return { codec, width, height };
}

/** Returns the length in ms, which a file that is not complete lacks. */
function readDuration(info: Buffer): number | undefined {
  for (const { id, body } of children(info)) {
    if (id !== Id.duration || body.length !== 8) continue;
    const durationMs = body.readDoubleBE(0);
    return Number.isFinite(durationMs) ? durationMs : undefined;
  }

  return undefined;
}

function find(body: Buffer, wanted: number): Buffer {
  for (const { id, body: found } of children(body)) if (id === wanted) return found;
  throw bad(`no element ${wanted.toString(16)}`);
}

function bad(what: string): ComponentError {
  return new ComponentError('BAD_WEBM', `the file was not written by a recording: ${what}`);
}
