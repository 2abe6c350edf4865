import type { SwitchReason, Variant } from '../media-engine.js';

/** Lowest first. The position is the index into arrays per variant. */
export const VARIANTS = ['l', 'm', 'h'] as const satisfies readonly Variant[];

/** A set with one value per variant, indexed by name. */
export type PerVariant<T> = Record<Variant, T>;

/** Bitrates of each variant without one of its temporal layers, then without two; empty for one that has one layer. */
export type ReducedBitrates = PerVariant<readonly number[]>;

/** What the variants of a track cost, bits per second. */
export interface VariantCosts {
  /** Variants that are sent. */
  active: PerVariant<boolean>;
  bitratesBps: PerVariant<number>;
  /** Default: variants have no temporal layers. */
  reducedBps?: ReducedBitrates;
  /** Rate at which a key picture arrives before its receiver sees a pause; 0 if unknown, which is the default. */
  keyBps?: PerVariant<number>;
}

export function variantIndex(variant: Variant): 0 | 1 | 2 {
  return variant === 'l' ? 0 : variant === 'm' ? 1 : 2;
}

/** Reasons for a selection; the wire has three of them. */
export type SelectionReason =
  | 'first_media'
  | 'encoding_inactive'
  | 'variant_resumed'
  | 'automatic_selection'
  | 'target_variant_selected'
  | 'set_bandwidth_allocation'
  | 'low_bandwidth'
  | 'variant_unmuted';

/** Maps to one of the three reasons that the client libraries document; they store any string. */
export function wireReason(reason: SelectionReason): SwitchReason {
  return reason === 'low_bandwidth' || reason === 'encoding_inactive' ? reason : 'other';
}

/** Bitrates assumed without an announcement, bits per second: what browsers send for 1280x720 simulcast. */
const DEFAULT_BITRATES_BPS: PerVariant<number> = { l: 150_000, m: 500_000, h: 1_500_000 };

/**
 * Returns the bitrate of each variant, bits per second: the announced one, else the default. Values up to zero count as
 * absent.
 */
export function bitratesOf(announced: Partial<PerVariant<number>>): PerVariant<number> {
  const pick = (variant: Variant): number => {
    const value = announced[variant];
    return value !== undefined && value > 0 ? value : DEFAULT_BITRATES_BPS[variant];
  };
  return { l: pick('l'), m: pick('m'), h: pick('h') };
}
