// Finds the test files, and orders the end-to-end ones by e2e/suites.json.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

function* walk(root, folder) {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      if (entry.name !== 'node_modules' && entry.name !== 'dist') yield* walk(root, path);
    } else if (/\.test\.tsx?$/.test(entry.name)) yield path;
  }
}

/** Returns the paths of the test files below the root that match a pattern; without patterns, all of them. */
export function testFiles(root, patterns = []) {
  const matches = (path) => patterns.length === 0 || patterns.some((pattern) => new RegExp(pattern).test(path));
  const below = (...folders) => folders.flatMap((folder) => [...walk(root, folder)].filter(matches).toSorted());
  return { unit: below('packages', 'apps', 'scripts'), e2e: below('e2e') };
}

/**
 * Returns the end-to-end files to run, in order. Proofs come first; with `full` all others follow. Of both, files that
 * need real time come last, so that heavy ones, such as the attacks, run beside files that measure no time. `lastMs`
 * has each file's last duration: long files go first, so that none is left running alone at the end. Files whose
 * bounds are strict by night only are `alone` only then.
 *
 * @param {string[]} files
 */
export function plan(files, suites, { full, nightly = false, lastMs = {} }) {
  const longestFirst = files.toSorted((a, b) => (lastMs[b] ?? Infinity) - (lastMs[a] ?? Infinity) || (a < b ? -1 : 1));
  const entries = longestFirst.map((file) => {
    const { proves, realTime = false, alone = false } = suites[file.replace(/^e2e\/|\.test\.ts$/g, '')] ?? {};
    return { file, proof: proves !== undefined, alone: alone === 'nightly' ? nightly : alone, realTime };
  });
  const later = ({ proof, realTime }) => (proof ? 0 : 2) + (realTime ? 1 : 0);
  return entries.filter(({ proof }) => full || proof).toSorted((a, b) => later(a) - later(b));
}

/**
 * Returns true if a file can run beside those that run. Files mostly wait, for clocks and other programs, so there are
 * three at a time, but two where one needs real time, and one without namespaces.
 */
export function fits(file, running, { isolated }) {
  if (!isolated) return running.length === 0;
  return running.length < ([file, ...running].some(({ realTime }) => realTime) ? 2 : 3);
}
