/** Opens the codecs shared by streams and mixes. Every function throws ComponentError `NATIVE_FAILED`. */
import type { Codec, CodecContext, Frame } from 'node-av/lib';
import { ComponentError } from '../errors.js';
import type { Native } from './native.js';
import { MAX_PIXELS, type PictureCodec } from './picture-needs.js';

/** Samples per AAC frame. */
export const AAC_FRAME = 1_024;
export const SAMPLE_RATE = 48_000;
/** A configured encoder that is not open yet, with the frame to fill for it. */
export interface Encoder {
  codec: Codec | null;
  context: CodecContext;
  frame: Frame;
}

const DECODERS = { vp8: 'FF_DECODER_VP8', vp9: 'FF_DECODER_VP9', h264: 'FF_DECODER_H264' } as const;

export interface VideoFormat {
  width: number;
  height: number;
  framesPerSecond: number;
}

/** @throws ComponentError `NATIVE_FAILED` when the library returns an error */
export function check(code: number, failure: string): void {
  if (code < 0) throw new ComponentError('NATIVE_FAILED', `${failure} (error ${code} of the library)`);
}

/** Opens a decoder that returns each picture as early as possible. Returns undefined if the library has none. */
export function openVideoDecoder({ lib, constants }: Native, name: PictureCodec): CodecContext | undefined {
  const codec = lib.Codec.findDecoderByName(constants[DECODERS[name]]);
  if (codec === null) return undefined;
  const decoder = new lib.CodecContext();
  decoder.allocContext3(codec);
  decoder.threadCount = 1;
  decoder.setFlags(constants.AV_CODEC_FLAG_LOW_DELAY);
  // Callers check picture sizes first; this limit holds even where the library reads a parameter set differently.
  check(decoder.setOption('max_pixels', String(MAX_PIXELS)), `the decoder of ${name} does not accept limits`);
  check(decoder.open2Sync(codec, null), `the decoder of ${name} cannot be opened`);

  return decoder;
}

/** Opens an Opus decoder for interleaved stereo at 48 kHz. */
export function openOpusDecoder({ lib, constants }: Native): CodecContext {
  const codec = lib.Codec.findDecoderByName(constants.FF_DECODER_LIBOPUS);
  const decoder = new lib.CodecContext();
  decoder.allocContext3(codec);
  decoder.sampleRate = SAMPLE_RATE;
  decoder.channelLayout = constants.AV_CHANNEL_LAYOUT_STEREO;
  decoder.threadCount = 1;
  check(decoder.open2Sync(codec, null), 'the Opus decoder cannot be opened');
  if (decoder.sampleFormat !== constants.AV_SAMPLE_FMT_S16) {
    throw new ComponentError('NATIVE_FAILED', `the Opus decoder has the sample format ${decoder.sampleFormat}`);
  }

  return decoder;
}

/** Prepares x264 for 4:2:0 pictures. The caller sets any further options and opens the encoder. */
export function h264Encoder(native: Native, format: VideoFormat, options: Readonly<Record<string, string>>): Encoder {
  const { lib, constants } = native;
  const { width, height, framesPerSecond } = format;
  const codec = lib.Codec.findEncoderByName(constants.FF_ENCODER_LIBX264);
  const context = new lib.CodecContext();
  context.allocContext3(codec);
  context.width = width;
  context.height = height;
  context.pixelFormat = constants.AV_PIX_FMT_YUV420P;
  context.timeBase = new lib.Rational(1, framesPerSecond);
  context.framerate = new lib.Rational(framesPerSecond, 1);
  // Not as a dictionary to `open2`: the library frees it twice.
  for (const [name, value] of Object.entries(options)) {
    check(context.setOption(name, value), `the H.264 encoder does not take ${name}=${value}`);
  }
  const frame = new lib.Frame();
  frame.alloc();
  frame.format = constants.AV_PIX_FMT_YUV420P;
  frame.width = width;
  frame.height = height;
  check(frame.getBuffer(1), 'out of memory for the canvas');

  return { codec, context, frame };
}

/** Prepares AAC-LC for stereo at 48 kHz; the caller opens it. */
export function aacEncoder({ lib, constants }: Native, bitrateBps: number): Encoder {
  const codec = lib.Codec.findEncoderByName(constants.FF_ENCODER_AAC);
  const context = new lib.CodecContext();
  context.allocContext3(codec);
  context.sampleRate = SAMPLE_RATE;
  context.sampleFormat = constants.AV_SAMPLE_FMT_FLTP;
  context.channelLayout = constants.AV_CHANNEL_LAYOUT_STEREO;
  context.timeBase = new lib.Rational(1, SAMPLE_RATE);
  context.bitRate = BigInt(bitrateBps);
  context.setFlags(constants.AV_CODEC_FLAG_GLOBAL_HEADER);
  const frame = new lib.Frame();
  frame.alloc();
  frame.format = constants.AV_SAMPLE_FMT_FLTP;
  frame.nbSamples = AAC_FRAME;
  frame.sampleRate = SAMPLE_RATE;
  frame.channelLayout = constants.AV_CHANNEL_LAYOUT_STEREO;
  check(frame.getBuffer(0), 'out of memory for the audio');

  return { codec, context, frame };
}

/** Copies `AAC_FRAME` samples per channel into the frame of an AAC encoder. */
export function fillStereo(frame: Frame, left: Float32Array, right: Float32Array): void {
  frame.makeWritable();
  for (const [i, samples] of [left, right].entries()) {
    const plane = frame.data![i]!;
    new Float32Array(plane.buffer, plane.byteOffset, AAC_FRAME).set(samples);
  }
}
