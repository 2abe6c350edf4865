import { NalType, nalType, opusSamples, splitAnnexB } from '@bloom/rtp';
import type { TappedFrame } from '@bloom/sfu';
import { pictureSize } from '../h264/parameter-sets.js';
import { OggWriter } from '../ogg/ogg-writer.js';
import { fragment, lengthPrefixed, type Mp4Sample } from '../mp4/fragment.js';
import { initSegment } from '../mp4/init-segment.js';

const VIDEO_TIMESCALE = 90_000;
/** What a file gains at once, at most; what a crash may cost. */
const CHUNK_SECONDS = 1;
/** A picture that does not change and a voice that is silent are sent this rarely: a track may end within. */
const END_SLACK_SECONDS = 2;
const LAST_PICTURE_TICKS = VIDEO_TIMESCALE / 30;
/** Of a picture whose time is over when it comes. */
const SHORTEST_TICKS = VIDEO_TIMESCALE / 1_000;
/** The field of a sample's duration: 13 hours of one picture. */
const MAX_SAMPLE_TICKS = 0xffffffff;
/** Opus silence of 20, 10, 5 and 2.5 ms, stereo CELT: an encoder's own answer to digital silence. */
const SILENCE = [
  [960, 0xfc],
  [480, 0xf4],
  [240, 0xec],
  [120, 0xe4],
] as const;

/** Frames of one track to the bytes of one file. Each call answers what to append; the file is playable at any time. */
export interface TrackContainer {
  readonly extension: 'ogg' | 'mp4';
  readonly clockRate: number;
  /** Ticks of `clockRate` in the file. */
  readonly length: number;
  frame(frame: Pick<TappedFrame, 'timestamp' | 'key' | 'data'>): Buffer;
  /** `until`: where the track ends, on the scale of the frames' timestamps; undefined = with its last frame. */
  end(until?: number): Buffer;
}

/** Opus in Ogg. What is missing (lost, not sent) is silence, so that the rest keeps its time. */
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
    // It was written already, as silence or from another packet.
    if (missing < -samples / 2) return Buffer.alloc(0);
    parts.push(this.#silence(missing), this.#writer.packet(packet, samples));

    return Buffer.concat(parts);
  }

  end(until?: number): Buffer {
    if (this.#first < 0) return Buffer.alloc(0);
    const missing = (until ?? 0) - this.#first - this.#writer.samples;
    // What does not send for longer has fallen silent before.
    const silence = missing <= END_SLACK_SECONDS * this.clockRate ? this.#silence(missing) : Buffer.alloc(0);

    return Buffer.concat([silence, this.#writer.end()]);
  }

  /** Hours of it, when somebody was muted for so long. */
  #silence(samples: number): Buffer {
    const pages: Buffer[] = [];
    let missing = samples;
    for (const [size, toc] of SILENCE) {
      for (; missing >= size; missing -= size) {
        const full = this.#writer.packet(Buffer.from([toc, 0xff, 0xfe]), size);
        if (full.length > 0) pages.push(full);
      }
    }

    return Buffer.concat(pages);
  }
}

/** H.264 in fragmented MP4. A picture lasts until the next one. */
export class H264Container implements TrackContainer {
  readonly extension = 'mp4';
  readonly clockRate = VIDEO_TIMESCALE;
  #pending: Mp4Sample[] = [];
  #pendingTicks = 0;
  #written = 0;
  #sequence = 0;
  #last: { nals: readonly Buffer[]; key: boolean; timestamp: number } | undefined;
  #begun = false;

  get length(): number {
    return this.#written + this.#pendingTicks;
  }

  frame({ timestamp, data, key }: Pick<TappedFrame, 'timestamp' | 'key' | 'data'>): Buffer {
    const nals = splitAnnexB(Buffer.from(data));
    if (nals.length === 0) return Buffer.alloc(0);
    if (!this.#begun) return this.#begin(nals, key, timestamp);
    const last = this.#last!;
    // A correction of the track's time may put it before the one before it: without it those behind cannot be decoded.
    const at = Math.max(timestamp, last.timestamp + SHORTEST_TICKS);
    this.#close(Math.min(at - last.timestamp, MAX_SAMPLE_TICKS));
    const full = this.#pendingTicks >= CHUNK_SECONDS * VIDEO_TIMESCALE ? this.#flush() : Buffer.alloc(0);
    this.#last = { nals, key, timestamp: at };

    return full;
  }

  end(until?: number): Buffer {
    if (!this.#begun) return Buffer.alloc(0);
    const shown = (until ?? 0) - this.#last!.timestamp;
    const longest = END_SLACK_SECONDS * VIDEO_TIMESCALE;
    const before = Math.min(this.#pending.at(-1)?.duration ?? LAST_PICTURE_TICKS, VIDEO_TIMESCALE);
    this.#close(shown > 0 && shown <= longest ? shown : before);

    return this.#flush();
  }

  #begin(nals: readonly Buffer[], key: boolean, timestamp: number): Buffer {
    const sps = nals.find((nal) => nalType(nal) === NalType.sps);
    const pps = nals.find((nal) => nalType(nal) === NalType.pps);
    const size = sps === undefined ? undefined : pictureSize(sps);
    if (!key || sps === undefined || pps === undefined || size === undefined) return Buffer.alloc(0);
    this.#begun = true;
    this.#last = { nals, key, timestamp };

    return initSegment([{ kind: 'video', timescale: VIDEO_TIMESCALE, sps, pps, ...size }]);
  }

  #close(ticks: number): void {
    const { nals, key } = this.#last!;
    // Parameter sets stay in: a publisher may change its picture size on the way.
    const data = lengthPrefixed(nals.filter((nal) => nalType(nal) !== NalType.aud));
    this.#pending.push({ data, key, duration: ticks });
    this.#pendingTicks += ticks;
  }

  #flush(): Buffer {
    if (this.#pending.length === 0) return Buffer.alloc(0);
    this.#sequence++;
    const bytes = fragment(this.#sequence, [{ track: 1, decodeTime: this.#written, samples: this.#pending }]);
    this.#written += this.#pendingTicks;
    this.#pending = [];
    this.#pendingTicks = 0;

    return bytes;
  }
}
