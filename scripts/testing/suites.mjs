// Which test files there are, and how e2e/suites.json wants the end-to-end ones to be run.
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

/** Paths of the test files below the root that match one of the patterns; all of them where there is no pattern. */
export function testFiles(root, patterns = []) {
  const matches = (path) => patterns.length === 0 || patterns.some((pattern) => new RegExp(pattern).test(path));
  const below = (...folders) => folders.flatMap((folder) => [...walk(root, folder)].filter(matches).toSorted());
  return { unit: below('packages', 'apps', 'scripts'), e2e: below('e2e') };
}

/**
 * The end-to-end files to run, in order: proofs first, which get no second try; with `full` all others follow. Those that need
 * real time on a shared machine come last and may try a test once more: heavy ones, such as the attacks, run beside files that
 * measure no time. `lastMs` tells how long each took last time: long ones go first, so that no lane is left with one at the end.
 */
export function plan(files, suites, { full, lastMs = {} }) {
  const longestFirst = files.toSorted((a, b) => (lastMs[b] ?? Infinity) - (lastMs[a] ?? Infinity) || (a < b ? -1 : 1));
  const entries = longestFirst.map((file) => {
    const { proves, realTime = false, alone = false } = suites[file.replace(/^e2e\/|\.test\.ts$/g, '')] ?? {};
    return { file, proof: proves !== undefined, alone, secondTry: full && realTime && proves === undefined };
  });
  const others = full ? entries.filter(({ proof }) => !proof) : [];
  return [
    ...entries.filter(({ proof }) => proof),
    ...others.filter(({ secondTry }) => !secondTry),
    ...others.filter(({ secondTry }) => secondTry),
  ];
}
