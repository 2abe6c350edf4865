import { createReadStream } from 'node:fs';
import { toAnnexB } from '@bloom/rtp';
import type { PictureCodec } from '../av/picture-needs.js';
import { FragmentReader } from '../mp4/fragment-reader.js';
import { OpusPackets } from '../ogg/opus-packets.js';
import { type ShownPicture, WebmReader } from '../webm/webm-reader.js';

const CHUNK_BYTES = 256 * 1024;

export interface TimedFrame {
  /** Milliseconds from the start of the mix. */
  atMs: number;
  durationMs: number;
  /** One Opus packet, or one picture as its decoder takes it. */
  data: Buffer;
}

export interface TimedPicture extends TimedFrame {
  codec: PictureCodec;
}

/** Frames of one file, read on demand. */
export class TimedFrames<Frame extends TimedFrame = TimedFrame> {
  readonly #frames: AsyncGenerator<Frame>;
  #next: Frame | undefined;
  #begun = false;

  constructor(frames: AsyncGenerator<Frame>) {
    this.#frames = frames;
  }

  /** Returns the next frame if it starts at or before `untilMs`. */
  async take(untilMs: number): Promise<Frame | undefined> {
    if (!this.#begun) await this.#read();
    const frame = this.#next;
    if (frame === undefined || frame.atMs > untilMs) return undefined;
    await this.#read();

    return frame;
  }

  /** True once all frames have been taken. */
  get finished(): boolean {
    return this.#begun && this.#next === undefined;
  }

  async #read(): Promise<void> {
    this.#begun = true;
    const { value, done } = await this.#frames.next();
    this.#next = done === true ? undefined : value;
  }
}

function chunksOf(path: string): AsyncIterable<Buffer> {
  return createReadStream(path, { highWaterMark: CHUNK_BYTES }) as AsyncIterable<Buffer>;
}

/** @throws ComponentError `BAD_OGG` */
export async function* opusOf(path: string, startMs: number): AsyncGenerator<TimedFrame> {
  const packets = new OpusPackets();
  let samples = 0;
  for await (const chunk of chunksOf(path)) {
    for (const packet of packets.push(chunk)) {
      yield { atMs: startMs + samples / 48, durationMs: packet.samples / 48, data: packet.data };
      samples += packet.samples;
    }
  }
  packets.end();
}

/** Reads the pictures of an MP4 file. @throws ComponentError `BAD_MP4` */
export async function* h264Of(path: string, startMs: number): AsyncGenerator<TimedPicture> {
  const reader = new FragmentReader();
  for await (const chunk of chunksOf(path)) {
    for (const { time, duration, nals } of reader.push(chunk)) {
      const perMs = (reader.header?.timescale ?? 90_000) / 1_000;
      yield { codec: 'h264', atMs: startMs + time / perMs, durationMs: duration / perMs, data: toAnnexB(nals) };
    }
  }
}

/** Reads the pictures of a WebM file. @throws ComponentError `BAD_WEBM` */
export async function* webmOf(path: string, startMs: number): AsyncGenerator<TimedPicture> {
  const reader = new WebmReader();
  const timed = ({ timeMs, durationMs, data }: ShownPicture): TimedPicture => {
    return { codec: reader.track!.codec, atMs: startMs + timeMs, durationMs, data };
  };
  for await (const chunk of chunksOf(path)) for (const picture of reader.push(chunk)) yield timed(picture);
  for (const picture of reader.end()) yield timed(picture);
}
