// Part of `npm run lint`: imports between packages go down the layers only, through a package's index, and are declared.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The layers of docs/reference/architecture.md from the bottom up; a package may import from earlier lines only. */
const layers = [
  ['time', 'config', 'log', 'metrics', 'protocol', 'server-sdk'],
  ['etf', 'port-mapper', 'sip'],
  ['distribution'],
  ['actors', 'discovery'],
  ['rtp'],
  ['webrtc'],
  ['sfu'],
  ['rooms'],
  ['components'],
  ['http-api', 'signaling', 'notifications', 'inspection'],
];
const layerOf = new Map(layers.flatMap((names, level) => names.map((name) => [name, level])));
const problems = [];

function* sources(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (/\.(ts|tsx)$/.test(entry.name)) yield path;
  }
}

/** Tests and what they share. Neither is built, so nothing else may import them. */
const isForTests = (file) =>
  /\.test\.tsx?$|\.fixture\.(ts|js)$|[/\\]testing([/\\]|\.(ts|js)$)|-suite\.(ts|js)$/.test(file);

function check(kind, name) {
  const folder = join(root, kind, name);
  let files;
  try {
    files = [...sources(join(folder, 'src'))];
  } catch {
    return;
  }
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const declared = new Set([
    ...Object.keys(manifest.dependencies ?? {}),
    ...Object.keys(manifest.devDependencies ?? {}),
    ...Object.keys(manifest.optionalDependencies ?? {}),
  ]);
  const level = kind === 'apps' ? layers.length : layerOf.get(name);
  if (level === undefined) problems.push(`packages/${name} has no layer: add it to scripts/check-imports.mjs`);

  for (const file of files) {
    const text = readFileSync(file, 'utf8');
    const where = relative(root, file);
    const forTests = isForTests(file);
    for (const [, from] of text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)) {
      if (from.startsWith('.')) {
        const target = resolve(dirname(file), from);
        if (!forTests && isForTests(target)) problems.push(`${where}: '${from}' is test support`);
        if (!target.startsWith(join(folder, 'src') + sep) && !target.startsWith(join(folder, 'wasm') + sep))
          problems.push(`${where}: '${from}' leaves the package`);
        continue;
      }
      if (!from.startsWith('@bloom/')) continue;
      const [, target, ...rest] = from.split('/');
      if (rest[0] === 'testing' && !forTests) problems.push(`${where}: '${from}' is test support`);
      if (rest.length > 0 && rest.join('/') !== 'testing')
        problems.push(`${where}: '${from}' goes past the index of @bloom/${target}`);
      const targetLevel = layerOf.get(target);
      if (targetLevel === undefined) problems.push(`${where}: '${from}' is no package of a layer`);
      else if (level !== undefined && targetLevel >= level && target !== name)
        problems.push(`${where}: '${from}' goes up or sideways (layer ${targetLevel} from ${level})`);
      if (!declared.has(`@bloom/${target}`)) problems.push(`${where}: '${from}' is not in its package.json`);
    }
  }
}

for (const kind of ['packages', 'apps'])
  for (const entry of readdirSync(join(root, kind), { withFileTypes: true }))
    if (entry.isDirectory()) check(kind, entry.name);

for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
