import type { CodecContext, Frame, Packet } from 'node-av/lib';
import { openOpusDecoder } from './codecs.js';
import type { Native } from './native.js';

/** Decodes one track's Opus packets to interleaved stereo at 48 kHz. */
export class OpusTrack {
  readonly #decoder: CodecContext;
  readonly #packet: Packet;
  readonly #frame: Frame;

  constructor(native: Native) {
    this.#decoder = openOpusDecoder(native);
    this.#packet = new native.lib.Packet();
    this.#packet.alloc();
    this.#frame = new native.lib.Frame();
    this.#frame.alloc();
  }

  /**
   * Calls `take` with the packet's samples, -32768..32767, which are valid only during the call. A packet that fails to
   * decode counts as lost.
   */
  decode(data: Buffer, take: (samples: Int16Array) => void): void {
    this.#packet.data = data;
    const sent = this.#decoder.sendPacketSync(this.#packet);
    this.#packet.unref();
    if (sent < 0) return;
    while (this.#decoder.receiveFrameSync(this.#frame) >= 0) {
      const plane = this.#frame.data?.[0];
      if (plane !== undefined) take(new Int16Array(plane.buffer, plane.byteOffset, this.#frame.nbSamples * 2));
    }
  }

  close(): void {
    this.#decoder.freeContext();
    this.#packet.free();
    this.#frame.free();
  }
}
