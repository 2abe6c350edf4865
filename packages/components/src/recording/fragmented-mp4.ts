/**
 * H.264 to fragmented MP4, ISO/IEC 14496-12 and -15: an initialisation segment, then a `moof` + `mdat` per fragment,
 * anywhere in the stream. What was appended is playable as it is (docs/decisions/recordings.md).
 */
import { NalType, nalType } from '@bloom/rtp';
import type { PictureSize } from '../h264/parameter-sets.js';

export const VIDEO_TIMESCALE = 90_000;
const TRACK_ID = 1;
const SYNC_SAMPLE = 0x02000000;
const OTHER_SAMPLE = 0x01010000;

export interface VideoSample {
  /** NAL units without start codes. */
  nals: readonly Buffer[];
  key: boolean;
  /** Ticks of 1/90000 s. */
  duration: number;
}

export interface VideoTrack extends PictureSize {
  sps: Buffer;
  pps: Buffer;
}

export function initSegment(track: VideoTrack): Buffer {
  const ftyp = box('ftyp', ascii('isom'), u32(0x200), ascii('isomiso5iso6mp41'));
  const mvhd = fullBox('mvhd', 0, 0, [
    u32(0, 0, 1000, 0),
    u32(0x00010000),
    u16(0x0100, 0),
    u32(0, 0),
    MATRIX,
    u32(0, 0, 0, 0, 0, 0),
    u32(TRACK_ID + 1),
  ]);
  const mvex = box('mvex', fullBox('trex', 0, 0, [u32(TRACK_ID, 1, 0, 0, 0)]));

  return Buffer.concat([ftyp, box('moov', mvhd, trak(track), mvex)]);
}

function trak(track: VideoTrack): Buffer {
  const { width, height } = track;
  const tkhd = fullBox('tkhd', 0, 3, [
    u32(0, 0, TRACK_ID, 0, 0, 0, 0),
    u16(0, 0, 0, 0),
    MATRIX,
    u32(width * 65_536, height * 65_536),
  ]);
  const mdhd = fullBox('mdhd', 0, 0, [u32(0, 0, VIDEO_TIMESCALE, 0), u16(0x55c4, 0)]);
  const hdlr = fullBox('hdlr', 0, 0, [u32(0), ascii('vide'), u32(0, 0, 0), ascii('VideoHandler\0')]);
  const dinf = box('dinf', fullBox('dref', 0, 0, [u32(1), fullBox('url ', 0, 1, [])]));
  const stbl = box(
    'stbl',
    fullBox('stsd', 0, 0, [u32(1), avc1(track)]),
    fullBox('stts', 0, 0, [u32(0)]),
    fullBox('stsc', 0, 0, [u32(0)]),
    fullBox('stsz', 0, 0, [u32(0, 0)]),
    fullBox('stco', 0, 0, [u32(0)]),
  );
  const minf = box('minf', fullBox('vmhd', 0, 1, [u16(0, 0, 0, 0)]), dinf, stbl);

  return box('trak', tkhd, box('mdia', mdhd, hdlr, minf));
}

function avc1({ width, height, sps, pps }: VideoTrack): Buffer {
  const avcC = box(
    'avcC',
    Buffer.from([1, sps[1] ?? 0, sps[2] ?? 0, sps[3] ?? 0, 0xff, 0xe1]),
    u16(sps.length),
    sps,
    Buffer.from([1]),
    u16(pps.length),
    pps,
  );

  return box(
    'avc1',
    u16(0, 0, 0, 1),
    Buffer.alloc(16),
    u16(width, height),
    u32(0x00480000, 0x00480000, 0),
    u16(1),
    Buffer.alloc(32),
    u16(0x18, 0xffff),
    avcC,
  );
}

/** One fragment. `decodeTime` is that of its first sample, in ticks since the start of the file. */
export function fragment(sequence: number, decodeTime: number, samples: readonly VideoSample[]): Buffer {
  const bodies = samples.map(({ nals }) => sampleBytes(nals));
  const perSample = samples.flatMap(({ duration, key }, i) => [
    duration,
    bodies[i]!.length,
    key ? SYNC_SAMPLE : OTHER_SAMPLE,
  ]);
  const tfhd = fullBox('tfhd', 0, 0x020000, [u32(TRACK_ID)]);
  const tfdt = fullBox('tfdt', 1, 0, [u64(decodeTime)]);
  // Data offset, then duration, size and flags of each sample.
  const trun = (offset: number): Buffer =>
    fullBox('trun', 0, 0x000701, [u32(samples.length, offset), u32(...perSample)]);
  const moof = (offset: number): Buffer =>
    box('moof', fullBox('mfhd', 0, 0, [u32(sequence)]), box('traf', tfhd, tfdt, trun(offset)));

  return Buffer.concat([moof(moof(0).length + 8), box('mdat', ...bodies)]);
}

/** With length prefixes. Parameter sets stay in: a publisher may change its picture size on the way. */
function sampleBytes(nals: readonly Buffer[]): Buffer {
  return Buffer.concat(nals.filter((nal) => nalType(nal) !== NalType.aud).flatMap((nal) => [u32(nal.length), nal]));
}

const MATRIX = u32(0x00010000, 0, 0, 0, 0x00010000, 0, 0, 0, 0x40000000);

function box(type: string, ...parts: readonly Buffer[]): Buffer {
  const length = 8 + parts.reduce((sum, part) => sum + part.length, 0);

  return Buffer.concat([u32(length), ascii(type), ...parts], length);
}

function fullBox(type: string, version: number, flags: number, parts: readonly Buffer[]): Buffer {
  return box(type, u32(version * 0x1000000 + flags), ...parts);
}

function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 2);
  values.forEach((value, i) => bytes.writeUInt16BE(value, i * 2));
  return bytes;
}

function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 4);
  values.forEach((value, i) => bytes.writeUInt32BE(value, i * 4));
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

function ascii(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}
