// Parses the workspace's modules into imports and exports, for imports.mjs and style.mjs.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Tests and test support. They are not built, so production code must not import them. */
export const isForTests = (file) => /\.test\.tsx?$|[/\\]testing([/\\]|\.js$)/.test(file);

function* sources(folder) {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!['node_modules', 'dist', 'gen'].includes(entry.name)) yield* sources(path);
    } else if (/\.(ts|tsx|mts|mjs)$/.test(entry.name) && !entry.name.endsWith('.d.ts')) yield path;
  }
}

/**
 * @typedef {object} Import
 * @property {string} specifier
 * @property {string | undefined} target
 * @property {string[] | '*'} names
 * @property {Map<string, string> | '*' | undefined} reExports
 */
/**
 * @typedef {object} Module
 * @property {string} path
 * @property {string} group
 * @property {string} name
 * @property {string} text
 * @property {Import[]} imports
 * @property {Map<string, 'type' | 'value'>} exports
 */

/** Removes comments and leaves strings alone. */
export const withoutComments = (text) => text.replace(/\/\*[\s\S]*?\*\/|(?<=^|[\s;,{}()])\/\/.*$/gm, '');

function targetOf(file, specifier) {
  if (specifier.startsWith('.')) {
    const path = resolve(dirname(file), specifier).replace(/\/dist\//, '/src/');
    return [path.replace(/\.js$/, '.ts'), path.replace(/\.js$/, '.tsx'), path].find((each) => existsSync(each));
  }
  const [, own, rest] = /^@bloom\/([^/]+)(?:\/(.+))?$/.exec(specifier) ?? [];
  if (own === undefined) return undefined;
  const folder = join(root, 'packages', own, 'src', rest ?? '');
  return [join(folder, 'index.ts'), `${folder}.ts`].find((each) => existsSync(each));
}

/** Returns `a, type b as c` as pairs of the exported and the local name. */
const pairs = (list) =>
  list
    .split(',')
    .map((each) => each.trim().replace(/^type /, ''))
    .filter((each) => each !== '')
    .map((each) => {
      const [there, here = there] = each.split(' as ');
      return [there, here];
    });

function read(path) {
  const [group, name] = relative(root, path).split('/');
  const text = readFileSync(path, 'utf8');
  const code = withoutComments(text);
  const imports = [];
  const exports = new Map();
  const add = (specifier, names, reExports) =>
    imports.push({ specifier, target: targetOf(path, specifier), names, reExports });

  for (const [, what, specifier] of code.matchAll(/^import (?:type )?([^'"]*?) from '([^']+)'/gm)) {
    const list = /\{([^}]*)\}/.exec(what);
    const names = list === null ? [] : pairs(list[1]).map(([there]) => there);
    if (what.includes('* as')) add(specifier, '*');
    else add(specifier, /^\w/.test(what) ? [...names, 'default'] : names);
  }
  for (const [, specifier] of code.matchAll(/^import '([^']+)'/gm)) add(specifier, []);
  for (const [, specifier] of code.matchAll(/\bimport\(\s*'([^']+)',?\s*\)/g)) add(specifier, '*');
  for (const [, specifier] of code.matchAll(/^export \* from '([^']+)'/gm)) add(specifier, [], '*');
  for (const [, list, specifier] of code.matchAll(/^export (?:type )?\{([^}]*)\}(?: from '([^']+)')?/gm)) {
    const own = pairs(list);
    for (const [, here] of own) exports.set(here, 'value');
    if (specifier !== undefined) add(specifier, [], new Map(own.map(([there, here]) => [here, there])));
  }
  const declaration =
    /^export (?:declare |abstract |async |default )*(const|let|function\*?|class|interface|type|enum) (\w+)/gm;
  for (const [, kind, own] of code.matchAll(declaration))
    exports.set(own, kind === 'interface' || kind === 'type' ? 'type' : 'value');

  return { path, group, name, text, imports, exports };
}

/** Returns all modules of packages, apps, e2e and scripts, by path. */
export function readModules() {
  const folders = ['packages', 'apps'].flatMap((group) =>
    readdirSync(join(root, group)).map((name) => join(root, group, name, 'src')),
  );
  const all = [...folders, ...['e2e', 'scripts'].map((name) => join(root, name))];

  return new Map(all.flatMap((folder) => [...sources(folder)]).map((path) => [path, read(path)]));
}

/** Prints the findings and sets exit code 1 if there are any. */
export function report(problems) {
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}
