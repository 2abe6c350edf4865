// `npm test`: the unit tests and one end-to-end proof of each promise. `npm run test:full`: the same, with more runs of
// the property tests, then all other end-to-end files. Both set up the checkout first and end with `N passed, N
// failed`. e2e/suites.json classifies the end-to-end files.
import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { containersUnavailable } from './deploy/container-image.mjs';
import { ensurePackages } from './testing/debian-packages.mjs';
import { root, setUp } from './setup.mjs';
import { parseArguments, seedOfCommit, usage } from './testing/arguments.mjs';
import { Jest } from './testing/jest.mjs';
import { Results } from './testing/results.mjs';
import { fits, plan, testFiles } from './testing/suites.mjs';
import { Workspace } from './testing/workspace.mjs';

const MINUTE_MS = 60_000;
/**
 * A jest process that holds more than this after a file is replaced. It keeps the modules of every file that it ran,
 * and collecting garbage around a gigabyte of them made CPU-bound files up to twice as slow.
 */
const WORKER_MEMORY = '500MB';

const own = readArguments();
setUp();
const files = testFiles(root, own.patterns);
const timesFile = join(root, 'node_modules', '.cache', 'test-times.json');
const lastMs = existsSync(timesFile) ? JSON.parse(readFileSync(timesFile, 'utf8')) : {};
const plans = plan(files.e2e, JSON.parse(readFileSync(join(root, 'e2e', 'suites.json'), 'utf8')), {
  full: own.full || own.patterns.length > 0,
  nightly: own.nightly,
  lastMs,
});
if (plans.length > 0) reportMissing();

const seed = own.seed ?? (own.nightly ? randomInt(2 ** 31) : seedOfCommit(commit()));
const workspace = new Workspace();
const jest = new Jest(workspace, {
  options: own.jest,
  env: {
    BLOOM_SEED: String(seed),
    ...(own.path === undefined ? {} : { BLOOM_PATH: own.path }),
    ...(own.nightly ? { BLOOM_NIGHTLY: '1' } : {}),
    ...fuzzShare(),
  },
});
const filtered = own.jest.some((option) => /^(-t|--testNamePattern)/.test(option));
const results = new Results({ strict: process.env.CI === 'true' && !filtered, filtered });
const began = performance.now();
console.log(`Seed of the property tests: ${seed}`);
if (!workspace.isolated)
  console.warn('*** No namespaces here (they need root on Linux): end-to-end files run one by one.');

await runUnitTests();
// In parallel: images wait for the disk, examples for the registry, the last release for the compiler.
await Promise.all([provideImages(), provideExamples(), provideLastRelease()]);
await runEndToEnd();
workspace.close();
writeFileSync(timesFile, JSON.stringify({ ...lastMs, ...results.durations }));

for (const line of results.lines(`${((performance.now() - began) / MINUTE_MS).toFixed(1)} min, seed ${seed}`)) {
  console.log(line);
}
process.exit(results.ok ? 0 : 1);

function readArguments() {
  try {
    const parsed = parseArguments(process.argv.slice(2));
    if (!parsed.help) return parsed;
    console.log(usage);
    process.exit(0);
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    process.exit(64);
  }
}

/** People wait for `npm test` and the gate, and each commit draws other inputs: only the night takes all runs. */
function fuzzShare() {
  if (own.nightly || own.patterns.length > 0) return {};
  return { BLOOM_FUZZ_SHARE: own.full ? '0.3' : '0.1' };
}

function commit() {
  return spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout ?? '';
}

function reportMissing() {
  const missing = ensurePackages();
  if (missing.length === 0) return;
  console.warn(`\n*** Not on this machine: ${missing.join(' ')}. Tests that need them will be SKIPPED.`);
  console.warn(`*** Install them with: sudo apt-get install ${missing.join(' ')}\n`);
}

function collect(what, { report, late }) {
  if (late) results.fail(what, 'ran into its time limit and was killed');
  else if (report === undefined) results.fail(what, 'jest ended without a report');
  if (report !== undefined) results.add(report, (path) => relative(root, path));
}

async function runUnitTests() {
  if (files.unit.length === 0) return;
  const run = await jest.run({
    project: 'unit',
    files: files.unit,
    // One more than the cores, because some files wait for other programs.
    options: [`--maxWorkers=${availableParallelism() + 1}`, `--workerIdleMemoryLimit=${WORKER_MEMORY}`],
    timeLimitMs: (own.nightly ? 180 : 30) * MINUTE_MS,
    // Jest would list every file again.
    onOutput: (chunk) => process.stderr.write(String(chunk).replace(/^Ran all test suites within paths .*\n?/m, '')),
  });
  collect('unit tests', run);
}

/** Runs a script of this repository. Resolves with false if it fails. */
async function provide(...args) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  process.once('exit', () => child.kill());
  const [code] = await once(child, 'exit');
  return code === 0;
}

/**
 * Builds the container images here, because the tests' namespaces reach no registry; they take every layer from the
 * cache.
 */
async function provideImages() {
  if (!plans.some(({ file }) => file.startsWith('e2e/containers/')) || containersUnavailable() !== undefined) return;
  const from = performance.now();
  if (await provide('scripts/deploy/container-image.mjs')) results.containerImages(performance.now() - from);
  else results.fail('container images', 'could not be built');
}

/** Installs the examples here, for the same reason. Without a registry their tests are skipped, loudly. */
async function provideExamples() {
  if (!plans.some(({ file }) => file === 'e2e/client/examples.test.ts')) return;
  const folder = join(workspace.folder, 'examples');
  const installed = await provide('scripts/docs/install-examples.mjs', folder);
  jest.env.BLOOM_EXAMPLES = installed ? folder : '';
  if (!installed) console.warn('\n*** The examples cannot be installed, so their tests will be SKIPPED.\n');
}

/** Builds the last release for the mixed clusters. Without its commit their tests are skipped, loudly. */
async function provideLastRelease() {
  if (!plans.some(({ file }) => file.startsWith('e2e/releases/'))) return;
  if (!(await provide('scripts/testing/last-release.mjs')))
    console.warn('\n*** The last release cannot be built, so tests beside it will be SKIPPED.\n');
}

async function runFile({ file }) {
  const run = await jest.run({
    project: 'e2e',
    files: [file],
    // A socket or timer that a test leaked must not keep the run alive.
    options: ['--runInBand', '--forceExit'],
    // The variable sets how long e2e/hostile/random attacks.
    timeLimitMs: ((own.nightly ? 90 : 15) + Number(process.env.BLOOM_HOSTILE_MINUTES ?? 0)) * MINUTE_MS,
  });
  process.stderr.write(run.output.replace(/^Test Suites: [^]*$/m, ''));
  collect(file, run);
}

/** Runs each file in a separate process. Files that need the whole machine run alone, after the others. */
async function runEndToEnd() {
  const running = new Map();
  for (const plan of plans.filter(({ alone }) => !alone)) {
    while (!fits(plan, [...running.keys()], workspace)) await Promise.race(running.values());
    running.set(
      plan,
      runFile(plan).then(() => running.delete(plan)),
    );
  }
  await Promise.all(running.values());
  for (const plan of plans.filter(({ alone }) => alone)) await runFile(plan);
}
