import type { Variant } from '../media-engine.js';
import { type VariantCosts, VARIANTS, variantIndex } from '../variants/variants.js';

/** Most temporal layers of a variant that are left out. */
const MAX_FEWER = 2;
const PER_VARIANT = MAX_FEWER + 1;
/** The highest step of quality: all of the highest variant. */
const TOP_RUNG = VARIANTS.length * PER_VARIANT - 1;

/**
 * Returns the position of a step of quality among all of them, lowest first: a variant without this many of its upper
 * temporal layers. Any variant is better than all of a lower one.
 */
export function rungOf(variant: Variant, fewer = 0): number {
  return variantIndex(variant) * PER_VARIANT + MAX_FEWER - Math.min(fewer, MAX_FEWER);
}

export function variantOf(rung: number): Variant {
  return VARIANTS[Math.floor(rung / PER_VARIANT)]!;
}

/** Bits per second of each rung; undefined for those that a slot cannot have, or that are no use. */
export type Ladder = readonly (number | undefined)[];

/**
 * Returns the rungs up to the goal. A variant loses one temporal layer before a lower one is chosen, the lowest one
 * loses all. Rungs that cost as much as a better one with fewer layers are left out.
 */
export function ladderOf({ active, bitratesBps, reducedBps }: VariantCosts, goal: Variant): Ladder {
  const ladder: (number | undefined)[] = Array.from({ length: TOP_RUNG + 1 });
  const lowest = VARIANTS.find((variant) => active[variant]);
  let cheapest = Infinity;
  for (let rung = rungOf(goal); rung >= 0; rung -= 1) {
    const variant = variantOf(rung);
    const fewer = MAX_FEWER - (rung % PER_VARIANT);
    if (!active[variant] || (fewer > 1 && variant !== lowest)) continue;
    const bps = fewer === 0 ? bitratesBps[variant] : reducedBps?.[variant][fewer - 1];
    if (bps === undefined || bps >= cheapest) continue;
    if (fewer > 0) cheapest = bps;
    ladder[rung] = bps;
  }
  return ladder;
}

/** Returns the highest rung of a ladder up to a limit. */
export function highestRung(ladder: Ladder, limit: number): number | undefined {
  for (let rung = limit; rung >= 0; rung -= 1) if (ladder[rung] !== undefined) return rung;
  return undefined;
}

/** Returns the lowest rung of a ladder from a limit on. */
export function lowestRung(ladder: Ladder, limit: number): number | undefined {
  for (let rung = limit; rung < ladder.length; rung += 1) if (ladder[rung] !== undefined) return rung;
  return undefined;
}
