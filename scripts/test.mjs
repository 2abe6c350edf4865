// `npm test`: sets everything up, runs the unit tests, then the end-to-end tests one file at a time, and ends with
// `N passed, N failed`. `--nightly` runs the slow variants too; other arguments go to jest (`npm test -- packages/rtp`).
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensurePackages } from './debian-packages.mjs';
import { root, setUp } from './setup.mjs';

const args = process.argv.slice(2);
const nightly = args.includes('--nightly');
const rest = args.filter((arg) => arg !== '--nightly');

setUp();
const wanted = rest.length === 0 || rest.some((arg) => arg.includes('e2e'));
const missing = wanted ? ensurePackages() : [];
if (missing.length > 0) {
  console.warn(`\n*** Not on this machine: ${missing.join(' ')}. Tests that need them will be SKIPPED.`);
  console.warn(`*** Install them with: sudo apt-get install ${missing.join(' ')}\n`);
}

const folder = mkdtempSync(join(tmpdir(), 'bloom-test-'));
const totals = { passed: 0, failed: 0, skipped: 0 };
const skippedTitles = [];

function jest(project, flags) {
  const output = join(folder, `${project}.json`);
  const result = spawnSync(
    process.execPath,
    [
      '--experimental-vm-modules',
      '--no-warnings',
      join(root, 'node_modules', 'jest', 'bin', 'jest.js'),
      '--selectProjects',
      project,
      '--passWithNoTests',
      '--json',
      `--outputFile=${output}`,
      ...flags,
      ...rest,
    ],
    {
      cwd: root,
      // jest prints the report to stderr and, because of --json, the document to stdout as well.
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...(nightly ? { BLOOM_NIGHTLY: '1' } : {}) },
    },
  );
  let report;
  try {
    report = JSON.parse(readFileSync(output, 'utf8'));
  } catch {
    totals.failed += 1;
    return;
  }
  totals.passed += report.numPassedTests;
  totals.failed += report.numFailedTests;
  // A file that could not be loaded has no failed test of its own.
  for (const file of report.testResults) {
    if (file.status === 'failed' && file.assertionResults.every((a) => a.status !== 'failed')) totals.failed += 1;
    for (const a of file.assertionResults) if (a.status === 'pending') skippedTitles.push(a.fullName);
  }
  totals.skipped += report.numPendingTests;
  if (result.status !== 0 && totals.failed === 0) totals.failed += 1;
}

jest('unit', ['--maxWorkers=2']);
// A client's socket or timer that a test forgot must not keep the whole run from ending.
jest('e2e', ['--runInBand', '--forceExit']);
rmSync(folder, { recursive: true, force: true });

if (skippedTitles.length > 0) {
  console.log(`\n*** SKIPPED (${skippedTitles.length}):`);
  for (const title of skippedTitles.slice(0, 40)) console.log(`***   ${title}`);
  if (skippedTitles.length > 40) console.log(`***   ... and ${skippedTitles.length - 40} more`);
}
console.log(
  `\n${totals.passed} passed, ${totals.failed} failed${totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''}`,
);
process.exit(totals.failed > 0 || totals.passed === 0 ? 1 : 0);
