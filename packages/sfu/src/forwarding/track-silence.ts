import type { TrackKind } from '../media-frames.js';
import type { InboundStream } from './inbound-stream.js';

/** Interval of the checks for missing media, ms. */
const LOOK_MS = 250;
/** Time without a picture after which a video track counts as stalled, ms. */
const STALLED_MS = 3000;

/** Measures how long a track has been silent, by counters that are polled. Sans-IO. */
export class TrackSilence {
  /** Time without media as of the last look, ms; 0 while no media is expected. */
  silentMs = 0;
  readonly #kind: TrackKind;
  #sent = -1;
  #sinceMs = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #stalled = false;

  constructor(kind: TrackKind) {
    this.#kind = kind;
  }

  isDue(nowMs: number): boolean {
    return nowMs - this.#lookedAtMs >= LOOK_MS;
  }

  /**
   * Returns whether a track of pictures stalls, if that has changed. `excused`: the track need not send, so its silence
   * begins with the next look.
   */
  look(streams: readonly (InboundStream | undefined)[], excused: boolean, nowMs: number): boolean | undefined {
    this.#lookedAtMs = nowMs;
    const sent = mediaOf(streams, this.#kind);
    if (excused || sent !== this.#sent) this.#sinceMs = nowMs;
    this.#sent = sent;
    this.silentMs = nowMs - this.#sinceMs;
    const stalled = this.#kind === 'video' && this.silentMs >= STALLED_MS;
    if (stalled === this.#stalled) return undefined;
    this.#stalled = stalled;
    return stalled;
  }
}

/** Returns how much media has arrived: pictures of video, whose probes are packets too, and packets of sound. */
function mediaOf(streams: readonly (InboundStream | undefined)[], kind: TrackKind): number {
  let count = 0;
  for (const stream of streams) {
    if (stream !== undefined) count += kind === 'video' ? stream.markers : stream.statistics.packets;
  }

  return count;
}
