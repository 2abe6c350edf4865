import type { LayerRates } from './layer-rates.js';
import { FIT_MARGIN } from './variant-selection.js';
import type { PerVariant, ReducedBitrates } from './variants.js';

const WHOLE: readonly number[] = [];

/** Bitrates of variants that are known as whole streams only. */
export const NOT_REDUCED: ReducedBitrates = { l: WHOLE, m: WHOLE, h: WHOLE };

/** Returns the bitrates of one variant without its upper temporal layers, of which `layers` has measured the shares. */
export function reducedBitrates(bitrateBps: number, layers: LayerRates | undefined): readonly number[] {
  return layers?.isLayered === true ? layers.shares().map((share) => Math.round(bitrateBps * share)) : WHOLE;
}

/** Returns the lowest bitrate at which each variant is preferred to a lower one: without one temporal layer. */
export function leastBitrates(bitratesBps: PerVariant<number>, reduced: ReducedBitrates): PerVariant<number> {
  const { l, m, h } = bitratesBps;
  return { l: reduced.l[0] ?? l, m: reduced.m[0] ?? m, h: reduced.h[0] ?? h };
}

/** Returns how many temporal layers of a variant have to be left out for an allocation, bits per second. */
export function layersToLeaveOut(allocationBps: number, bitrateBps: number, reduced: readonly number[]): number {
  if (bitrateBps * FIT_MARGIN <= allocationBps) return 0;
  const first = reduced.findIndex((bps) => bps * FIT_MARGIN <= allocationBps);
  return first < 0 ? reduced.length : first + 1;
}
