import { NalType, nalType, opusSamples, splitAnnexB } from '@bloom/rtp';
import type { TappedFrame } from '@bloom/sfu';
import { pictureSize } from '../h264/parameter-sets.js';
import { OggWriter } from '../ogg/ogg-writer.js';
import { fragment, lengthPrefixed, type Mp4Sample } from '../mp4/fragment.js';
import { initSegment, type Mp4VideoTrack } from '../mp4/init-segment.js';

export const VIDEO_TIMESCALE = 90_000;
/** Maximum duration written at once, which is how much a crash may cost. */
export const CHUNK_SECONDS = 1;
/** Maximum number of bytes written at once: a publisher's timestamps may stand still while its pictures keep coming. */
export const CHUNK_BYTES = 2 * 1024 * 1024;
/** Still pictures and silence are sent this rarely, so a track may last that much longer than its last frame. */
const END_SLACK_SECONDS = 2;
const LAST_PICTURE_TICKS = VIDEO_TIMESCALE / 30;
/** Duration of a picture followed by a late one. */
export const SHORTEST_TICKS = VIDEO_TIMESCALE / 1_000;
/** Maximum of a parameter set's length field in the header. */
const MAX_PARAMETER_SET_BYTES = 0xffff;
/** Maximum of a sample's duration field: 13 hours of one picture. */
const MAX_SAMPLE_TICKS = 0xffffffff;
/**
 * Opus silence of 120, 20, 10, 5 and 2.5 ms in stereo CELT, as encoders produce it for digital silence. The longest,
 * six frames in one packet (RFC 6716, 3.2.5), keeps hours of silence cheap.
 */
const SILENCE = [
  [5_760, Buffer.from(`ff06${'fffe'.repeat(6)}`, 'hex')],
  [960, Buffer.from('fcfffe', 'hex')],
  [480, Buffer.from('f4fffe', 'hex')],
  [240, Buffer.from('ecfffe', 'hex')],
  [120, Buffer.from('e4fffe', 'hex')],
] as const;

/**
 * Turns one track's frames into the bytes of one file. Each call returns the bytes to append; the file is playable at
 * any time.
 */
export interface TrackContainer {
  readonly extension: 'ogg' | 'mp4' | 'webm';
  readonly clockRate: number;
  /** Ticks of `clockRate` in the file. */
  readonly length: number;
  /** Bytes that replace the start of the file before the result of `frame` or `end` is appended. */
  readonly header?: Buffer | undefined;
  /** Bytes that replace the start of the file after the result of `end` was appended. */
  readonly finalHeader?: Buffer | undefined;
  frame(frame: Pick<TappedFrame, 'timestamp' | 'key' | 'data'>): Buffer;
  /** `until` is the end of the track on the scale of the frames' timestamps; by default it ends with its last frame. */
  end(until?: number): Buffer;
}

/** Opus in Ogg. Lost or unsent packets become silence, so that later packets keep their time. */
export class OpusContainer implements TrackContainer {
  readonly extension = 'ogg';
  readonly clockRate = 48_000;
  readonly #writer: OggWriter;
  #first = -1;

  constructor(serial: number) {
    this.#writer = new OggWriter({ serial, channels: 2, pageSamples: CHUNK_SECONDS * 48_000 });
  }

  get length(): number {
    return this.#writer.samples;
  }

  frame({ timestamp, data }: Pick<TappedFrame, 'timestamp' | 'data'>): Buffer {
    const packet = Buffer.from(data);
    const samples = opusSamples(packet);
    if (samples === undefined) return Buffer.alloc(0);
    const parts: Buffer[] = [];
    if (this.#first < 0) {
      this.#first = timestamp;
      parts.push(this.#writer.begin());
    }
    const missing = timestamp - this.#first - this.#writer.samples;
    // Its time has already been written, as silence or by another packet.
    if (missing < -samples / 2) return Buffer.alloc(0);
    parts.push(this.#silence(missing), this.#writer.packet(packet, samples));

    return Buffer.concat(parts);
  }

  end(until?: number): Buffer {
    if (this.#first < 0) return Buffer.alloc(0);
    const missing = (until ?? 0) - this.#first - this.#writer.samples;
    // A publisher that has not sent for longer fell silent before its end.
    const silence = missing <= END_SLACK_SECONDS * this.clockRate ? this.#silence(missing) : Buffer.alloc(0);

    return Buffer.concat([silence, this.#writer.end()]);
  }

  /** May have to write hours for a publisher that was muted. */
  #silence(samples: number): Buffer {
    const pages: Buffer[] = [];
    let missing = samples;
    for (const [size, packet] of SILENCE) {
      for (; missing >= size; missing -= size) {
        const full = this.#writer.packet(packet, size);
        if (full.length > 0) pages.push(full);
      }
    }

    return Buffer.concat(pages);
  }
}

/** H.264 in fragmented MP4. Each picture lasts until the next one. */
export class H264Container implements TrackContainer {
  readonly extension = 'mp4';
  readonly clockRate = VIDEO_TIMESCALE;
  #pending: Mp4Sample[] = [];
  #pendingTicks = 0;
  #pendingBytes = 0;
  #written = 0;
  #sequence = 0;
  #last: { nals: readonly Buffer[]; key: boolean; timestamp: number } | undefined;
  #track: Mp4VideoTrack | undefined;
  #header: Buffer | undefined;

  /**
   * The sample entry changes with the first picture whose parameter sets differ from those at the start of the file.
   */
  get header(): Buffer | undefined {
    return this.#header;
  }

  get length(): number {
    return this.#written + this.#pendingTicks;
  }

  frame({ timestamp, data, key }: Pick<TappedFrame, 'timestamp' | 'key' | 'data'>): Buffer {
    const nals = splitAnnexB(Buffer.from(data));
    if (nals.length === 0) return Buffer.alloc(0);
    if (this.#track === undefined) return this.#begin(nals, key, timestamp);
    const isOpen = this.#track.hasOtherSets !== true && this.#header === undefined;
    if (isOpen && nals.some((nal) => isOtherSet(nal, this.#track!))) {
      this.#header = initSegment([{ ...this.#track, hasOtherSets: true }]);
    }
    const last = this.#last!;
    // A timing correction may put it before its predecessor, but later pictures cannot be decoded without it.
    const at = Math.max(timestamp, last.timestamp + SHORTEST_TICKS);
    this.#close(Math.min(at - last.timestamp, MAX_SAMPLE_TICKS));
    this.#last = { nals, key, timestamp: at };
    const isFull = this.#pendingTicks >= CHUNK_SECONDS * VIDEO_TIMESCALE || this.#pendingBytes >= CHUNK_BYTES;

    return isFull ? this.#flush() : Buffer.alloc(0);
  }

  end(until?: number): Buffer {
    if (this.#track === undefined) return Buffer.alloc(0);
    this.#close(lastTicks((until ?? 0) - this.#last!.timestamp, this.#pending.at(-1)?.duration));

    return this.#flush();
  }

  #begin(nals: readonly Buffer[], key: boolean, timestamp: number): Buffer {
    const sps = nals.find((nal) => nalType(nal) === NalType.sps);
    const pps = nals.find((nal) => nalType(nal) === NalType.pps);
    const size = sps === undefined ? undefined : pictureSize(sps);
    if (!key || sps === undefined || pps === undefined || size === undefined) return Buffer.alloc(0);
    if (Math.max(sps.length, pps.length) > MAX_PARAMETER_SET_BYTES) return Buffer.alloc(0);
    const track: Mp4VideoTrack = { kind: 'video', timescale: VIDEO_TIMESCALE, sps, pps, ...size };
    this.#track = { ...track, hasOtherSets: nals.some((nal) => isOtherSet(nal, track)) };
    this.#last = { nals, key, timestamp };

    return initSegment([this.#track]);
  }

  #close(ticks: number): void {
    const { nals, key } = this.#last!;
    // Keep parameter sets: a publisher may change its picture size.
    const data = lengthPrefixed(nals.filter((nal) => nalType(nal) !== NalType.aud));
    this.#pending.push({ data, key, duration: ticks });
    this.#pendingTicks += ticks;
    this.#pendingBytes += data.length;
  }

  #flush(): Buffer {
    if (this.#pending.length === 0) return Buffer.alloc(0);
    this.#sequence++;
    const bytes = fragment(this.#sequence, [{ track: 1, decodeTime: this.#written, samples: this.#pending }]);
    this.#written += this.#pendingTicks;
    this.#pending = [];
    this.#pendingTicks = 0;
    this.#pendingBytes = 0;

    return bytes;
  }
}

/**
 * Returns the ticks of the last picture. `shown` is the time to the end of its track, `before` the length of the
 * picture before it.
 */
export function lastTicks(shown: number, before = LAST_PICTURE_TICKS): number {
  const isEnd = shown > 0 && shown <= END_SLACK_SECONDS * VIDEO_TIMESCALE;

  return isEnd ? shown : Math.min(before, VIDEO_TIMESCALE);
}

function isOtherSet(nal: Buffer, { sps, pps }: Mp4VideoTrack): boolean {
  const type = nalType(nal);

  return (type === NalType.sps && !nal.equals(sps)) || (type === NalType.pps && !nal.equals(pps));
}
