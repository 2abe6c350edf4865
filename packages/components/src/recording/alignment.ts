import type { TappedFrame } from '@bloom/sfu';

/**
 * When the tracks of a recording began, on the server's clock. Tracks of one publisher share its clock (RTCP sender
 * reports), and are set against the server's by the frame that was fastest on its way; so voice and lips stay together
 * whatever the network did to either.
 */
export class OriginClock {
  /** Server minus publisher, plus the shortest way between them; ms. */
  #offsetMs: number | undefined;

  heard({ arrivalMs, senderMs }: TappedFrame): void {
    if (senderMs === undefined) return;
    this.#offsetMs = Math.min(this.#offsetMs ?? Number.POSITIVE_INFINITY, arrivalMs - senderMs);
  }

  /** Unix milliseconds of the server; undefined without any sender report. */
  serverTime(senderMs: number): number | undefined {
    return this.#offsetMs === undefined ? undefined : senderMs + this.#offsetMs;
  }
}

/** Finds the moment of a track's first frame from all of its frames. */
export class TrackStart {
  #firstTimestamp = -1;
  #senderStartMs: number | undefined;
  /** Without sender reports: as if the fastest frame had taken no time. */
  #arrivalStartMs = Number.POSITIVE_INFINITY;

  constructor(
    private readonly origin: OriginClock,
    private readonly clockRate: number,
  ) {}

  heard(frame: TappedFrame): void {
    const { timestamp, arrivalMs, senderMs } = frame;
    if (this.#firstTimestamp < 0) this.#firstTimestamp = timestamp;
    this.origin.heard(frame);
    const sinceStartMs = ((timestamp - this.#firstTimestamp) * 1_000) / this.clockRate;
    this.#arrivalStartMs = Math.min(this.#arrivalStartMs, arrivalMs - sinceStartMs);
    // The first report decides: later ones differ by the drift between two clocks, which the file does not have.
    if (senderMs !== undefined) this.#senderStartMs ??= senderMs - sinceStartMs;
  }

  get firstTimestamp(): number {
    return Math.max(0, this.#firstTimestamp);
  }

  /** Unix milliseconds of the server. */
  get atMs(): number {
    const bySender = this.#senderStartMs === undefined ? undefined : this.origin.serverTime(this.#senderStartMs);

    return bySender ?? this.#arrivalStartMs;
  }
}
