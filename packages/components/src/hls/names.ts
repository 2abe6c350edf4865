/** Names of the files of a stream; players follow the URIs from the master playlist on. */
export const MASTER_NAME = 'index.m3u8';

const TRACK = 'main';

export const MEDIA_NAME = `${TRACK}.m3u8`;
export const DELTA_NAME = `${TRACK}_delta.m3u8`;
export const INIT_NAME = `muxed_header_${TRACK}_part0_.mp4`;

export const segmentName = (sequence: number): string => `muxed_segment_${sequence}_${TRACK}.m4s`;
export const partName = (sequence: number, part: number): string =>
  `muxed_segment_${sequence}_${TRACK}_${part}_part.m4s`;

export interface PartPosition {
  segment: number;
  part: number;
}

/** Where a part stands by its name; undefined = no name of a part of ours. */
export function parsePartName(name: string): PartPosition | undefined {
  const match = /^muxed_segment_(\d{1,15})_main_(\d{1,4})_part\.m4s$/.exec(name);

  return match === null ? undefined : { segment: Number(match[1]), part: Number(match[2]) };
}
