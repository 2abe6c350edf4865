import type { Clock } from '@bloom/time';
import type { Records } from './answer.js';

/** Maximum number of records in all answers; an answer without records counts as one. */
const MAX_RECORDS = 20_000;

/** Answers by question, kept for their TTL. Bounded: the oldest answers are evicted first. */
export class AnswerCache {
  readonly #clock: Clock;
  readonly #answers = new Map<string, { values: Records['values']; until: number }>();
  #records = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(key: string): Records['values'] | undefined {
    const answer = this.#answers.get(key);

    return answer !== undefined && this.#clock.now() < answer.until ? answer.values : undefined;
  }

  /** True for a question that was answered with records, even if those have expired. */
  knows(key: string): boolean {
    return (this.#answers.get(key)?.values.length ?? 0) > 0;
  }

  set(key: string, { values, ttlMs }: Records): void {
    this.#remove(key);
    if (ttlMs <= 0 && values.length === 0) return;
    this.#answers.set(key, { values, until: this.#clock.now() + ttlMs });
    this.#records += weightOf(values);
    for (const oldest of this.#answers.keys()) {
      if (this.#records <= MAX_RECORDS) break;
      this.#remove(oldest);
    }
  }

  clear(): void {
    this.#answers.clear();
    this.#records = 0;
  }

  #remove(key: string): void {
    const answer = this.#answers.get(key);
    if (answer === undefined) return;
    this.#answers.delete(key);
    this.#records -= weightOf(answer.values);
  }
}

function weightOf(values: Records['values']): number {
  return Math.max(values.length, 1);
}
