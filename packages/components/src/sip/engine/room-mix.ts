import { softClip } from '../../av/track-audio.js';
import { OpusDecoder, type MixRate } from './opus.js';
import { TrackPlayout } from './track-playout.js';

interface Source {
  decoder: OpusDecoder;
  playout: TrackPlayout;
  lost: boolean;
}

const FULL_SCALE = 32_768;

/** Mixes the tracks a phone hears into 20 ms frames. */
export class RoomMix {
  readonly #rate: MixRate;
  readonly #sources = new Map<number, Source>();
  readonly #sum: Float32Array;

  constructor(rate: MixRate) {
    this.#rate = rate;
    this.#sum = new Float32Array(rate / 50);
  }

  /** Sets the tracks, replacing the earlier ones. */
  setTracks(ids: readonly number[]): void {
    const wanted = new Set(ids);
    for (const id of this.#sources.keys()) if (!wanted.has(id)) this.#sources.delete(id);
    for (const id of wanted) {
      if (this.#sources.has(id)) continue;
      this.#sources.set(id, {
        decoder: new OpusDecoder(this.#rate),
        playout: new TrackPlayout(this.#rate),
        lost: false,
      });
    }
  }

  /** Adds one Opus packet with a 48 kHz timestamp. A packet that fails to decode counts as lost. */
  push(id: number, timestamp: number, packet: Uint8Array): void {
    const source = this.#sources.get(id);
    if (source === undefined) return;
    const pcm = source.decoder.decode(packet);
    if (pcm !== undefined) source.playout.write(timestamp, pcm, source.lost);
    source.lost = pcm === undefined;
  }

  /** Reports that packets are missing before the next one. */
  gap(id: number): void {
    const source = this.#sources.get(id);
    if (source !== undefined) source.lost = true;
  }

  /** Returns the next 20 ms; undefined when every track is silent. */
  next(): Int16Array | undefined {
    const sum = this.#sum.fill(0);
    let any = false;
    for (const { playout } of this.#sources.values()) any = playout.addTo(sum) || any;
    if (!any) return undefined;
    for (let i = 0; i < sum.length; i++) (sum[i] as number) /= FULL_SCALE;
    softClip(sum);
    const mixed = new Int16Array(sum.length);
    for (let i = 0; i < sum.length; i++) mixed[i] = Math.round((sum[i] as number) * (FULL_SCALE - 1));
    return mixed;
  }
}
