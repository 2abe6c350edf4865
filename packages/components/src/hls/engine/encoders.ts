import type { CodecContext, Frame, Packet } from 'node-av/lib';
import { AAC_FRAME, aacEncoder, check, fillStereo, h264Encoder } from '../../av/codecs.js';
import type { Native } from '../../av/native.js';
import { ComponentError } from '../../errors.js';
import { HLS_PROFILE } from '../profile.js';

const ENCODER_OPTIONS = {
  preset: 'superfast',
  tune: 'zerolatency',
  'forced-idr': '1',
  // Place key frames only where segments start.
  'x264-params': 'scenecut=0:keyint=infinite',
};

export interface EncodedPicture {
  /** Annex B. */
  data: Buffer;
  key: boolean;
}

/** A stream's only video encoder, which never restarts. Returns one picture for each picture it takes. */
export class VideoEncoder {
  readonly #native: Native;
  readonly #context: CodecContext;
  readonly #frame: Frame;
  readonly #packet: Packet;
  #pts = 0n;

  constructor(native: Native) {
    this.#native = native;
    const { videoBitrateBps } = HLS_PROFILE;
    const { codec, context, frame } = h264Encoder(native, HLS_PROFILE, ENCODER_OPTIONS);
    context.maxBFrames = 0;
    context.threadCount = 1;
    context.bitRate = BigInt(videoBitrateBps);
    context.rcMaxRate = BigInt(Math.round(videoBitrateBps * 1.2));
    context.rcBufferSize = videoBitrateBps;
    check(context.open2Sync(codec, null), 'the H.264 encoder cannot be opened');
    this.#context = context;
    this.#frame = frame;
    this.#packet = new native.lib.Packet();
    this.#packet.alloc();
  }

  encode(canvas: Buffer, key: boolean): EncodedPicture {
    const { constants } = this.#native;
    this.#frame.makeWritable();
    this.#frame.fromBuffer(canvas);
    this.#frame.pts = this.#pts++;
    this.#frame.pictType = key ? constants.AV_PICTURE_TYPE_I : constants.AV_PICTURE_TYPE_NONE;
    check(this.#context.sendFrameSync(this.#frame), 'the H.264 encoder refused a picture');
    check(this.#context.receivePacketSync(this.#packet), 'the H.264 encoder returned no picture');
    const { data, isKeyframe } = this.#packet;
    if (data === null) throw new ComponentError('NATIVE_FAILED', 'the H.264 encoder returned an empty picture');
    const picture = { data: Buffer.from(data), key: isKeyframe };
    this.#packet.unref();

    return picture;
  }
}

/** A stream's only audio encoder. */
export class AudioEncoder {
  /** AudioSpecificConfig */
  readonly config: Buffer;
  readonly #context: CodecContext;
  readonly #frame: Frame;
  readonly #packet: Packet;
  #pts = 0n;

  constructor(native: Native) {
    const { codec, context, frame } = aacEncoder(native, HLS_PROFILE.audioBitrateBps);
    check(context.open2Sync(codec, null), 'the AAC encoder cannot be opened');
    const { extraData } = context;
    if (extraData === null) throw new ComponentError('NATIVE_FAILED', 'the AAC encoder has no configuration');
    // AAC-LC needs two bytes; the rest are hints for newer decoders.
    this.config = Buffer.from(extraData.subarray(0, 2));
    this.#context = context;
    this.#frame = frame;
    this.#packet = new native.lib.Packet();
    this.#packet.alloc();
  }

  /** Takes 1,024 samples per channel. Returns the frames of earlier samples, none at first. */
  encode(left: Float32Array, right: Float32Array): Buffer[] {
    fillStereo(this.#frame, left, right);
    this.#frame.pts = this.#pts;
    this.#pts += BigInt(AAC_FRAME);
    const frames: Buffer[] = [];
    check(this.#context.sendFrameSync(this.#frame), 'the AAC encoder refused a frame');
    while (this.#context.receivePacketSync(this.#packet) >= 0) {
      // Frames before time 0 prime the decoder; viewers of a live stream do not need them.
      if (this.#packet.pts >= 0n && this.#packet.data !== null) frames.push(Buffer.from(this.#packet.data));
      this.#packet.unref();
    }

    return frames;
  }
}
