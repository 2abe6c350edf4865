// Runs before each test file.
import { readFileSync } from 'node:fs';
import { expect } from '@jest/globals';

const { testPath } = expect.getState();
const source = readFileSync(testPath, 'utf8');

if (process.env.BLOOM_STALE_BUILD && (testPath.includes('/e2e/') || source.includes('dist/'))) {
  throw new Error('this test runs dist/, which is older than the sources: run `npm run build` first');
}

// Sets the run's seed (`npm test -- --seed N`) and the report for scripts/testing/fuzz.mjs.
const { BLOOM_SEED: seed, BLOOM_PATH: path, BLOOM_FUZZ_REPORT: report, BLOOM_FUZZ_LIMIT_MS: limitMs } = process.env;
if (source.includes(`'fast-check'`)) {
  const { configureGlobal } = await import('fast-check');
  const { watchRuns } = report === undefined ? {} : await import('./fuzz-watch.mjs');
  configureGlobal({
    // Otherwise fast-check stops at ten elements, whatever `maxLength` says.
    defaultSizeToMaxWhenMaxSpecified: true,
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path, endOnFailure: true }),
    ...watchRuns?.({ report, limitMs: Number(limitMs) }),
  });
}
