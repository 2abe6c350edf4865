/** What fast-check does by default; fewer say little. */
const FEW = 100;

/**
 * Returns the number of runs of a fuzz test: `BLOOM_FUZZ_RUNS`, or `usual` where it is not set, or the share of it that
 * `BLOOM_FUZZ_SHARE` names: `npm test` runs a tenth, `npm run test:full` all. Long runs also need `--testTimeout`.
 */
export function fuzzRuns(usual: number): number {
  const wanted = Number(process.env['BLOOM_FUZZ_RUNS']);
  if (Number.isInteger(wanted) && wanted > 0) return wanted;
  const share = Number(process.env['BLOOM_FUZZ_SHARE'] ?? 1);
  return Math.max(Math.ceil(usual * share), Math.min(usual, FEW));
}
