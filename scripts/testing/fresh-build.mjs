// Before all tests: some run what is in dist/ (processes, workers, everything end to end), and a stale build would be
// tested in silence. `npm test` has built already.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

export default function refuseStaleBuild() {
  if (process.env.BLOOM_TEST_RUN) return;
  const compiler = join(import.meta.dirname, '..', '..', 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout, status } = spawnSync(process.execPath, [compiler, '-b', '--dry'], { encoding: 'utf8' });
  const stale = stdout.split('\n').filter((line) => /would (build|update)/i.test(line));
  if (status !== 0 || stale.length > 0) {
    throw new Error(`dist/ is older than the sources; run \`npm run build\` first:\n${stale.join('\n')}`);
  }
}
