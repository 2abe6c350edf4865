// Part of `npm run lint`: imports between packages go down the layers only, through a package's index; those between
// the folders of a package go down its floors. Modules form no cycle, dependencies are declared, and every export and
// every dependency is used.
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { checkDependencies } from './dependencies.mjs';
import { checkFloors } from './floors.mjs';
import { isForTests, readModules, report, root } from './modules.mjs';

/** The layers of docs/reference/architecture.md from the bottom up. A package may import only from earlier lines. */
const LAYERS = [
  ['time'],
  ['config', 'discovery', 'log', 'net', 'protocol'],
  ['processes'],
  ['etf', 'metrics', 'port-mapper', 'client', 'server-sdk'],
  ['distribution', 'react'],
  ['actors'],
  ['rtp'],
  ['webrtc'],
  ['participant', 'sfu'],
  ['rooms'],
  ['sip'],
  ['components', 'files'],
  ['negotiation'],
  ['signaling', 'whip', 'livekit'],
  ['http-api', 'notifications', 'inspection'],
];
const LAYER_OF = new Map(LAYERS.flatMap((names, level) => names.map((name) => [name, level])));

/** Indexes that are also an interface for code outside this workspace. */
const PUBLIC = new Set(['client', 'react', 'server-sdk']);

/** Entry points of packages besides their index. */
const ENTRIES = new Set(['@bloom/client/encryption', '@bloom/react/kit', '@bloom/react/kit.css']);

const modules = readModules();
const problems = [];
const where = (path) => relative(root, path);

/** Returns true for a module of Node or of a declared package. */
function isDeclared(specifier, declared) {
  const parts = specifier.split('/');

  return specifier.startsWith('node:') || declared.has(parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/'));
}

function checkLayers(module, declared) {
  const folder = join(root, module.group, module.name);
  const level = module.group === 'apps' ? LAYERS.length : LAYER_OF.get(module.name);
  const forTests = isForTests(module.path);
  const complain = (from, what) => problems.push(`${where(module.path)}: '${from}' ${what}`);

  for (const { specifier } of module.imports) {
    if (specifier.startsWith('.')) {
      const target = resolve(dirname(module.path), specifier);
      if (!forTests && isForTests(target)) complain(specifier, 'is test support');
      const inside = forTests ? ['src', 'wasm', 'dist'] : ['src', 'wasm'];
      if (!inside.some((name) => target.startsWith(join(folder, name) + sep)))
        complain(specifier, 'leaves the package');
      continue;
    }
    if (!specifier.startsWith('@bloom/')) {
      if (!forTests && !isDeclared(specifier, declared)) complain(specifier, 'is not in its package.json');
      continue;
    }
    const [, target, ...rest] = specifier.split('/');
    if (rest[0] === 'testing' && !forTests) complain(specifier, 'is test support');
    if (rest.length > 0 && rest.join('/') !== 'testing' && !ENTRIES.has(specifier))
      complain(specifier, `goes past the index of @bloom/${target}`);
    // Tests of other programs may start a node.
    if (forTests && specifier === '@bloom/app-bloom/testing' && declared.has('@bloom/app-bloom')) continue;
    const targetLevel = LAYER_OF.get(target);
    if (targetLevel === undefined) complain(specifier, 'has no layer: add it to scripts/check/imports.mjs');
    else if (level !== undefined && targetLevel >= level && target !== module.name)
      complain(specifier, `goes up or sideways (layer ${targetLevel} from ${level})`);
    if (!declared.has(`@bloom/${target}`)) complain(specifier, 'is not in its package.json');
  }
}

const manifests = new Map();
for (const module of modules.values()) {
  if (module.group !== 'packages' && module.group !== 'apps') continue;
  const folder = join(module.group, module.name);
  if (!manifests.has(folder)) {
    const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const { dependencies, devDependencies, optionalDependencies } = manifest;
    manifests.set(folder, new Set(Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })));
    if (module.group === 'packages' && !LAYER_OF.has(module.name))
      problems.push(`packages/${module.name} has no layer: add it to scripts/check/imports.mjs`);
  }
  checkLayers(module, manifests.get(folder));
}

problems.push(...checkFloors(modules), ...checkDependencies());

/** Returns groups of modules that import each other, directly or indirectly; type imports count. */
function circles() {
  const found = [];
  const order = new Map();
  const low = new Map();
  const stack = [];
  const visit = (path) => {
    order.set(path, order.size);
    low.set(path, order.get(path));
    stack.push(path);
    for (const { target } of modules.get(path)?.imports ?? []) {
      if (target === undefined || isForTests(target) || !modules.has(target)) continue;
      if (!order.has(target)) visit(target);
      if (stack.includes(target)) low.set(path, Math.min(low.get(path), low.get(target)));
    }
    if (low.get(path) !== order.get(path)) return;
    const group = stack.splice(stack.indexOf(path));
    if (group.length > 1) found.push(group);
  };
  for (const path of modules.keys()) if (!isForTests(path) && !order.has(path)) visit(path);

  return found;
}
for (const circle of circles()) problems.push(`circle: ${circle.map(where).toSorted().join(' <-> ')}`);

/** A user outside every package. */
const NOBODY = { group: '', name: '' };

/** Returns names used in other files, as `path#name`; `far` has those used outside the package. */
const used = new Set();
const far = new Set();
function markUsed(path, name, user) {
  const module = modules.get(path);
  const key = `${path}#${name}`;
  const outside = module !== undefined && (module.group !== user.group || module.name !== user.name);
  if (module === undefined || (used.has(key) && (!outside || far.has(key)))) return;
  if (name === '*') for (const own of module.exports.keys()) markUsed(path, own, user);
  if (name !== '*' && module.exports.has(name)) {
    used.add(key);
    if (outside) far.add(key);
  }
  for (const { target, reExports } of module.imports) {
    if (target === undefined || reExports === undefined) continue;
    if (reExports === '*') markUsed(target, name, user);
    else if (name !== '*' && reExports.has(name)) markUsed(target, reExports.get(name), user);
  }
}
for (const module of modules.values())
  for (const { target, names } of module.imports)
    for (const name of names === '*' ? ['*'] : names) {
      if (target === undefined) continue;
      // A test that imports its own package's index stands in for other packages.
      const isOutsider = isForTests(module.path) && target.endsWith('/src/index.ts');
      markUsed(target, name, isOutsider ? NOBODY : module);
    }

/** Returns all names that a module exports: its own and those it re-exports. */
function* exportsOf(path, seen = new Set()) {
  const module = modules.get(path);
  if (module === undefined || seen.has(path)) return;
  seen.add(path);
  for (const { target, reExports } of module.imports) {
    if (target === undefined || reExports === undefined) continue;
    if (reExports === '*') yield* exportsOf(target, seen);
    else for (const [here, there] of reExports) yield* originOf(target, there, here);
  }
  for (const [name, kind] of module.exports)
    if (!module.imports.some(({ reExports }) => reExports instanceof Map && reExports.has(name)))
      yield { name, origin: path, kind };
}
function* originOf(path, name, here) {
  for (const each of exportsOf(path)) if (each.name === name) yield { ...each, name: here };
}

/**
 * An index exports a value only if another package uses it, or if it is an error that callers catch. It may also export
 * a type that a used declaration names, in the type's file or in a file that imports it.
 */
function checkIndex(index) {
  const all = [...exportsOf(index)];
  const isFar = ({ name, origin }) => far.has(`${origin}#${name}`) || far.has(`${index}#${name}`);
  const alive = new Set(all.filter(isFar).map(({ origin }) => origin));
  for (const each of all) {
    if (isFar(each)) continue;
    const named =
      each.name.endsWith('Error') ||
      (each.kind === 'type' &&
        [...alive].some(
          (path) =>
            path === each.origin ||
            modules.get(path).imports.some(({ names }) => names !== '*' && names.includes(each.name)),
        ));
    if (!named) problems.push(`${where(index)}: no other package uses '${each.name}'`);
    else used.add(`${each.origin}#${each.name}`);
  }
}
for (const module of modules.values()) {
  if (module.group !== 'packages' || !/\/src\/((kit|encryption)\/)?index\.ts$/.test(module.path)) continue;
  if (PUBLIC.has(module.name)) for (const { name, origin } of exportsOf(module.path)) used.add(`${origin}#${name}`);
  else checkIndex(module.path);
}
for (const module of modules.values()) {
  for (const [name, kind] of module.exports) {
    if (module.path.endsWith('/index.ts') || used.has(`${module.path}#${name}`)) continue;
    // A type named in its own file belongs to what it describes: a function's options, the fields of a result.
    if (kind === 'type' && module.text.match(new RegExp(`\\b${name}\\b`, 'g')).length > 1) continue;
    problems.push(`${where(module.path)}: no other file uses '${name}'; do not export it`);
  }
}

report(problems);
