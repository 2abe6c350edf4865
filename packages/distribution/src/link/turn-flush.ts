/**
 * Decides when queued frames are written. What the first callback of a turn sends is written once that callback and its
 * promises have run, so an answer leaves immediately together with what follows from it. Anything sent later in the
 * same turn is written together at its end, so a busy node writes large batches.
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
