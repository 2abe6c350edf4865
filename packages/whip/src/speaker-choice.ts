/** Minimum time for which a viewer stays with a speaker. */
export const HOLD_MS = 2_000;

/**
 * Chooses the participant that a viewer sees: the newest speaker, held for a while. Pure: call `choose` after every
 * change of the candidates, and `released` once `HOLD_MS` have passed since its result last changed.
 */
export class SpeakerChoice {
  /** Participants currently speaking, newest last. */
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

  /** Allows the choice to change again. */
  released(): void {
    this.#held = false;
  }

  /** Returns which candidate to show; the first is preferred. `changed` starts the hold time. */
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
