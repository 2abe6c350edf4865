import type { TrackKind } from '../media-frames.js';
import type { InboundStream } from './inbound-stream.js';

/** Measures how long a track has been silent, from a counter that is polled. Sans-IO. */
export class TrackSilence {
  #sent = -1;
  #sinceMs = 0;

  /**
   * Returns milliseconds since the counter `sent` last changed. `excused`: the track need not send, so its silence
   * begins with the next call.
   */
  look(sent: number, excused: boolean, nowMs: number): number {
    if (excused || sent !== this.#sent) this.#sinceMs = nowMs;
    this.#sent = sent;
    return nowMs - this.#sinceMs;
  }
}

/** Returns how much media has arrived: pictures of video, whose probes are packets too, and packets of sound. */
export function mediaOf(streams: readonly (InboundStream | undefined)[], kind: TrackKind): number {
  let count = 0;
  for (const stream of streams) {
    if (stream !== undefined) count += kind === 'video' ? stream.markers : stream.statistics.packets;
  }

  return count;
}
