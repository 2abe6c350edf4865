import type { CodecContext, Frame, Packet } from 'node-av/lib';
import { type MixPlace, TrackAudio } from './audio-mix.js';
import type { EngineUnit } from './engine-protocol.js';
import type { Native } from './native.js';

/** One Opus track: decoder and its place on the clock of the mix. */
export class AudioSource {
  readonly audio = new TrackAudio();
  private readonly decoder: CodecContext;
  private readonly packet: Packet;
  private readonly frame: Frame;

  constructor({ lib, constants }: Native) {
    const codec = lib.Codec.findDecoderByName(constants.FF_DECODER_LIBOPUS);
    this.decoder = new lib.CodecContext();
    this.decoder.allocContext3(codec);
    this.decoder.sampleRate = 48_000;
    this.decoder.channelLayout = constants.AV_CHANNEL_LAYOUT_STEREO;
    this.decoder.threadCount = 1;
    const opened = this.decoder.open2Sync(codec, null);
    if (opened < 0 || this.decoder.sampleFormat !== constants.AV_SAMPLE_FMT_S16) {
      throw new Error(`the Opus decoder does not open as needed: ${opened}`);
    }
    this.packet = new lib.Packet();
    this.packet.alloc();
    this.frame = new lib.Frame();
    this.frame.alloc();
  }

  /** A packet that does not decode is as good as lost. */
  push({ data, timestamp }: EngineUnit, { mixPosition, position }: MixPlace): void {
    this.packet.data = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    const sent = this.decoder.sendPacketSync(this.packet);
    this.packet.unref();
    if (sent < 0) return;
    let at = timestamp;
    while (this.decoder.receiveFrameSync(this.frame) >= 0) {
      const { nbSamples } = this.frame;
      const plane = this.frame.data?.[0];
      if (plane === undefined) continue;
      const place = { mixPosition, position: position + at - timestamp };
      this.audio.write(at, new Int16Array(plane.buffer, plane.byteOffset, nbSamples * 2), place);
      at += nbSamples;
    }
  }

  close(): void {
    this.decoder.freeContext();
    this.packet.free();
    this.frame.free();
  }
}
