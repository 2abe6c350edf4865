import type { CodecContext, CodecParameters, Frame, Packet, SoftwareResampleContext } from 'node-av/lib';
import { check, SAMPLE_RATE } from '../../av/codecs.js';
import type { Native } from '../../av/native.js';
import { ComponentError } from '../../errors.js';

/** Samples per channel in an Opus packet: 20 ms. */
const OPUS_FRAME = 960;
const SAMPLES_PER_MS = SAMPLE_RATE / 1_000;
/** Sound further than this from its expected place follows a gap, or its clock has been set. */
const TOLERANCE_MS = 50;
const BITRATE_PER_CHANNEL = 32_000;

/** Takes an Opus packet and its capture time in ms; undefined until the source has sent a time. */
export type TakeOpus = (data: Buffer, ptsMs: number | undefined) => void;

/** Converts a source's sound to Opus: mono stays mono, more channels become stereo. */
export class OpusSound {
  readonly #native: Native;
  readonly #decoder: CodecContext;
  readonly #decoded: Frame;
  readonly #resampled: Frame;
  readonly #packet: Packet;
  #resampler: { format: string; context: SoftwareResampleContext } | undefined;
  #encoder: OpusEncoder | undefined;
  /** Interleaved samples waiting to fill a packet. */
  #rest = new Int16Array(0);
  /** Capture time of the first of those samples. */
  #restMs: number | undefined;

  /**
   * Opens the decoder.
   * @throws ComponentError `NATIVE_FAILED`, naming the codec, when it cannot be converted
   */
  static open(native: Native, parameters: CodecParameters): OpusSound {
    const { lib, constants } = native;
    const convertible = [
      constants.AV_CODEC_ID_AAC,
      constants.AV_CODEC_ID_AAC_LATM,
      constants.AV_CODEC_ID_MP2,
      constants.AV_CODEC_ID_MP3,
      constants.AV_CODEC_ID_PCM_MULAW,
      constants.AV_CODEC_ID_PCM_ALAW,
      constants.AV_CODEC_ID_PCM_S16BE,
      constants.AV_CODEC_ID_ADPCM_G722,
      constants.AV_CODEC_ID_ADPCM_G726,
      constants.AV_CODEC_ID_ADPCM_G726LE,
    ];
    const codec = convertible.includes(parameters.codecId) ? lib.Codec.findDecoder(parameters.codecId) : null;
    if (codec === null) {
      const name = lib.avGetCodecName(parameters.codecId);
      throw new ComponentError('NATIVE_FAILED', `audio in ${name} cannot be converted to Opus`);
    }
    const decoder = new lib.CodecContext();
    decoder.allocContext3(codec);
    check(decoder.parametersToContext(parameters), 'the audio parameters are invalid');
    decoder.threadCount = 1;
    check(decoder.open2Sync(codec, null), `the decoder of ${codec.name} cannot be opened`);

    return new OpusSound(native, decoder);
  }

  private constructor(native: Native, decoder: CodecContext) {
    this.#native = native;
    this.#decoder = decoder;
    this.#decoded = new native.lib.Frame();
    this.#decoded.alloc();
    this.#resampled = new native.lib.Frame();
    this.#resampled.alloc();
    this.#packet = new native.lib.Packet();
    this.#packet.alloc();
  }

  /**
   * Calls `take` for each completed Opus packet. A packet that fails to decode counts as lost.
   * @throws ComponentError `NATIVE_FAILED`
   */
  convert(packet: Packet, ptsMs: number | undefined, take: TakeOpus): void {
    let startMs = ptsMs;
    if (this.#decoder.sendPacketSync(packet) < 0) return;
    while (this.#decoder.receiveFrameSync(this.#decoded) >= 0) {
      const { nbSamples, sampleRate } = this.#decoded;
      this.#add(this.#resample(), startMs, take);
      if (startMs !== undefined) startMs += (nbSamples * 1_000) / sampleRate;
      this.#resampled.unref();
    }
  }

  /** Returns the decoded samples at 48 kHz, interleaved, which are valid until the frame is released. */
  #resample(): Int16Array {
    const { lib, constants } = this.#native;
    const { format, sampleRate, channelLayout } = this.#decoded;
    const channels = channelLayout.nbChannels === 1 ? 1 : 2;
    const layout = channels === 1 ? constants.AV_CHANNEL_LAYOUT_MONO : constants.AV_CHANNEL_LAYOUT_STEREO;
    const key = `${format} ${sampleRate} ${channelLayout.nbChannels} ${channelLayout.mask}`;
    if (this.#resampler?.format !== key) {
      this.#resampler?.context.free();
      const context = new lib.SoftwareResampleContext();
      const from = [channelLayout, format as typeof constants.AV_SAMPLE_FMT_S16, sampleRate] as const;
      check(
        context.allocSetOpts2(layout, constants.AV_SAMPLE_FMT_S16, SAMPLE_RATE, ...from),
        `audio at ${sampleRate} Hz cannot be converted`,
      );
      check(context.init(), `audio at ${sampleRate} Hz cannot be converted`);
      this.#resampler = { format: key, context };
    }
    if (this.#encoder?.channels !== channels) {
      this.#encoder?.close();
      this.#encoder = new OpusEncoder(this.#native, channels);
      this.#rest = new Int16Array(0);
      this.#restMs = undefined;
    }
    this.#resampled.format = constants.AV_SAMPLE_FMT_S16;
    this.#resampled.sampleRate = SAMPLE_RATE;
    this.#resampled.channelLayout = layout;
    check(this.#resampler.context.convertFrame(this.#resampled, this.#decoded), 'the audio cannot be resampled');
    const plane = this.#resampled.data?.[0];
    const count = this.#resampled.nbSamples * channels;

    return plane === undefined ? new Int16Array(0) : new Int16Array(plane.buffer, plane.byteOffset, count);
  }

  #add(samples: Int16Array, startMs: number | undefined, take: TakeOpus): void {
    const encoder = this.#encoder!;
    const { channels } = encoder;
    const length = OPUS_FRAME * channels;
    const expectedMs = (this.#restMs ?? Number.NaN) + this.#rest.length / channels / SAMPLES_PER_MS;
    if (startMs !== undefined && !(Math.abs(startMs - expectedMs) <= TOLERANCE_MS)) {
      this.#rest = new Int16Array(0);
      this.#restMs = startMs;
    }
    const all = new Int16Array(this.#rest.length + samples.length);
    all.set(this.#rest);
    all.set(samples, this.#rest.length);
    let at = 0;
    for (; at + length <= all.length; at += length) {
      const data = encoder.encode(all.subarray(at, at + length));
      if (data !== undefined) take(data, this.#restMs);
      if (this.#restMs !== undefined) this.#restMs += OPUS_FRAME / SAMPLES_PER_MS;
    }
    this.#rest = all.slice(at);
  }
}

class OpusEncoder {
  readonly #context: CodecContext;
  readonly #frame: Frame;
  readonly #packet: Packet;

  constructor(
    { lib, constants }: Native,
    readonly channels: 1 | 2,
  ) {
    const layout = channels === 1 ? constants.AV_CHANNEL_LAYOUT_MONO : constants.AV_CHANNEL_LAYOUT_STEREO;
    const codec = lib.Codec.findEncoderByName(constants.FF_ENCODER_LIBOPUS);
    this.#context = new lib.CodecContext();
    this.#context.allocContext3(codec);
    this.#context.sampleRate = SAMPLE_RATE;
    this.#context.sampleFormat = constants.AV_SAMPLE_FMT_S16;
    this.#context.channelLayout = layout;
    this.#context.timeBase = new lib.Rational(1, SAMPLE_RATE);
    this.#context.bitRate = BigInt(BITRATE_PER_CHANNEL * channels);
    check(this.#context.setOption('compression_level', '5'), 'the Opus encoder refused the compression level');
    check(this.#context.open2Sync(codec, null), 'the Opus encoder cannot be opened');
    this.#frame = new lib.Frame();
    this.#frame.alloc();
    this.#frame.format = constants.AV_SAMPLE_FMT_S16;
    this.#frame.nbSamples = OPUS_FRAME;
    this.#frame.sampleRate = SAMPLE_RATE;
    this.#frame.channelLayout = layout;
    check(this.#frame.getBuffer(0), 'out of memory for the audio');
    this.#frame.pts = 0n;
    this.#packet = new lib.Packet();
    this.#packet.alloc();
  }

  encode(samples: Int16Array): Buffer | undefined {
    this.#frame.makeWritable();
    const plane = this.#frame.data![0]!;
    new Int16Array(plane.buffer, plane.byteOffset, samples.length).set(samples);
    check(this.#context.sendFrameSync(this.#frame), 'the Opus encoder refused a frame');
    this.#frame.pts += BigInt(OPUS_FRAME);
    if (this.#context.receivePacketSync(this.#packet) < 0) return undefined;
    const { data } = this.#packet;
    const copy = data === null ? undefined : Buffer.from(data);
    this.#packet.unref();

    return copy;
  }

  close(): void {
    this.#context.freeContext();
    this.#frame.free();
    this.#packet.free();
  }
}
