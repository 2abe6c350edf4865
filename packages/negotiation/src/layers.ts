import type { Variant } from '@bloom/sfu';

export type Bitrates = Partial<Record<Variant, number>>;

/** Encodings of one simulcast m-line, in offer order. */
export interface Layers {
  rids: readonly Variant[];
  /** Rids on the wire, if they differ from the variant names. */
  wireRids?: readonly string[];
}

/** Names for a quarter, a half and the full size. Clients list them in this order although the last is the best. */
const SIZES: readonly string[] = ['q', 'h', 'f'];
const LOWEST_FIRST: readonly Variant[] = ['l', 'm', 'h'];
/** An offer lists its encodings in order of preference, the best first (RFC 8853 section 5.2). */
const BEST_FIRST: readonly Variant[] = ['h', 'm', 'l'];

/** Assigns a variant to each offered rid, up to three; any further rids are missing from the answer. */
export function assignLayers(offered: readonly string[]): Layers {
  if (offered.every(isVariant)) return { rids: offered };
  if (offered.every((rid) => SIZES.includes(rid))) {
    return { rids: offered.map((rid) => LOWEST_FIRST[SIZES.indexOf(rid)]!), wireRids: offered };
  }
  const wireRids = offered.slice(0, BEST_FIRST.length);

  return { rids: BEST_FIRST.slice(0, wireRids.length), wireRids };
}

export function isVariant(value: unknown): value is Variant {
  return value === 'l' || value === 'm' || value === 'h';
}
