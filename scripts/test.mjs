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
/** Files of a project. */
const TRIED_AGAIN = 5;
const totals = { passed: 0, failed: 0, skipped: 0 };
const skippedTitles = [];

/** Runs tests of a project; undefined: jest itself failed. */
function report(project, flags) {
  const output = join(folder, `${project}.json`);
  rmSync(output, { force: true });
  spawnSync(
    process.execPath,
    [
      '--experimental-vm-modules',
      '--no-warnings',
      join(root, 'node_modules', 'jest', 'bin', 'jest.js'),
      ...flags,
      '--selectProjects',
      project,
      '--passWithNoTests',
      '--json',
      `--outputFile=${output}`,
    ],
    {
      cwd: root,
      // jest prints the report to stderr and, because of --json, the document to stdout as well.
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...(nightly ? { BLOOM_NIGHTLY: '1' } : {}) },
    },
  );
  try {
    return JSON.parse(readFileSync(output, 'utf8'));
  } catch {
    return undefined;
  }
}

const hasFailed = (file) => file.status === 'failed' || file.assertionResults.some((a) => a.status === 'failed');

function jest(project, flags) {
  const first = report(project, [...flags, ...rest]);
  if (first === undefined) {
    totals.failed += 1;
    return;
  }
  // Many files share a process and the machine: what fails in company gets one more try alone, and everybody is told. When
  // many fail it is not the company's fault.
  const again = new Map();
  const broken = first.testResults.filter(hasFailed);
  for (const { name } of broken.length <= TRIED_AGAIN ? broken : []) {
    console.warn(`\n*** FAILED, tried once more alone: ${name}`);
    const second = report(project, ['--runInBand', '--forceExit', '--runTestsByPath', name]);
    if (second !== undefined) again.set(name, second.testResults[0]);
  }
  for (const result of first.testResults) {
    const file = again.get(result.name) ?? result;
    const failed = file.assertionResults.filter((a) => a.status === 'failed').length;
    // A file that could not be loaded has no failed test of its own.
    totals.failed += failed === 0 && hasFailed(file) ? 1 : failed;
    for (const a of file.assertionResults) {
      if (a.status === 'passed') totals.passed += 1;
      if (a.status === 'pending') {
        totals.skipped += 1;
        skippedTitles.push(a.fullName);
      }
    }
  }
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
