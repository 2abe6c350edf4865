import type fc from 'fast-check';

const SURROGATES = 0x800;
const FIRST_SURROGATE = 0xd800;

/**
 * An arbitrary code point other than a surrogate, for use as the `unit` of strings. fast-check calls this 'binary', but
 * builds a map of 1.1 million strings for it in each test file, which takes more than a second.
 */
export function codePoint({ nat }: Pick<typeof fc, 'nat'>): fc.Arbitrary<string> {
  return nat(0x10ffff - SURROGATES).map(
    (n) => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES),
    // Without an unmapper, fast-check would skip the strings that it knows to be dangerous.
    (text) => {
      const value = typeof text === 'string' ? (text.codePointAt(0) ?? -1) : -1;
      if (value < 0 || String.fromCodePoint(value) !== text) throw new Error('not one code point');
      return value < FIRST_SURROGATE ? value : value - SURROGATES;
    },
  );
}

/** fast-check's default; fewer runs prove little. */
const FEW = 100;

/**
 * Returns the number of runs of a fuzz test: `BLOOM_FUZZ_RUNS` if set, otherwise `usual` times `BLOOM_FUZZ_SHARE`. `npm
 * test` runs a tenth, `npm run test:full` three tenths, `npm run test:nightly` all. Long runs need `--testTimeout` too.
 */
export function fuzzRuns(usual: number): number {
  const wanted = Number(process.env['BLOOM_FUZZ_RUNS']);
  if (Number.isInteger(wanted) && wanted > 0) return wanted;
  const share = Number(process.env['BLOOM_FUZZ_SHARE'] ?? 1);
  return Math.max(Math.ceil(usual * share), Math.min(usual, FEW));
}
