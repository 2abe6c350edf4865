// `npm run test:mutants`: breaks the riskiest code on purpose, one place at a time, and runs the tests that should
// notice. scripts/testing/mutants/*.json lists the places. A mutant that no test notices has SURVIVED; one that cannot
// be noticed says why in `equivalent`. Arguments: patterns of ids or files; `--sample N` takes every Nth; `--check`
// only checks that all places still exist.
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup.mjs';
import { stale } from './mutations.mjs';
import { Workspace } from './workspace.mjs';

const LANES = 2;
const LIMIT_MS = 60_000;
const MUST_DIE = 0.95;
const COPIED = ['packages', 'apps', 'e2e', 'scripts', 'jest.config.ts', 'package.json', 'tsconfig.json'];

const args = process.argv.slice(2);
const sampleAt = args.indexOf('--sample');
const every = sampleAt < 0 ? 1 : Number(args.splice(sampleAt, 2)[1]);

const data = join(root, 'scripts', 'testing', 'mutants');
const all = readdirSync(data).flatMap((name) => JSON.parse(readFileSync(join(data, name), 'utf8')));
const broken = stale(all, (file) => readFileSync(join(root, file), 'utf8'));
if (broken.length > 0) {
  console.error(
    `These mutations do not match the sources any more; mend scripts/testing/mutants:\n${broken.join('\n')}`,
  );
  process.exit(1);
}
if (args.includes('--check')) process.exit(0);
const chosen = all
  .filter(({ id, file }) => args.length === 0 || args.some((pattern) => new RegExp(pattern).test(`${id} ${file}`)))
  .filter((_, i) => i % every === 0);

const workspace = new Workspace();
const tally = { killed: 0, survived: [], equivalent: 0, wrong: [] };

const cache = join(root, 'node_modules', '.cache', 'jest-mutants');
// Not below node_modules, where jest ignores tests.
const trees = Array.from({ length: LANES }, (_, lane) => copyTree(join(workspace.folder, `tree-${lane}`)));
// A test that fails without a mutation would kill every mutant.
const patterns = [...new Set(chosen.flatMap(({ tests }) => tests))];
if (!(await passes(trees[0], patterns, 30 * LIMIT_MS))) {
  console.error('The tests fail before anything is mutated.');
  process.exit(1);
}
const queue = [...chosen];
await Promise.all(
  trees.map(async (tree) => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await judge(tree, next);
  }),
);
workspace.close();

const counted = tally.killed + tally.survived.length;
for (const line of [...tally.survived, ...tally.wrong]) console.log(line);
console.log(
  `\n${tally.killed} killed, ${tally.survived.length} survived, ${tally.equivalent} equivalent of ${chosen.length} mutants`,
);
process.exit(tally.wrong.length === 0 && tally.killed >= MUST_DIE * counted ? 0 : 1);

/** Copies the sources without build output; packages are found where they are installed. */
function copyTree(tree) {
  mkdirSync(tree);
  const filter = (path) => !/\/(dist|node_modules)$/.test(path);
  for (const name of COPIED) {
    cpSync(join(root, name), join(tree, name), { recursive: true, preserveTimestamps: true, filter });
  }
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  return tree;
}

async function passes(tree, tests, timeLimitMs) {
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const { code } = await workspace.run(
    process.execPath,
    [
      '--experimental-vm-modules',
      '--no-warnings',
      jest,
      '--rootDir',
      tree,
      '--runInBand',
      '--bail',
      '--silent',
      `--cacheDirectory=${cache}`,
      '--testPathPatterns',
      ...tests,
      '--selectProjects',
      'unit',
    ],
    { cwd: tree, env: { BLOOM_TEST_RUN: '1', BLOOM_SEED: '1' }, timeLimitMs },
  );
  return code === 0;
}

async function judge(tree, { id, file, find, replace, tests, equivalent }) {
  const path = join(tree, file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    source.replace(find, () => replace),
  );
  const lives = await passes(tree, tests, LIMIT_MS);
  writeFileSync(path, source);
  const where = `${id} ${file}: ${find.trim().slice(0, 60)}`;
  if (equivalent !== undefined && lives) tally.equivalent += 1;
  else if (equivalent !== undefined) tally.wrong.push(`NOT EQUIVALENT ${where}`);
  else if (lives) tally.survived.push(`SURVIVED ${where}`);
  else tally.killed += 1;
  console.log(`${lives ? (equivalent === undefined ? 'SURVIVED' : 'equivalent') : 'killed'}  ${where}`);
}
