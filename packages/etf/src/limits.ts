/** Maximum number of terms in one call of `decode`, or between two calls of `TermReader.open`. */
export const MAX_TERMS = 4_000_000;

export interface DecodeOptions {
  /**
   * `wrap` keeps floats distinct from integers (2.0 becomes `Float`); default `number`. Map keys are always kept
   * distinct.
   */
  readonly floats?: 'number' | 'wrap';
  /** `object` (default): maps with only text keys become objects without prototype; `map`: always `Map`. */
  readonly maps?: 'object' | 'map';
  /** Which binaries become strings if they are UTF-8: `all` (default), only map `keys`, or `none`. */
  readonly text?: 'all' | 'keys' | 'none';
  /** Accepts COMPRESSED (80) if it inflates to at most this number of bytes; default 0 = never. */
  readonly maxInflatedBytes?: number;
}

/** Options with defaults applied; created once per reader. */
export interface DecodeRules {
  readonly wrapFloats: boolean;
  readonly records: boolean;
  readonly textValues: boolean;
  readonly textKeys: boolean;
  readonly maxInflatedBytes: number;
}

export function rulesOf(options: DecodeOptions = {}): DecodeRules {
  const text = options.text ?? 'all';
  return {
    wrapFloats: options.floats === 'wrap',
    records: options.maps !== 'map',
    textValues: text === 'all',
    textKeys: text !== 'none',
    maxInflatedBytes: options.maxInflatedBytes ?? 0,
  };
}
