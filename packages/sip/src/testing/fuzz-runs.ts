/** Runs of a fuzz test: `BLOOM_FUZZ_RUNS`, or 10,000. */
export const FUZZ_RUNS = Number(process.env['BLOOM_FUZZ_RUNS'] ?? 10_000);
