/** The share of a recording that has been gathered, part by part. It never goes back. */
export class PartsProgress {
  readonly #onProgress: (share: number) => void;
  /** Parts that are known to belong to the recording. */
  #known: number;
  #gathered = 0;
  #shown = 0;

  /** `onProgress` is called with 0..1. */
  constructor(known: number, onProgress: (share: number) => void) {
    this.#known = known;
    this.#onProgress = onProgress;
  }

  /** Adds a part that the report of another one names. */
  found(): void {
    this.#known += 1;
  }

  /** Records how much of the part at work is there. */
  part(share: number): void {
    this.#shown = Math.max(this.#shown, Math.min(1, (this.#gathered + share) / this.#known));
    this.#onProgress(this.#shown);
  }

  /** Begins the next part. */
  next(): void {
    this.#gathered += 1;
  }
}
