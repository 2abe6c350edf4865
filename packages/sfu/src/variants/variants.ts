import type { SwitchReason, Variant } from '../media-engine.js';

/** Lowest first. The position in this list is the index used by arrays per variant. */
export const VARIANTS = ['l', 'm', 'h'] as const satisfies readonly Variant[];

/** A set with one value per variant, indexed by name. */
export type PerVariant<T> = Record<Variant, T>;

export function variantIndex(variant: Variant): 0 | 1 | 2 {
  return variant === 'l' ? 0 : variant === 'm' ? 1 : 2;
}

export function isVariant(value: string): value is Variant {
  return value === 'l' || value === 'm' || value === 'h';
}

/** Why a variant was taken, in full; the wire knows three of them. */
export type SelectionReason =
  | 'first_media'
  | 'encoding_inactive'
  | 'variant_resumed'
  | 'automatic_selection'
  | 'target_variant_selected'
  | 'set_bandwidth_allocation'
  | 'low_bandwidth'
  | 'variant_unmuted';

/** The client libraries document three reasons and store whatever string comes; they get what they document. */
export function wireReason(reason: SelectionReason): SwitchReason {
  return reason === 'low_bandwidth' || reason === 'encoding_inactive' ? reason : 'other';
}

/** Assumed bitrates, bits per second, where the publisher announced none: what browsers send for 1280x720 simulcast. */
const DEFAULT_BITRATES_BPS: PerVariant<number> = { l: 150_000, m: 500_000, h: 1_500_000 };

/** Bitrate of each variant, bits per second: the announced one, else the usual one. Zero and less count as absent. */
export function bitratesOf(announced: Partial<PerVariant<number>>): PerVariant<number> {
  const pick = (variant: Variant): number => {
    const value = announced[variant];
    return value !== undefined && value > 0 ? value : DEFAULT_BITRATES_BPS[variant];
  };
  return { l: pick('l'), m: pick('m'), h: pick('h') };
}
