/**
 * Fragmented MP4 (ISO/IEC 14496-12, CMAF style) with one H.264 and one AAC track. Only what a live stream needs: an
 * initialisation segment, and fragments that can be cut anywhere.
 */
export interface Mp4Tracks {
  width: number;
  height: number;
  /** NAL units without start codes. */
  sps: Buffer;
  pps: Buffer;
  /** Ticks per second of the video's times. */
  videoTimescale: number;
  sampleRate: number;
  /** AudioSpecificConfig. */
  audioConfig: Buffer;
}

export interface Mp4Sample {
  /** Length-prefixed NAL units, or one raw AAC frame. */
  data: Buffer;
  /** Ticks of the track's timescale. */
  duration: number;
  /** Video only: it can be decoded without any before it. */
  key: boolean;
}

export interface Mp4Run {
  /** Decode time of the first sample, ticks since the start of the stream. */
  decodeTime: number;
  samples: readonly Mp4Sample[];
}

const VIDEO_TRACK = 1;
const AUDIO_TRACK = 2;
/** sample_depends_on = 2, and: depends on others, is no sync sample (14496-12, 8.8.3.1). */
const SYNC_SAMPLE = 0x0200_0000;
const NON_SYNC_SAMPLE = 0x0101_0000;

const u8 = (...values: number[]): Buffer => Buffer.from(values);
const u16 = (value: number): Buffer => u8(value >>> 8, value & 0xff);
const u32 = (value: number): Buffer => u8(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff);
const zeros = (count: number): Buffer => Buffer.alloc(count);

function box(type: string, ...parts: Buffer[]): Buffer {
  const size = parts.reduce((sum, part) => sum + part.length, 8);

  return Buffer.concat([u32(size), Buffer.from(type, 'latin1'), ...parts], size);
}

const fullBox = (type: string, version: number, flags: number, ...parts: Buffer[]): Buffer =>
  box(type, u32(((version << 24) | flags) >>> 0), ...parts);

const UNITY_MATRIX = Buffer.concat(
  [0x0001_0000, 0, 0, 0, 0x0001_0000, 0, 0, 0, 0x4000_0000].map((value) => u32(value)),
);

/** What a player needs before any fragment: `ftyp` and `moov`. */
export function initSegment(tracks: Mp4Tracks): Buffer {
  const mvhd = fullBox(
    'mvhd',
    0,
    0,
    zeros(8),
    u32(1000),
    u32(0),
    u32(0x0001_0000),
    u16(0x0100),
    zeros(10),
    UNITY_MATRIX,
    zeros(24),
    u32(3),
  );
  const trex = (id: number): Buffer => fullBox('trex', 0, 0, u32(id), u32(1), u32(0), u32(0), u32(0));

  return Buffer.concat([
    box('ftyp', Buffer.from('iso6', 'latin1'), u32(512), Buffer.from('iso6cmfcmp41', 'latin1')),
    box('moov', mvhd, videoTrack(tracks), audioTrack(tracks), box('mvex', trex(VIDEO_TRACK), trex(AUDIO_TRACK))),
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

function track({ id, volume, width, height, timescale, handler, mediaHeader, sampleEntry }: TrackHeader): Buffer {
  const tkhd = fullBox(
    'tkhd',
    0,
    3,
    zeros(8),
    u32(id),
    zeros(20),
    u16(volume),
    zeros(2),
    UNITY_MATRIX,
    u32(width * 65_536),
    u32(height * 65_536),
  );
  const und = u16(0x55c4);
  const mdhd = fullBox('mdhd', 0, 0, zeros(8), u32(timescale), u32(0), und, zeros(2));
  const hdlr = fullBox(
    'hdlr',
    0,
    0,
    zeros(4),
    Buffer.from(handler, 'latin1'),
    zeros(12),
    Buffer.from('Bloom\0', 'latin1'),
  );
  const dinf = box('dinf', fullBox('dref', 0, 0, u32(1), fullBox('url ', 0, 1)));
  const stbl = box(
    'stbl',
    fullBox('stsd', 0, 0, u32(1), sampleEntry),
    fullBox('stts', 0, 0, u32(0)),
    fullBox('stsc', 0, 0, u32(0)),
    fullBox('stsz', 0, 0, zeros(8)),
    fullBox('stco', 0, 0, u32(0)),
  );

  return box('trak', tkhd, box('mdia', mdhd, hdlr, box('minf', mediaHeader, dinf, stbl)));
}

function videoTrack({ width, height, sps, pps, videoTimescale }: Mp4Tracks): Buffer {
  const avcC = box(
    'avcC',
    // Profile, compatibility and level are the bytes behind the NAL header; NAL lengths take 4 bytes.
    u8(1, sps[1]!, sps[2]!, sps[3]!, 0xff, 0xe1),
    u16(sps.length),
    sps,
    u8(1),
    u16(pps.length),
    pps,
  );
  const avc1 = box(
    'avc1',
    zeros(6),
    u16(1),
    zeros(16),
    u16(width),
    u16(height),
    u32(0x0048_0000),
    u32(0x0048_0000),
    zeros(4),
    u16(1),
    zeros(32),
    u16(24),
    u16(0xffff),
    avcC,
  );

  return track({
    id: VIDEO_TRACK,
    volume: 0,
    width,
    height,
    timescale: videoTimescale,
    handler: 'vide',
    mediaHeader: fullBox('vmhd', 0, 1, zeros(8)),
    sampleEntry: avc1,
  });
}

function audioTrack({ sampleRate, audioConfig }: Mp4Tracks): Buffer {
  const descriptor = (tag: number, content: Buffer): Buffer => Buffer.concat([u8(tag, content.length), content]);
  const decoderConfig = descriptor(
    4,
    // MPEG-4 audio, an audio stream; buffer size and bitrates unknown.
    Buffer.concat([u8(0x40, 0x15), zeros(3), zeros(8), descriptor(5, audioConfig)]),
  );
  const esds = fullBox('esds', 0, 0, descriptor(3, Buffer.concat([zeros(3), decoderConfig, descriptor(6, u8(2))])));
  const mp4a = box('mp4a', zeros(6), u16(1), zeros(8), u16(2), u16(16), zeros(4), u32(sampleRate * 65_536), esds);

  return track({
    id: AUDIO_TRACK,
    volume: 0x0100,
    width: 0,
    height: 0,
    timescale: sampleRate,
    handler: 'soun',
    mediaHeader: fullBox('smhd', 0, 0, zeros(4)),
    sampleEntry: mp4a,
  });
}

/** One fragment: `moof` and `mdat`, video first. Runs without samples are left out. */
export function fragment(sequence: number, video: Mp4Run, audio: Mp4Run): Buffer {
  const runs = [
    { id: VIDEO_TRACK, run: video },
    { id: AUDIO_TRACK, run: audio },
  ].filter(({ run }) => run.samples.length > 0);
  // The offsets in the header count from its own start, and do not change its size.
  const sizeOf = (run: Mp4Run): number => run.samples.reduce((sum, { data }) => sum + data.length, 0);
  const header = (base: number): Buffer => {
    let offset = base;
    const trafs = runs.map(({ id, run }) => {
      const part = traf(id, run, offset);
      offset += sizeOf(run);
      return part;
    });

    return box('moof', fullBox('mfhd', 0, 0, u32(sequence)), ...trafs);
  };
  const moof = header(header(0).length + 8);

  return Buffer.concat([moof, box('mdat', ...runs.flatMap(({ run }) => run.samples.map(({ data }) => data)))]);
}

function traf(id: number, { decodeTime, samples }: Mp4Run, dataOffset: number): Buffer {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(decodeTime));
  const isVideo = id === VIDEO_TRACK;
  const entries = Buffer.alloc(samples.length * 12);
  for (const [i, { data, duration, key }] of samples.entries()) {
    entries.writeUInt32BE(duration, i * 12);
    entries.writeUInt32BE(data.length, i * 12 + 4);
    entries.writeUInt32BE(key || !isVideo ? SYNC_SAMPLE : NON_SYNC_SAMPLE, i * 12 + 8);
  }

  return box(
    'traf',
    // default-base-is-moof
    fullBox('tfhd', 0, 0x02_0000, u32(id)),
    fullBox('tfdt', 1, 0, time),
    // data-offset, and per sample duration, size and flags
    fullBox('trun', 0, 0x701, u32(samples.length), u32(dataOffset), entries),
  );
}

/** `avc1.PPCCLL` of RFC 6381. */
export function avcCodecString(sps: Buffer): string {
  return `avc1.${sps.subarray(1, 4).toString('hex')}`;
}
