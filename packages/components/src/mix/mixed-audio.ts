import type { CodecContext, Frame, Packet } from 'node-av/lib';
import type { Native } from '../hls/engine/native.js';
import { PcmQueue } from './pcm-queue.js';
import { opusOf, TimedFrames } from './timed-frames.js';

const SAMPLES_PER_MS = 48;

/** One recorded Opus file, decoded as the mix goes on. */
export class MixedAudio {
  readonly #frames: TimedFrames;
  readonly #queue = new PcmQueue();
  readonly #decoder: CodecContext;
  readonly #packet: Packet;
  readonly #frame: Frame;

  constructor({ lib, constants }: Native, path: string, startMs: number) {
    this.#frames = new TimedFrames(opusOf(path, startMs));
    const codec = lib.Codec.findDecoderByName(constants.FF_DECODER_LIBOPUS);
    this.#decoder = new lib.CodecContext();
    this.#decoder.allocContext3(codec);
    this.#decoder.sampleRate = SAMPLES_PER_MS * 1_000;
    this.#decoder.channelLayout = constants.AV_CHANNEL_LAYOUT_STEREO;
    this.#decoder.threadCount = 1;
    const opened = this.#decoder.open2Sync(codec, null);
    if (opened < 0 || this.#decoder.sampleFormat !== constants.AV_SAMPLE_FMT_S16) {
      throw new Error(`the Opus decoder does not open as needed: ${opened}`);
    }
    this.#packet = new lib.Packet();
    this.#packet.alloc();
    this.#frame = new lib.Frame();
    this.#frame.alloc();
  }

  /** Adds the samples from `position` on to both sides. */
  async addTo(left: Float32Array, right: Float32Array, position: number): Promise<void> {
    const untilMs = (position + left.length) / SAMPLES_PER_MS;
    for (let frame = await this.#frames.take(untilMs); frame !== undefined; frame = await this.#frames.take(untilMs)) {
      this.#decode(frame.data, Math.round(frame.atMs * SAMPLES_PER_MS));
    }
    this.#queue.addTo(left, right, position);
  }

  /** Nothing is left at `position` or after it. */
  finishedAt(position: number): boolean {
    return this.#frames.finished && this.#queue.end <= position;
  }

  /** A packet that does not decode is silence. */
  #decode(data: Buffer, at: number): void {
    this.#packet.data = data;
    const sent = this.#decoder.sendPacketSync(this.#packet);
    this.#packet.unref();
    if (sent < 0) return;
    let position = at;
    while (this.#decoder.receiveFrameSync(this.#frame) >= 0) {
      const { nbSamples } = this.#frame;
      const plane = this.#frame.data?.[0];
      if (plane === undefined) continue;
      // The library's memory is used again for the next frame.
      this.#queue.push(position, new Int16Array(plane.buffer, plane.byteOffset, nbSamples * 2).slice());
      position += nbSamples;
    }
  }
}
