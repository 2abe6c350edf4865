import type { CodecContext, FormatContext, Frame, Packet, Stream } from 'node-av/lib';
import type { Native } from '../hls/engine/native.js';

/** Samples per AAC frame. */
export const AAC_FRAME = 1_024;
const SAMPLE_RATE = 48_000;
const AUDIO_BITRATE_BPS = 160_000;
const VIDEO_OPTIONS = { preset: 'veryfast', crf: '21' };
/** Between key frames: how far a player has to go back when it seeks. */
const KEY_SECONDS = 2;

export interface MovieFormat {
  path: string;
  width: number;
  height: number;
  framesPerSecond: number;
  hasVideo: boolean;
  hasAudio: boolean;
}

interface Output {
  context: CodecContext;
  stream: Stream;
  frame: Frame;
  pts: bigint;
  /** Ticks of the encoder's time base from frame to frame. */
  step: bigint;
}

/** H.264 and AAC to one MP4 file with its index in front, by libavformat. */
export class MovieWriter {
  readonly #native: Native;
  readonly #format: FormatContext;
  readonly #packet: Packet;
  readonly #video: Output | undefined;
  readonly #audio: Output | undefined;

  constructor(native: Native, options: MovieFormat) {
    this.#native = native;
    this.#format = new native.lib.FormatContext();
    check(this.#format.allocOutputContext2(null, 'mp4', options.path), 'the MP4 writer does not begin');
    this.#packet = new native.lib.Packet();
    this.#packet.alloc();
    if (options.hasVideo) this.#video = this.#openVideo(options);
    if (options.hasAudio) this.#audio = this.#openAudio();
    check(this.#format.openOutputSync(), `${options.path} cannot be written`);
    // Never as a dictionary: the library frees that twice.
    this.#format.setOption('movflags', '+faststart');
    check(this.#format.writeHeaderSync(), 'the header of the MP4 file cannot be written');
  }

  /** The whole picture, 4:2:0 without gaps. */
  picture(canvas: Buffer): void {
    const output = this.#video!;
    output.frame.makeWritable();
    output.frame.fromBuffer(canvas);
    output.frame.pts = output.pts;
    output.pts += output.step;
    this.#encode(output, output.frame);
  }

  /** `AAC_FRAME` samples of each side, -1..1. */
  sound(left: Float32Array, right: Float32Array): void {
    const output = this.#audio!;
    output.frame.makeWritable();
    for (const [i, samples] of [left, right].entries()) {
      const plane = output.frame.data![i]!;
      new Float32Array(plane.buffer, plane.byteOffset, AAC_FRAME).set(samples);
    }
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
      // Encoders leave it out, and the last frame would have none.
      this.#packet.duration = step;
      this.#packet.rescaleTs(context.timeBase, stream.timeBase);
      check(this.#format.interleavedWriteFrameSync(this.#packet), 'the MP4 file cannot be written');
    }
  }

  #openVideo({ width, height, framesPerSecond }: MovieFormat): Output {
    const { lib, constants } = this.#native;
    const codec = lib.Codec.findEncoderByName(constants.FF_ENCODER_LIBX264);
    const context = new lib.CodecContext();
    context.allocContext3(codec);
    context.width = width;
    context.height = height;
    context.pixelFormat = constants.AV_PIX_FMT_YUV420P;
    context.timeBase = new lib.Rational(1, framesPerSecond);
    context.framerate = new lib.Rational(framesPerSecond, 1);
    context.gopSize = framesPerSecond * KEY_SECONDS;
    for (const [name, value] of Object.entries(VIDEO_OPTIONS)) {
      check(context.setOption(name, value), `the H.264 encoder does not take ${name}=${value}`);
    }
    const frame = new lib.Frame();
    frame.alloc();
    frame.format = constants.AV_PIX_FMT_YUV420P;
    frame.width = width;
    frame.height = height;
    check(frame.getBuffer(1), 'no memory for the canvas');

    return this.#open(context, codec, frame, 1n);
  }

  #openAudio(): Output {
    const { lib, constants } = this.#native;
    const codec = lib.Codec.findEncoderByName(constants.FF_ENCODER_AAC);
    const context = new lib.CodecContext();
    context.allocContext3(codec);
    context.sampleRate = SAMPLE_RATE;
    context.sampleFormat = constants.AV_SAMPLE_FMT_FLTP;
    context.channelLayout = constants.AV_CHANNEL_LAYOUT_STEREO;
    context.timeBase = new lib.Rational(1, SAMPLE_RATE);
    context.bitRate = BigInt(AUDIO_BITRATE_BPS);
    const frame = new lib.Frame();
    frame.alloc();
    frame.format = constants.AV_SAMPLE_FMT_FLTP;
    frame.nbSamples = AAC_FRAME;
    frame.sampleRate = SAMPLE_RATE;
    frame.channelLayout = constants.AV_CHANNEL_LAYOUT_STEREO;
    check(frame.getBuffer(0), 'no memory for the sound');

    return this.#open(context, codec, frame, BigInt(AAC_FRAME));
  }

  #open(context: CodecContext, codec: Parameters<CodecContext['open2Sync']>[0], frame: Frame, step: bigint): Output {
    const { constants } = this.#native;
    context.setFlags(constants.AV_CODEC_FLAG_GLOBAL_HEADER);
    check(context.open2Sync(codec, null), 'an encoder does not open');
    const stream = this.#format.newStream(codec);
    check(stream.codecpar.fromContext(context), 'an encoder does not say what it makes');
    stream.timeBase = context.timeBase;

    return { context, stream, frame, pts: 0n, step };
  }
}

function check(code: number, what: string): void {
  if (code < 0) throw new Error(`${what} (error ${code} of the library)`);
}
