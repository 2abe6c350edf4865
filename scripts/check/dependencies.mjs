// Part of imports.mjs: a manifest names no unused package, and no runtime dependency that only tests use.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isForTests, root } from './modules.mjs';

/** Returns true if a text names the package or one of its modules as a string. */
function isNamed(name, text) {
  return ["'", '"', '`'].some((quote) => text.includes(`${quote}${name}${quote}`) || text.includes(`${quote}${name}/`));
}

/**
 * Returns the faults of a manifest's dependencies. `production` is the text of the files that run, `all` includes tests
 * and build scripts.
 */
export function unusedDependencies({ home, manifest, production, all }) {
  const problems = [];
  // Types are used if the package that they describe is.
  const subjectOf = (name) => name.replace(/^@types\//, '');
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
    if (isNamed(name, production)) continue;
    const used = isNamed(name, all);
    problems.push(`${home}/package.json: ${used ? `only tests use '${name}'` : `nothing uses '${name}'`}`);
  }
  for (const name of Object.keys(manifest.devDependencies ?? {}))
    if (!isNamed(subjectOf(name), all)) problems.push(`${home}/package.json: nothing uses '${name}'`);

  return problems;
}

function* filesOf(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!['node_modules', 'dist'].includes(entry.name)) yield* filesOf(path);
    } else if (/\.(ts|tsx|mts|js|mjs|cjs|css|html)$/.test(entry.name)) yield path;
  }
}

const textOf = (paths) => paths.map((path) => readFileSync(path, 'utf8')).join('\n');

/** Checks the manifests of all packages, programs and end-to-end tests. */
export function checkDependencies() {
  const scripts = textOf([...filesOf(join(root, 'scripts'))]);
  const homes = ['packages', 'apps'].flatMap((group) =>
    readdirSync(join(root, group)).map((name) => `${group}/${name}`),
  );
  const productionOf = (home) => textOf([...filesOf(join(root, home))].filter((path) => !isForTests(path)));

  return [...homes, 'e2e'].flatMap((home) => {
    const manifest = JSON.parse(readFileSync(join(root, home, 'package.json'), 'utf8'));
    // A published package bundles others of this workspace, and needs at run time what they need.
    const bundled = manifest.publishConfig === undefined ? [] : Object.keys(manifest.devDependencies ?? {});
    const parts = bundled
      .filter((name) => name.startsWith('@bloom/'))
      .map((name) => name.replace('@bloom', 'packages'));
    const production = [home, ...parts].map(productionOf).join('\n');

    return unusedDependencies({
      home,
      manifest,
      production,
      all: production + textOf([...filesOf(join(root, home))]) + scripts,
    });
  });
}
