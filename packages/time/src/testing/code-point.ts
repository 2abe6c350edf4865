import type fc from 'fast-check';

const SURROGATES = 0x800;
const FIRST_SURROGATE = 0xd800;

/**
 * Any code point but surrogates, as the `unit` of strings. That is what fast-check calls 'binary', for which it builds a map of
 * 1.1 million strings in each test file: more than a second of work.
 */
export function codePoint({ nat }: Pick<typeof fc, 'nat'>): fc.Arbitrary<string> {
  return nat(0x10ffff - SURROGATES).map(
    (n) => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES),
    // Without it, fast-check would leave out the strings that it knows to be dangerous.
    (text) => {
      const value = typeof text === 'string' ? (text.codePointAt(0) ?? -1) : -1;
      if (value < 0 || String.fromCodePoint(value) !== text) throw new Error('not one code point');
      return value < FIRST_SURROGATE ? value : value - SURROGATES;
    },
  );
}
