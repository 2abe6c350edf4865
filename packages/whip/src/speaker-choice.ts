/** Time for which a viewer stays with a speaker at least. */
export const HOLD_MS = 2_000;

/**
 * Chooses the participant that a viewer sees: the newest speaker, held for a while. Pure: `choose` after every change of the
 * candidates, `released` once `HOLD_MS` have passed since the last change of its result.
 */
export class SpeakerChoice {
  /** Participants that speak at present, the newest last. */
  readonly #speaking = new Set<string>();
  #current: string | undefined;
  #held = false;

  voice(endpointId: string, status: 'speech' | 'silence'): void {
    this.#speaking.delete(endpointId);
    if (status === 'speech') this.#speaking.add(endpointId);
  }

  gone(endpointId: string): void {
    this.#speaking.delete(endpointId);
  }

  /** Lets the choice change again. */
  released(): void {
    this.#held = false;
  }

  /** Returns the participant to show among the candidates, the preferred first; `changed` starts the time to hold it. */
  choose(candidates: readonly string[]): { current: string | undefined; changed: boolean } {
    const present = this.#current !== undefined && candidates.includes(this.#current);
    if (present && this.#held) return { current: this.#current, changed: false };

    const newest = [...this.#speaking].findLast((id) => candidates.includes(id));
    const next = newest ?? (present ? this.#current : candidates[0]);
    const changed = next !== this.#current;
    this.#current = next;
    if (changed) this.#held = next !== undefined;

    return { current: next, changed: changed && next !== undefined };
  }
}
