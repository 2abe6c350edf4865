/** Maximum number of pauses of a recording. */
export const MAX_PAUSES = 1_000;

/** A pause in a report, in nanoseconds from the start of the recording. */
export interface ReportedPause {
  offset: number;
  /** Null: up to the end of the recording. */
  end_offset: number | null;
}

/** When a recording was paused, on the clock of frame arrivals. */
export class Pauses {
  readonly #pauses: { startMs: number; endMs: number }[] = [];

  get isPaused(): boolean {
    return this.#pauses.at(-1)?.endMs === Number.POSITIVE_INFINITY;
  }

  /** Returns false if that would be one pause too many. */
  set(paused: boolean, atMs: number): boolean {
    if (paused === this.isPaused) return true;
    if (!paused) {
      this.#pauses.at(-1)!.endMs = atMs;
      return true;
    }
    if (this.#pauses.length >= MAX_PAUSES) return false;
    this.#pauses.push({ startMs: atMs, endMs: Number.POSITIVE_INFINITY });

    return true;
  }

  /** Returns true for a frame that arrived during a pause, even if it is processed later. */
  covers(arrivalMs: number): boolean {
    for (let i = this.#pauses.length - 1; i >= 0; i--) {
      const { startMs, endMs } = this.#pauses[i]!;
      if (arrivalMs >= endMs) return false;
      if (arrivalMs >= startMs) return true;
    }

    return false;
  }

  /** Returns the pauses as `report.json` lists them. */
  report(startedAtMs: number): ReportedPause[] {
    const offset = (ms: number): number => Math.round(Math.max(0, ms - startedAtMs) * 1e6);

    return this.#pauses.map(({ startMs, endMs }) => ({
      offset: offset(startMs),
      end_offset: Number.isFinite(endMs) ? offset(endMs) : null,
    }));
  }
}
