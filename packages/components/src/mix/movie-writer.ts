import type { CodecContext, FormatContext, Frame, Packet, Stream } from 'node-av/lib';
import { AAC_FRAME, aacEncoder, check, type Encoder, fillStereo, h264Encoder, type VideoFormat } from '../av/codecs.js';
import type { Native } from '../av/native.js';

const AUDIO_BITRATE_BPS = 160_000;
const VIDEO_OPTIONS = { preset: 'veryfast', crf: '21' };
/** Seconds between key frames, and so the furthest a player must go back when seeking. */
const KEY_SECONDS = 2;

export interface MovieFormat extends VideoFormat {
  path: string;
  hasVideo: boolean;
  hasAudio: boolean;
}

interface Output {
  context: CodecContext;
  stream: Stream;
  frame: Frame;
  pts: bigint;
  /** Ticks of the encoder's time base per frame. */
  step: bigint;
}

/** Writes H.264 and AAC to one MP4 file with libavformat, with the index at the front. */
export class MovieWriter {
  readonly #native: Native;
  readonly #format: FormatContext;
  readonly #packet: Packet;
  readonly #video: Output | undefined;
  readonly #audio: Output | undefined;

  constructor(native: Native, options: MovieFormat) {
    this.#native = native;
    this.#format = new native.lib.FormatContext();
    check(this.#format.allocOutputContext2(null, 'mp4', options.path), 'the MP4 writer cannot be started');
    this.#packet = new native.lib.Packet();
    this.#packet.alloc();
    if (options.hasVideo) this.#video = this.#openVideo(options);
    if (options.hasAudio) this.#audio = this.#openAudio();
    check(this.#format.openOutputSync(), `${options.path} cannot be written`);
    // Not as a dictionary: the library frees it twice.
    this.#format.setOption('movflags', '+faststart');
    check(this.#format.writeHeaderSync(), 'the header of the MP4 file cannot be written');
  }

  /** Writes a whole 4:2:0 picture without gaps. */
  picture(canvas: Buffer): void {
    const output = this.#video!;
    output.frame.makeWritable();
    output.frame.fromBuffer(canvas);
    output.frame.pts = output.pts;
    output.pts += output.step;
    this.#encode(output, output.frame);
  }

  /** Writes `AAC_FRAME` samples per channel, -1..1. */
  sound(left: Float32Array, right: Float32Array): void {
    const output = this.#audio!;
    fillStereo(output.frame, left, right);
    output.frame.pts = output.pts;
    output.pts += output.step;
    this.#encode(output, output.frame);
  }

  finish(): void {
    for (const output of [this.#video, this.#audio]) if (output !== undefined) this.#encode(output, null);
    check(this.#format.writeTrailerSync(), 'the MP4 file cannot be completed');
    this.#format.closeOutputSync();
  }

  #encode({ context, stream, step }: Output, frame: Frame | null): void {
    check(context.sendFrameSync(frame), 'an encoder takes nothing');
    while (context.receivePacketSync(this.#packet) >= 0) {
      this.#packet.streamIndex = stream.index;
      // Encoders do not set it, which would leave the last frame without a duration.
      this.#packet.duration = step;
      this.#packet.rescaleTs(context.timeBase, stream.timeBase);
      check(this.#format.interleavedWriteFrameSync(this.#packet), 'the MP4 file cannot be written');
    }
  }

  #openVideo(format: MovieFormat): Output {
    const encoder = h264Encoder(this.#native, format, VIDEO_OPTIONS);
    encoder.context.gopSize = format.framesPerSecond * KEY_SECONDS;
    encoder.context.setFlags(this.#native.constants.AV_CODEC_FLAG_GLOBAL_HEADER);

    return this.#open(encoder, 1n);
  }

  #openAudio(): Output {
    return this.#open(aacEncoder(this.#native, AUDIO_BITRATE_BPS), BigInt(AAC_FRAME));
  }

  #open({ codec, context, frame }: Encoder, step: bigint): Output {
    check(context.open2Sync(codec, null), 'an encoder cannot be opened');
    const stream = this.#format.newStream(codec);
    check(stream.codecpar.fromContext(context), 'an encoder does not report its output format');
    stream.timeBase = context.timeBase;

    return { context, stream, frame, pts: 0n, step };
  }
}
