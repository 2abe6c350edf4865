import type { TappedFrame } from '@bloom/sfu';
import type { PictureSize } from '../h264/parameter-sets.js';
import { TopLayer } from '../vpx/top-layer.js';
import { vp8KeySize } from '../vpx/vp8-header.js';
import { vp9KeySize } from '../vpx/vp9-header.js';
import { cluster, Cues, type WebmCodec, webmHeader, type WebmPicture } from '../webm/webm-file.js';
import {
  CHUNK_BYTES,
  CHUNK_SECONDS,
  lastTicks,
  SHORTEST_TICKS,
  type TrackContainer,
  VIDEO_TIMESCALE,
} from './track-container.js';

const TICKS_PER_MS = VIDEO_TIMESCALE / 1_000;
/** Players seek to clusters, so a key picture begins one, unless there are many. */
const LEAST_CLUSTER_MS = 250;
const NOTHING = Buffer.alloc(0);

type Frame = Pick<TappedFrame, 'timestamp' | 'key' | 'data'>;

const KEY_SIZES: Readonly<Record<WebmCodec, (frame: Buffer) => PictureSize | undefined>> = {
  vp8: vp8KeySize,
  vp9: vp9KeySize,
};

/** VP8 or VP9 in WebM. Each picture lasts until the next one; their times are rounded to milliseconds. */
export class WebmContainer implements TrackContainer {
  readonly extension = 'webm';
  readonly clockRate = VIDEO_TIMESCALE;
  readonly #codec: WebmCodec;
  readonly #topLayer: TopLayer | undefined;
  #size: PictureSize | undefined;
  #first = 0;
  /** Timestamp of the newest picture, and its distance from the one before. */
  #last = 0;
  #before: number | undefined;
  #ticks = 0;
  #pending: WebmPicture[] = [];
  #pendingBytes = 0;
  #bytes = 0;
  readonly #cues = new Cues();
  #finalHeader: Buffer | undefined;

  constructor(codec: WebmCodec) {
    this.#codec = codec;
    if (codec === 'vp9') this.#topLayer = new TopLayer();
  }

  get length(): number {
    return this.#ticks;
  }

  /** Has the length of the file and the place of its cues, so that players can seek. */
  get finalHeader(): Buffer | undefined {
    return this.#finalHeader;
  }

  frame({ timestamp, key, data }: Frame): Buffer {
    const picture = this.#topLayer?.show(Buffer.from(data)) ?? Buffer.from(data);
    if (picture.length === 0) return NOTHING;
    if (this.#size === undefined) return this.#begin({ timestamp, key, data: picture });
    // A timing correction may put it before its predecessor, but later pictures cannot be decoded without it.
    const at = Math.max(timestamp, this.#last + SHORTEST_TICKS);
    const timeMs = Math.round((at - this.#first) / TICKS_PER_MS);
    const bytes = this.#mustFlush(timeMs, key) ? this.#flush() : NOTHING;
    this.#before = at - this.#last;
    this.#last = at;
    this.#ticks = at - this.#first;
    this.#add({ timeMs, key, data: picture });

    return bytes;
  }

  end(until?: number): Buffer {
    if (this.#size === undefined) return NOTHING;
    this.#ticks += lastTicks((until ?? 0) - this.#last, this.#before);
    const pictures = this.#flush();
    const cuesAt = this.#bytes;
    const cues = this.#cues.bytes();
    this.#bytes += cues.length;
    const end = { durationMs: this.#ticks / TICKS_PER_MS, cuesAt, bytes: this.#bytes };
    this.#finalHeader = webmHeader({ codec: this.#codec, ...this.#size }, end);

    return Buffer.concat([pictures, cues]);
  }

  #begin({ timestamp, key, data }: Frame & { data: Buffer }): Buffer {
    const size = key ? KEY_SIZES[this.#codec](data) : undefined;
    if (size === undefined) return NOTHING;
    this.#size = size;
    this.#first = timestamp;
    this.#last = timestamp;
    this.#add({ timeMs: 0, key, data });
    const header = webmHeader({ codec: this.#codec, ...size });
    this.#bytes = header.length;

    return header;
  }

  #add(picture: WebmPicture): void {
    this.#pending.push(picture);
    this.#pendingBytes += picture.data.length;
  }

  #mustFlush(timeMs: number, key: boolean): boolean {
    const waitingMs = timeMs - (this.#pending[0]?.timeMs ?? timeMs);

    return waitingMs >= (key ? LEAST_CLUSTER_MS : CHUNK_SECONDS * 1_000) || this.#pendingBytes >= CHUNK_BYTES;
  }

  #flush(): Buffer {
    const [first] = this.#pending;
    if (first === undefined) return NOTHING;
    const bytes = cluster(this.#pending);
    if (first.key) this.#cues.add(first.timeMs, this.#bytes);
    this.#bytes += bytes.length;
    this.#pending = [];
    this.#pendingBytes = 0;

    return bytes;
  }
}
