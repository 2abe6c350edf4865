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
