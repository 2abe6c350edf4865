// Runs before all tests and notes whether dist/ is older than the sources. Tests that run dist/ (workers, processes,
// all end-to-end tests) would test old code, so they refuse to run (test-setup.mjs). `npm test` builds first.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { isFresh } from '../build/bundling.mjs';
import { root } from '../setup.mjs';

const BUNDLES = ['apps/bloom/dist', 'apps/bloomctl/dist', 'apps/port-mapper/dist'];

export default () => {
  if (process.env.BLOOM_TEST_RUN) return;
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout, status } = spawnSync(process.execPath, [compiler, '-b', '--dry'], { cwd: root, encoding: 'utf8' });
  const compiled = status === 0 && !/would (build|update)/i.test(stdout);
  if (!compiled || !BUNDLES.every(isFresh)) process.env.BLOOM_STALE_BUILD = '1';
};
