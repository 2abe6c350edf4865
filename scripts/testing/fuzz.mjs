// `npm run test:fuzz`: runs the property tests of parsers of strangers' input a million times, file by file, and fails
// if a test fails, an input takes more than 50 ms, or memory grows. Arguments: file patterns, `--runs N`, `--minutes N`
// (at most, per test), `--seed N`.
import { randomInt } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup.mjs';
import { testFiles } from './suites.mjs';
import { Workspace } from './workspace.mjs';

const MINUTE_MS = 60_000;
const MAX_TURN_MS = 50;
/** Allowed growth of the heap from the 2,000th to the last input. */
const MAX_GROWTH_BYTES = 8 * 1024 * 1024;

const args = process.argv.slice(2);
const runs = option('--runs', 1_000_000);
const minutes = option('--minutes', 5);
const seed = option('--seed', randomInt(2 ** 31));

const files = testFiles(root, args).unit.filter((file) => readFileSync(join(root, file), 'utf8').includes('fuzzRuns('));
const workspace = new Workspace();
let failures = 0;
console.log(`Seed ${seed}, ${runs} inputs or ${minutes} minutes for each test`);
for (const [i, file] of files.entries()) await fuzz(file, join(workspace.folder, `report-${i}`));
workspace.close();
console.log(`${failures} failures in ${files.length} files`);
process.exit(failures === 0 ? 0 : 1);

function option(name, usual) {
  const at = args.indexOf(name);
  return at < 0 ? usual : Number(args.splice(at, 2)[1]);
}

async function fuzz(file, report) {
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const limitMs = minutes * MINUTE_MS;
  const { code, output } = await workspace.run(
    process.execPath,
    [
      '--experimental-vm-modules',
      '--no-warnings',
      jest,
      '--runInBand',
      '--forceExit',
      '--testTimeout',
      String(10 * limitMs),
      '--runTestsByPath',
      file,
      '--selectProjects',
      'unit',
    ],
    {
      cwd: root,
      env: {
        BLOOM_TEST_RUN: '1',
        BLOOM_SEED: String(seed),
        BLOOM_FUZZ_RUNS: String(runs),
        BLOOM_FUZZ_REPORT: report,
        BLOOM_FUZZ_LIMIT_MS: String(limitMs),
      },
      timeLimitMs: 100 * limitMs,
    },
  );
  if (code !== 0) complain(`FAILED ${file}\n${output}`);
  const lines = existsSync(report) ? readFileSync(report, 'utf8').trim().split('\n') : [];
  for (const line of lines) judge(file, JSON.parse(line));
}

function judge(file, { name, runs: done, longestMs, settledBytes, bytes }) {
  const grownBytes = bytes === 0 ? 0 : bytes - settledBytes;
  const grownMib = (grownBytes / 1024 ** 2).toFixed(1);
  console.log(`${done} runs, ${longestMs.toFixed(1)} ms at most, ${grownMib} MiB more  ${file}: ${name}`);
  if (longestMs > MAX_TURN_MS) complain(`SLOW   ${file}: ${name}`);
  if (grownBytes > MAX_GROWTH_BYTES) complain(`GROWS  ${file}: ${name}`);
}

function complain(line) {
  failures += 1;
  console.log(line);
}
