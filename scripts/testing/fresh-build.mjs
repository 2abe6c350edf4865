// Before all tests: notes whether dist/ is older than the sources. Tests that run what is in there (workers, processes,
// everything end to end) would test something else, and refuse (test-setup.mjs). `npm test` has built already.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

export default () => {
  if (process.env.BLOOM_TEST_RUN) return;
  const compiler = join(import.meta.dirname, '..', '..', 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout, status } = spawnSync(process.execPath, [compiler, '-b', '--dry'], { encoding: 'utf8' });
  if (status !== 0 || /would (build|update)/i.test(stdout)) process.env.BLOOM_STALE_BUILD = '1';
};
