/** Name of the master playlist, where players start. */
export const MASTER_NAME = 'index.m3u8';

export interface PartPosition {
  segment: number;
  part: number;
}

/** File names of one stream. */
export class StreamNames {
  readonly media: string;
  readonly delta: string;
  /** Tells apart streams uploaded to the same bucket. */
  readonly track: string;

  constructor(track = 'main') {
    this.track = track;
    this.media = `${track}.m3u8`;
    this.delta = `${track}_delta.m3u8`;
  }

  /** Returns the name of a header. A stream has another one after each move of its room. */
  init(header: number): string {
    return `muxed_header_${this.track}_part${header}_.mp4`;
  }

  segment(sequence: number): string {
    return `muxed_segment_${sequence}_${this.track}.m4s`;
  }

  part(sequence: number, part: number): string {
    return `muxed_segment_${sequence}_${this.track}_${part}_part.m4s`;
  }

  /** Returns the number of a header; undefined when the name is not one of this stream's. */
  headerOf(name: string): number | undefined {
    const number = Number(/^muxed_header_.+_part(\d{1,9})_\.mp4$/.exec(name)?.[1]);

    return name === this.init(number) ? number : undefined;
  }

  /** Returns the number of a segment; undefined when the name is not one of this stream's. */
  sequenceOf(name: string): number | undefined {
    const sequence = Number(/^muxed_segment_(\d{1,9})_/.exec(name)?.[1]);

    return name === this.segment(sequence) ? sequence : undefined;
  }

  /** Returns the position of a part; undefined when the name is not one of this stream's parts. */
  positionOf(name: string): PartPosition | undefined {
    const match = /^muxed_segment_(\d{1,15})_(.+)_(\d{1,4})_part\.m4s$/.exec(name);
    if (match === null || match[2] !== this.track) return undefined;

    return { segment: Number(match[1]), part: Number(match[3]) };
  }
}

/** Returns true for the media playlist of a stream, whatever its track. */
export function isMediaPlaylist(name: string): boolean {
  return name.endsWith('.m3u8') && !name.endsWith('_delta.m3u8') && name !== MASTER_NAME;
}
