import { opusSamples } from '@bloom/rtp';
import { type CallAudio, type CodecName, decodeG711, encodeG711 } from '@bloom/sip';
import { Concealer } from './concealment.js';
import { OpusEncoder, type MixRate } from './opus.js';
import { RoomMix } from './room-mix.js';

/** One packet from the phone to the room. */
export interface PhoneFrame {
  /** Timestamp at 48 kHz, starting at zero. */
  timestamp: number;
  /** One Opus packet. */
  data: Buffer;
}

const FRAME_TICKS = 960;
const G711_RATE = 8000;
const FRAME_SAMPLES = 160;

/**
 * Connects a phone and a room: mixes the room's tracks into the codec of the call, and encodes the phone's sound as
 * Opus. Opus from the phone passes through unchanged: receivers conceal losses themselves.
 */
export class PhoneBridge implements CallAudio {
  readonly #send: (frame: PhoneFrame) => void;
  readonly #concealer = new Concealer(G711_RATE);
  readonly #toRoom = new OpusEncoder(G711_RATE);
  #toPhone: OpusEncoder | undefined;
  #tracks: readonly number[] = [];
  #mix: RoomMix | undefined;
  #rate: MixRate | undefined;
  #timestamp = 0;

  constructor(send: (frame: PhoneFrame) => void) {
    this.#send = send;
  }

  /** Sets the tracks the phone hears, replacing the earlier ones. */
  setTracks(ids: readonly number[]): void {
    this.#tracks = ids;
    this.#mix?.setTracks(ids);
  }

  /** Sets whether the phone is listening. After a hold it hears the live mix, not the backlog. */
  setListening(listening: boolean): void {
    if (!listening) this.#mix = undefined;
  }

  push(track: number, timestamp: number, packet: Uint8Array): void {
    this.#mix?.push(track, timestamp, packet);
  }

  gap(track: number): void {
    this.#mix?.gap(track);
  }

  received(frame: Buffer | undefined, codec: CodecName): void {
    if (codec === 'opus') {
      const ticks = frame && opusSamples(frame);
      if (frame !== undefined && ticks !== undefined) this.#send({ timestamp: this.#timestamp, data: frame });
      this.#timestamp += ticks ?? FRAME_TICKS;
      return;
    }
    let pcm: Int16Array | undefined;
    if (frame === undefined) pcm = this.#concealer.fill(FRAME_SAMPLES);
    else {
      pcm = decodeG711(codec, frame);
      this.#concealer.accept(pcm);
    }
    if (pcm !== undefined) this.#send({ timestamp: this.#timestamp, data: this.#toRoom.encode(pcm) });
    this.#timestamp += FRAME_TICKS;
  }

  next(codec: CodecName): Buffer | undefined {
    const samples = this.#mixAt(codec === 'opus' ? 48_000 : G711_RATE).next();
    if (samples === undefined) return undefined;
    if (codec !== 'opus') return encodeG711(codec, samples);
    this.#toPhone ??= new OpusEncoder(48_000);
    return this.#toPhone.encode(samples);
  }

  /** The codec may change during a call. */
  #mixAt(rate: MixRate): RoomMix {
    if (this.#mix === undefined || this.#rate !== rate) {
      this.#rate = rate;
      this.#mix = new RoomMix(rate);
      this.#mix.setTracks(this.#tracks);
    }
    return this.#mix;
  }
}
