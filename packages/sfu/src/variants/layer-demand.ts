import type { Variant } from '../media-engine.js';
import type { VariantSelection } from './variant-selection.js';
import { VARIANTS, variantIndex } from './variants.js';

/** How long a variant must be needed by nobody before its publisher is told. Viewers come back, and resize. */
const LOWER_MS = 5_000;
/** Interval of the looks, ms. */
const LOOK_MS = 100;

/** How long the silence of a variant may stem from before it was needed again, ms: its end is noticed that late. */
const NOTICED_MS = 3_500;

/** Decides when the publisher of a simulcast track is told which of its variants are needed. Sans-IO. */
export class LayerDemand {
  /** Index of the highest variant that the publisher knows is needed; -1 = none. It begins with all of them. */
  #told: number = VARIANTS.length - 1;
  #lowerAtMs: number | undefined;
  /** Since when each variant has been needed again. */
  readonly #againSinceMs = VARIANTS.map(() => Number.NEGATIVE_INFINITY);
  #lookAtMs = 0;

  /** True if the publisher has been told that nobody needs this variant. */
  isUnneeded(index: number): boolean {
    return index > this.#told;
  }

  /** True if the publisher may have stopped this variant on request, although it may since be needed again. */
  mayHaveStopped(index: number, nowMs: number): boolean {
    return this.isUnneeded(index) || nowMs - this.#againSinceMs[index]! < NOTICED_MS;
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#lookAtMs;
  }

  /**
   * Takes the index of the highest variant that somebody needs now, -1 = none. Returns what to tell the publisher: the
   * highest variant, null = none, undefined = nothing new.
   */
  look(highest: number, nowMs: number): Variant | null | undefined {
    this.#lookAtMs = nowMs + LOOK_MS;
    if (highest >= this.#told) {
      this.#lowerAtMs = undefined;
      return highest === this.#told ? undefined : this.#tell(highest, nowMs);
    }
    this.#lowerAtMs ??= nowMs + LOWER_MS;

    return nowMs < this.#lowerAtMs ? undefined : this.#tell(highest, nowMs);
  }

  #tell(highest: number, nowMs: number): Variant | null {
    if (highest > this.#told) this.#againSinceMs.fill(nowMs, this.#told + 1, highest + 1);
    this.#told = highest;
    this.#lowerAtMs = undefined;

    return VARIANTS[highest] ?? null;
  }
}

/** Returns the index of the highest variant that a subscriber wants, whatever flows now; -1 = none. */
export function highestWanted(subscribers: Iterable<{ readonly selection: VariantSelection }>): number {
  let highest = -1;
  for (const { selection } of subscribers)
    if (!selection.paused) highest = Math.max(highest, variantIndex(selection.target));

  return highest;
}
