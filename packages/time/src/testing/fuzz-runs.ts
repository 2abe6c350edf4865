/**
 * Returns the number of runs of a fuzz test: `BLOOM_FUZZ_RUNS`, or `usual` where it is not set. Long runs also need
 * `--testTimeout`.
 */
export function fuzzRuns(usual: number): number {
  const wanted = Number(process.env['BLOOM_FUZZ_RUNS']);
  return Number.isInteger(wanted) && wanted > 0 ? wanted : usual;
}
