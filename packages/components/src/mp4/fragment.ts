import { box, fullBox, u32, u64 } from './boxes.js';

export interface Mp4Sample {
  /** Length-prefixed NAL units, or one raw AAC frame. */
  data: Buffer;
  /** Ticks of the track's timescale, 1..2^32-1. */
  duration: number;
  /** Decodable without earlier samples. */
  key: boolean;
}

/** Consecutive samples of one track, without gaps. */
export interface Mp4Run {
  /** Track number in the initialisation segment, from 1. */
  track: number;
  /** Decode time of the first sample in ticks since the start of the stream. */
  decodeTime: number;
  samples: readonly Mp4Sample[];
}

/** sample_depends_on = 2; for other samples: depends on others and is not a sync sample (14496-12, 8.8.3.1). */
const SYNC_SAMPLE = 0x0200_0000;
const OTHER_SAMPLE = 0x0101_0000;
const DEFAULT_BASE_IS_MOOF = 0x02_0000;
/** Data offset, then duration, size and flags per sample. */
const TRUN_FIELDS = 0x701;

/**
 * Writes one fragment, `moof` and `mdat` (ISO/IEC 14496-12, section 8.8). A fragment may be cut anywhere, and the file
 * is playable after each. Runs without samples are left out.
 */
export function fragment(sequence: number, runs: readonly Mp4Run[]): Buffer {
  const filled = runs.filter(({ samples }) => samples.length > 0);
  // Offsets count from the start of the header; their values do not change its size.
  const header = (base: number): Buffer => {
    let offset = base;
    const trafs = filled.map((run) => {
      const part = traf(run, offset);
      for (const { data } of run.samples) offset += data.length;
      return part;
    });

    return box('moof', fullBox('mfhd', {}, u32(sequence)), ...trafs);
  };
  const moof = header(header(0).length + 8);

  return Buffer.concat([moof, box('mdat', ...filled.flatMap(({ samples }) => samples.map(({ data }) => data)))]);
}

function traf({ track, decodeTime, samples }: Mp4Run, dataOffset: number): Buffer {
  const entries = Buffer.alloc(samples.length * 12);
  for (const [i, { data, duration, key }] of samples.entries()) {
    entries.writeUInt32BE(duration, i * 12);
    entries.writeUInt32BE(data.length, i * 12 + 4);
    entries.writeUInt32BE(key ? SYNC_SAMPLE : OTHER_SAMPLE, i * 12 + 8);
  }

  return box(
    'traf',
    fullBox('tfhd', { flags: DEFAULT_BASE_IS_MOOF }, u32(track)),
    fullBox('tfdt', { version: 1 }, u64(decodeTime)),
    fullBox('trun', { flags: TRUN_FIELDS }, u32(samples.length, dataOffset), entries),
  );
}

/** Returns the NAL units as they appear in samples. */
export function lengthPrefixed(nals: readonly Buffer[]): Buffer {
  return Buffer.concat(nals.flatMap((nal) => [u32(nal.length), nal]));
}
