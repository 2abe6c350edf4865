import { ComponentError } from '../errors.js';

/** Maximum size of a fragment, which holds about one second. */
const MAX_BOX_BYTES = 64 * 1024 * 1024;
const HEADER_BYTES = 8;
const CONTAINERS = new Set(['trak', 'mdia', 'minf', 'stbl']);

export interface Mp4VideoHeader {
  width: number;
  height: number;
  /** Ticks per second. */
  timescale: number;
  sps: Buffer;
  pps: Buffer;
}

export interface Mp4Picture {
  /** Ticks since the start of the file. */
  time: number;
  duration: number;
  key: boolean;
  /** NAL units without start codes. */
  nals: Buffer[];
}

interface Run {
  decodeTime: number;
  /** Offset from the start of the `moof`. */
  dataOffset: number;
  samples: { duration: number; size: number; key: boolean }[];
}

/**
 * Reads recorded files with one H.264 track, as written by `initSegment` and `fragment`. A file that ends within a
 * fragment, as after a crash, is read up to that fragment.
 */
export class FragmentReader {
  #rest: Buffer = Buffer.alloc(0);
  #skip = 0;
  #header: Mp4VideoHeader | undefined;
  #moof: { bytes: number; runs: Run[] } | undefined;
  #end = 0;
  /** Bytes of the boxes read so far. */
  #read = 0;
  #wholeBytes = 0;

  /** Set once the header has been read. */
  get header(): Mp4VideoHeader | undefined {
    return this.#header;
  }

  /** Ticks at the end of the last complete fragment. */
  get end(): number {
    return this.#end;
  }

  /** Bytes up to the end of the last complete fragment; valid even after an error. */
  get wholeBytes(): number {
    return this.#wholeBytes;
  }

  /** @throws ComponentError `BAD_MP4` */
  push(chunk: Buffer): Mp4Picture[] {
    const pictures: Mp4Picture[] = [];
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, bytes.length);
        this.#skip -= skipped;
        bytes = bytes.subarray(skipped);
      }
      if (bytes.length < HEADER_BYTES) break;
      const size = bytes.readUInt32BE(0);
      const type = bytes.toString('latin1', 4, 8);
      if (size < HEADER_BYTES || size > MAX_BOX_BYTES) throw bad(`a box ${JSON.stringify(type)} of ${size} bytes`);
      if (type !== 'moov' && type !== 'moof' && type !== 'mdat') {
        this.#skip = size;
        this.#read += size;
        continue;
      }
      if (bytes.length < size) break;
      for (const picture of this.#box(type, bytes.subarray(HEADER_BYTES, size))) pictures.push(picture);
      this.#read += size;
      if (type === 'mdat') this.#wholeBytes = this.#read;
      bytes = bytes.subarray(size);
    }
    this.#rest = Buffer.from(bytes);

    return pictures;
  }

  #box(type: string, body: Buffer): Mp4Picture[] {
    if (type === 'mdat') {
      const { runs, bytes } = this.#moof ?? { runs: [], bytes: 0 };
      this.#moof = undefined;
      return runs.flatMap((run) => this.#run(run, body, run.dataOffset - bytes - HEADER_BYTES));
    }
    if (type === 'moov') this.#header = readHeader(body);
    else this.#moof = { bytes: HEADER_BYTES + body.length, runs: readRuns(body) };

    return [];
  }

  #run({ decodeTime, samples }: Run, body: Buffer, offset: number): Mp4Picture[] {
    const pictures: Mp4Picture[] = [];
    let time = decodeTime;
    let at = offset;
    for (const { duration, size, key } of samples) {
      if (at < 0 || at + size > body.length) throw bad(`a picture at ${at} in ${body.length} bytes`);
      pictures.push({ time, duration, key, nals: splitSample(body.subarray(at, at + size)) });
      at += size;
      time += duration;
    }
    this.#end = Math.max(this.#end, time);

    return pictures;
  }
}

/** Yields the bodies of a container's boxes in order. */
function* children(body: Buffer): Generator<{ type: string; body: Buffer }> {
  let at = 0;
  while (at + HEADER_BYTES <= body.length) {
    const size = body.readUInt32BE(at);
    if (size < HEADER_BYTES || at + size > body.length) throw bad(`a box of ${size} bytes in ${body.length - at}`);
    yield {
      type: body.toString('latin1', at + 4, at + HEADER_BYTES),
      body: body.subarray(at + HEADER_BYTES, at + size),
    };
    at += size;
  }
}

/** Finds a box by type, at any depth. */
function find(body: Buffer, wanted: string): Buffer | undefined {
  for (const child of children(body)) {
    if (child.type === wanted) return child.body;
    const found = CONTAINERS.has(child.type) ? find(child.body, wanted) : undefined;
    if (found !== undefined) return found;
  }

  return undefined;
}

function readHeader(moov: Buffer): Mp4VideoHeader {
  const mdhd = atLeast(find(moov, 'mdhd'), 'mdhd', 24);
  const stsd = atLeast(find(moov, 'stsd'), 'stsd', 8 + HEADER_BYTES + 78);
  if (!['avc1', 'avc3'].includes(stsd.toString('latin1', 12, 16))) throw bad('no H.264 track');
  const entry = stsd.subarray(8 + HEADER_BYTES);
  const avcC = atLeast(find(entry.subarray(78), 'avcC'), 'avcC', 7);
  const [sps, after] = parameterSet(avcC, 6);
  const [pps] = parameterSet(avcC, after + 1);
  const timescale = mdhd.readUInt32BE(12);
  if (timescale === 0) throw bad('no timescale');

  return { width: entry.readUInt16BE(24), height: entry.readUInt16BE(26), timescale, sps, pps };
}

/** Reads one parameter set and returns it with its end. */
function parameterSet(avcC: Buffer, at: number): [set: Buffer, end: number] {
  const length = at + 2 <= avcC.length ? avcC.readUInt16BE(at) : Number.POSITIVE_INFINITY;
  if (at + 2 + length > avcC.length) throw bad('a parameter set that ends behind its box');

  return [Buffer.from(avcC.subarray(at + 2, at + 2 + length)), at + 2 + length];
}

function readRuns(moof: Buffer): Run[] {
  const runs: Run[] = [];
  for (const { type, body } of children(moof)) {
    if (type !== 'traf') continue;
    const tfdt = atLeast(find(body, 'tfdt'), 'tfdt', 12);
    const trun = atLeast(find(body, 'trun'), 'trun', 12);
    const decodeTime = Number(tfdt.readBigUInt64BE(4));
    const count = trun.readUInt32BE(4);
    if ((trun.readUInt32BE(0) & 0xffffff) !== 0x701 || trun.length < 12 + count * 12) throw bad('an unknown run');
    if (!Number.isSafeInteger(decodeTime)) throw bad(`the time ${decodeTime}`);
    const samples = Array.from({ length: count }, (_, i) => ({
      duration: trun.readUInt32BE(12 + i * 12),
      size: trun.readUInt32BE(16 + i * 12),
      // sample_is_non_sync_sample
      key: (trun.readUInt32BE(20 + i * 12) & 0x0001_0000) === 0,
    }));
    runs.push({ decodeTime, dataOffset: trun.readInt32BE(8), samples });
  }

  return runs;
}

function splitSample(sample: Buffer): Buffer[] {
  const nals: Buffer[] = [];
  let at = 0;
  while (at + 4 <= sample.length) {
    const size = sample.readUInt32BE(at);
    if (size > sample.length - at - 4) throw bad(`a NAL unit of ${size} bytes in ${sample.length - at - 4}`);
    if (size > 0) nals.push(Buffer.from(sample.subarray(at + 4, at + 4 + size)));
    at += 4 + size;
  }

  return nals;
}

function atLeast(body: Buffer | undefined, type: string, bytes: number): Buffer {
  if (body === undefined || body.length < bytes) throw bad(`no ${type} box, or a short one`);

  return body;
}

function bad(what: string): ComponentError {
  return new ComponentError('BAD_MP4', `the file was not written by a recording: ${what}`);
}
