// `npm run check`: types, lint, import directions, format. Every check runs, so a single call shows everything to fix.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { install, requireNode, root } from '../setup.mjs';

requireNode();
install();

const bin = (...path) => join(root, 'node_modules', ...path);
const steps = [
  ['types', [bin('typescript', 'bin', 'tsc'), '-b']],
  ['types of the tests', [bin('typescript', 'bin', 'tsc'), '-p', join(root, 'scripts', 'check')]],
  ['lint', [bin('oxlint', 'bin', 'oxlint'), '--deny-warnings']],
  ['imports', [join(root, 'scripts', 'check', 'imports.mjs')]],
  ['style', [join(root, 'scripts', 'check', 'style.mjs')]],
  ['versions agree', [join(root, 'scripts', 'version.mjs')]],
  ['recipes fit the sources', [join(root, 'scripts', 'check', 'recipes.mjs')]],
  ['faults of werift-sctp', [join(root, 'scripts', 'check', 'werift-sctp.mjs')]],
  ['mutants match the sources', [join(root, 'scripts', 'testing', 'mutants.mjs'), '--check']],
  ['format', [bin('@biomejs', 'biome', 'bin', 'biome'), 'format', '--diagnostic-level=error']],
];
// Projects with other type libraries (the browser's) are not part of the build.
for (const project of ['apps/dashboard', 'e2e']) {
  if (existsSync(join(root, project, 'tsconfig.json'))) {
    steps.push([`types of ${project}`, [bin('typescript', 'bin', 'tsc'), '--noEmit', '-p', join(root, project)]]);
  }
}

let failed = 0;
for (const [name, args] of steps) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  console.log(`${status === 0 ? 'ok  ' : 'FAIL'}  ${name}`);
  if (status !== 0) failed += 1;
}
process.exit(failed === 0 ? 0 : 1);
