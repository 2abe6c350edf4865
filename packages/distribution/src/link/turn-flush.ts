/**
 * Decides when queued frames are written. Frames of the first callback in a turn are written once that callback and its
 * promises have run, so an answer leaves immediately together with what follows from it. Later frames of the same turn
 * are written together at its end, so a busy node writes large batches.
 */
export class TurnFlush {
  #early = true;
  #ending = false;
  readonly #runs: (() => void)[] = [];

  readonly defer = (run: () => void): void => {
    if (!this.#early) {
      setImmediate(run);
      return;
    }
    this.#runs.push(run);
    if (this.#ending) return;
    this.#ending = true;
    queueMicrotask(this.#awaitTick);
  };

  readonly #awaitTick = (): void => process.nextTick(this.#endEarly);

  readonly #endEarly = (): void => {
    const runs = this.#runs.splice(0);
    this.#early = false;
    this.#ending = false;
    setImmediate(this.#nextTurn);
    for (const run of runs) run();
  };

  readonly #nextTurn = (): void => {
    this.#early = true;
  };
}
