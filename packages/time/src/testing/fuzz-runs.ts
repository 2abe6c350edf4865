/** fast-check's default; fewer runs prove little. */
const FEW = 100;

/**
 * Returns the number of runs of a fuzz test: `BLOOM_FUZZ_RUNS` if set, otherwise `usual` times `BLOOM_FUZZ_SHARE`. `npm
 * test` runs a tenth, `npm run test:full` all. Long runs also need `--testTimeout`.
 */
export function fuzzRuns(usual: number): number {
  const wanted = Number(process.env['BLOOM_FUZZ_RUNS']);
  if (Number.isInteger(wanted) && wanted > 0) return wanted;
  const share = Number(process.env['BLOOM_FUZZ_SHARE'] ?? 1);
  return Math.max(Math.ceil(usual * share), Math.min(usual, FEW));
}
