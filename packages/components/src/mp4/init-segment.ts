import { ascii, box, fullBox, u8, u16, u32, zeros } from './boxes.js';

export interface Mp4VideoTrack {
  kind: 'video';
  width: number;
  height: number;
  /** Ticks per second. */
  timescale: number;
  /** NAL units without start codes. */
  sps: Buffer;
  pps: Buffer;
  /**
   * True when samples contain parameter sets other than these, which the sample entry `avc3` allows and `avc1` does not
   * (ISO/IEC 14496-15 section 5.4.2). The segment has the same length either way.
   */
  hasOtherSets?: boolean;
}

/** Stereo AAC. */
export interface Mp4AudioTrack {
  kind: 'audio';
  /** Samples per second; also the timescale. */
  sampleRate: number;
  /** AudioSpecificConfig, ISO/IEC 14496-3. */
  audioConfig: Buffer;
}

export type Mp4Track = Mp4VideoTrack | Mp4AudioTrack;

const UNITY_MATRIX = u32(0x0001_0000, 0, 0, 0, 0x0001_0000, 0, 0, 0, 0x4000_0000);
/** 16.16 */
const SEVENTY_TWO_DPI = 0x0048_0000;
const LANGUAGE_UND = 0x55c4;

/** Writes the boxes a player needs before any fragment: `ftyp` and `moov`. Tracks are numbered from 1 in order. */
export function initSegment(tracks: readonly Mp4Track[]): Buffer {
  const mvhd = fullBox(
    'mvhd',
    {},
    zeros(8),
    u32(1000, 0),
    u32(0x0001_0000),
    u16(0x0100),
    zeros(10),
    UNITY_MATRIX,
    zeros(24),
    u32(tracks.length + 1),
  );
  const traks = tracks.map((track, i) => (track.kind === 'video' ? videoTrak(track, i + 1) : audioTrak(track, i + 1)));
  const trexs = tracks.map((_, i) => fullBox('trex', {}, u32(i + 1, 1, 0, 0, 0)));

  return Buffer.concat([
    box('ftyp', ascii('iso6'), u32(512), ascii('iso6isomcmfcmp41')),
    box('moov', mvhd, ...traks, box('mvex', ...trexs)),
  ]);
}

interface TrackHeader {
  id: number;
  volume: number;
  width: number;
  height: number;
  timescale: number;
  handler: 'vide' | 'soun';
  mediaHeader: Buffer;
  sampleEntry: Buffer;
}

function trak({ id, volume, width, height, timescale, handler, mediaHeader, sampleEntry }: TrackHeader): Buffer {
  const tkhd = fullBox(
    'tkhd',
    { flags: 3 },
    zeros(8),
    u32(id),
    zeros(20),
    u16(volume, 0),
    UNITY_MATRIX,
    u32(width * 65_536, height * 65_536),
  );
  const mdhd = fullBox('mdhd', {}, zeros(8), u32(timescale, 0), u16(LANGUAGE_UND, 0));
  const hdlr = fullBox('hdlr', {}, zeros(4), ascii(handler), zeros(12), ascii('Bloom\0'));
  const dinf = box('dinf', fullBox('dref', {}, u32(1), fullBox('url ', { flags: 1 })));
  const stbl = box(
    'stbl',
    fullBox('stsd', {}, u32(1), sampleEntry),
    fullBox('stts', {}, u32(0)),
    fullBox('stsc', {}, u32(0)),
    fullBox('stsz', {}, zeros(8)),
    fullBox('stco', {}, u32(0)),
  );

  return box('trak', tkhd, box('mdia', mdhd, hdlr, box('minf', mediaHeader, dinf, stbl)));
}

function videoTrak({ width, height, timescale, sps, pps, hasOtherSets }: Mp4VideoTrack, id: number): Buffer {
  const avcC = box(
    'avcC',
    // Profile, compatibility and level follow the NAL header; NAL unit lengths take 4 bytes.
    u8(1, sps[1] ?? 0, sps[2] ?? 0, sps[3] ?? 0, 0xff, 0xe1),
    u16(sps.length),
    sps,
    u8(1),
    u16(pps.length),
    pps,
  );
  const sampleEntry = box(
    hasOtherSets === true ? 'avc3' : 'avc1',
    zeros(6),
    u16(1),
    zeros(16),
    u16(width, height),
    u32(SEVENTY_TWO_DPI, SEVENTY_TWO_DPI, 0),
    u16(1),
    zeros(32),
    u16(24, 0xffff),
    avcC,
  );
  const mediaHeader = fullBox('vmhd', { flags: 1 }, zeros(8));

  return trak({ id, volume: 0, width, height, timescale, handler: 'vide', mediaHeader, sampleEntry });
}

function audioTrak({ sampleRate, audioConfig }: Mp4AudioTrack, id: number): Buffer {
  const descriptor = (tag: number, content: Buffer): Buffer => Buffer.concat([u8(tag, content.length), content]);
  const decoderConfig = descriptor(
    4,
    // MPEG-4 audio in an audio stream; buffer size and bitrates are unknown.
    Buffer.concat([u8(0x40, 0x15), zeros(11), descriptor(5, audioConfig)]),
  );
  const esds = fullBox('esds', {}, descriptor(3, Buffer.concat([zeros(3), decoderConfig, descriptor(6, u8(2))])));
  const sampleEntry = box('mp4a', zeros(6), u16(1), zeros(8), u16(2, 16), zeros(4), u32(sampleRate * 65_536), esds);

  return trak({
    id,
    volume: 0x0100,
    width: 0,
    height: 0,
    timescale: sampleRate,
    handler: 'soun',
    mediaHeader: fullBox('smhd', {}, zeros(4)),
    sampleEntry,
  });
}

/** Returns `avc1.PPCCLL`, RFC 6381. */
export function avcCodecString(sps: Buffer): string {
  return `avc1.${sps.subarray(1, 4).toString('hex')}`;
}
