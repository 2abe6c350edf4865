// Before each test file with property tests: the seed of the run, which `npm test -- --seed N` sets.
import { readFileSync } from 'node:fs';
import { expect } from '@jest/globals';

const seed = process.env.BLOOM_SEED;
const { testPath } = expect.getState();
if (seed !== undefined && testPath !== undefined && readFileSync(testPath, 'utf8').includes(`'fast-check'`)) {
  const { configureGlobal } = await import('fast-check');
  const path = process.env.BLOOM_PATH;
  configureGlobal({ seed: Number(seed), ...(path === undefined ? {} : { path, endOnFailure: true }) });
}
