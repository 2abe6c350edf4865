import type { CodecContext, Frame, Packet } from 'node-av/lib';
import { HLS_PROFILE } from '../profile.js';
import type { Native } from './native.js';

/** Samples per AAC frame. */
export const AAC_FRAME = 1_024;

const ENCODER_OPTIONS = {
  preset: 'superfast',
  tune: 'zerolatency',
  'forced-idr': '1',
  // Key frames come where segments begin, and nowhere else.
  'x264-params': 'scenecut=0:keyint=infinite',
};

export interface EncodedPicture {
  /** Annex B. */
  data: Buffer;
  key: boolean;
}

/** The one video encoder of a stream; it never restarts. One picture in, one out. */
export class VideoEncoder {
  private readonly context: CodecContext;
  private readonly frame: Frame;
  private readonly packet: Packet;
  private pts = 0n;

  constructor(private readonly native: Native) {
    const { lib, constants } = native;
    const { width, height, framesPerSecond, videoBitrateBps } = HLS_PROFILE;
    const codec = lib.Codec.findEncoderByName(constants.FF_ENCODER_LIBX264);
    const context = new lib.CodecContext();
    context.allocContext3(codec);
    context.width = width;
    context.height = height;
    context.pixelFormat = constants.AV_PIX_FMT_YUV420P;
    context.timeBase = new lib.Rational(1, framesPerSecond);
    context.framerate = new lib.Rational(framesPerSecond, 1);
    context.maxBFrames = 0;
    context.threadCount = 1;
    context.bitRate = BigInt(videoBitrateBps);
    context.rcMaxRate = BigInt(Math.round(videoBitrateBps * 1.2));
    context.rcBufferSize = videoBitrateBps;
    // Never as a dictionary to `open2`: the library frees that twice.
    for (const [name, value] of Object.entries(ENCODER_OPTIONS)) {
      const set = context.setOption(name, value);
      if (set < 0) throw new Error(`the H.264 encoder does not take ${name}=${value}: ${set}`);
    }
    const opened = context.open2Sync(codec, null);
    if (opened < 0) throw new Error(`the H.264 encoder does not open: ${opened}`);
    this.context = context;
    this.packet = new lib.Packet();
    this.packet.alloc();
    this.frame = new lib.Frame();
    this.frame.alloc();
    this.frame.format = constants.AV_PIX_FMT_YUV420P;
    this.frame.width = width;
    this.frame.height = height;
    if (this.frame.getBuffer(1) < 0) throw new Error('no memory for the canvas');
  }

  encode(canvas: Buffer, key: boolean): EncodedPicture {
    const { constants } = this.native;
    this.frame.makeWritable();
    this.frame.fromBuffer(canvas);
    this.frame.pts = this.pts++;
    this.frame.pictType = key ? constants.AV_PICTURE_TYPE_I : constants.AV_PICTURE_TYPE_NONE;
    const sent = this.context.sendFrameSync(this.frame);
    const received = sent < 0 ? sent : this.context.receivePacketSync(this.packet);
    const { data } = this.packet;
    if (received < 0 || data === null) throw new Error(`the H.264 encoder gave no picture: ${received}`);
    const picture = { data: Buffer.from(data), key: this.packet.isKeyframe };
    this.packet.unref();

    return picture;
  }
}

/** The one audio encoder of a stream. */
export class AudioEncoder {
  /** AudioSpecificConfig */
  readonly config: Buffer;
  private readonly context: CodecContext;
  private readonly frame: Frame;
  private readonly packet: Packet;
  private pts = 0n;

  constructor({ lib, constants }: Native) {
    const codec = lib.Codec.findEncoderByName(constants.FF_ENCODER_AAC);
    const context = new lib.CodecContext();
    context.allocContext3(codec);
    context.sampleRate = HLS_PROFILE.sampleRate;
    context.sampleFormat = constants.AV_SAMPLE_FMT_FLTP;
    context.channelLayout = constants.AV_CHANNEL_LAYOUT_STEREO;
    context.timeBase = new lib.Rational(1, HLS_PROFILE.sampleRate);
    context.bitRate = BigInt(HLS_PROFILE.audioBitrateBps);
    context.setFlags(constants.AV_CODEC_FLAG_GLOBAL_HEADER);
    const opened = context.open2Sync(codec, null);
    const { extraData } = context;
    if (opened < 0 || extraData === null) throw new Error(`the AAC encoder does not open: ${opened}`);
    this.context = context;
    // What follows the two bytes of AAC-LC is a hint for decoders that know more.
    this.config = Buffer.from(extraData.subarray(0, 2));
    this.packet = new lib.Packet();
    this.packet.alloc();
    this.frame = new lib.Frame();
    this.frame.alloc();
    this.frame.format = constants.AV_SAMPLE_FMT_FLTP;
    this.frame.nbSamples = AAC_FRAME;
    this.frame.sampleRate = HLS_PROFILE.sampleRate;
    this.frame.channelLayout = constants.AV_CHANNEL_LAYOUT_STEREO;
    if (this.frame.getBuffer(0) < 0) throw new Error('no memory for the sound');
  }

  /** Takes 1,024 samples of each side; gives the frames of the samples before them, none at first. */
  encode(left: Float32Array, right: Float32Array): Buffer[] {
    this.frame.makeWritable();
    const planes = this.frame.data!;
    for (const [i, samples] of [left, right].entries()) {
      const plane = planes[i]!;
      new Float32Array(plane.buffer, plane.byteOffset, AAC_FRAME).set(samples);
    }
    this.frame.pts = this.pts;
    this.pts += BigInt(AAC_FRAME);
    const frames: Buffer[] = [];
    if (this.context.sendFrameSync(this.frame) < 0) throw new Error('the AAC encoder takes no sound');
    while (this.context.receivePacketSync(this.packet) >= 0) {
      // What comes before time 0 primes the decoder; a stream that is joined anywhere has no use for it.
      if (this.packet.pts >= 0n && this.packet.data !== null) frames.push(Buffer.from(this.packet.data));
      this.packet.unref();
    }

    return frames;
  }
}
