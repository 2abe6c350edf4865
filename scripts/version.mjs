// `npm run version:set -- 0.3.0` sets a new version everywhere in this repository. Without a version it is part of `npm
// run check`: package.json names the version, and everything else agrees, including the newest release in CHANGELOG.md.
// `/health`, the metrics and the links between members report that of apps/bloom.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './setup.mjs';

/** Files that contain the version in their text, and no other version. */
const TEXTS = [
  'Dockerfile',
  'apps/bloomctl/src/program.ts',
  'deploy/helm/bloom/Chart.yaml',
  'deploy/helm/bloom/values.yaml',
  'docs/guide/debugging.md',
  'docs/guide/erlang.md',
  'docs/guide/production.md',
  'docs/guide/shell.md',
  'docs/reference/openapi.json',
];
const MANIFESTS = [
  ...['packages', 'apps', 'docs/examples'].flatMap((folder) =>
    readdirSync(join(root, folder), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${folder}/${name}/package.json`),
  ),
  'e2e/package.json',
  'scripts/docs/api-pages/package.json',
];

const read = (path) => readFileSync(join(root, path), 'utf8');
/** Matches a manifest's own version, and those of the packages of this workspace on which it depends. */
const IN_MANIFEST = /^( {2}"version"|\s+"@bloom\/[\w-]+"): "([^"]*)"/gm;

/** Returns the files that disagree with the version. */
export function disagreeing(version) {
  const manifests = MANIFESTS.filter((path) =>
    [...read(path).matchAll(IN_MANIFEST)].some(([, , own]) => own !== version),
  );
  const texts = TEXTS.filter((path) => !read(path).includes(version));
  const [, released] = /^## (\d\S*)/m.exec(read('CHANGELOG.md')) ?? [];

  return [...manifests, ...texts, ...(released === version ? [] : ['CHANGELOG.md'])];
}

function setVersion(from, to) {
  for (const path of ['package.json', ...MANIFESTS])
    writeFileSync(join(root, path), read(path).replaceAll(IN_MANIFEST, `$1: "${to}"`));
  for (const path of TEXTS) writeFileSync(join(root, path), read(path).replaceAll(from, to));
  console.log(`Version ${to}. Now name the release in CHANGELOG.md, and run npm install --package-lock-only.`);
}

if (process.argv[1] === import.meta.filename) {
  const { version } = JSON.parse(read('package.json'));
  const [to] = process.argv.slice(2);
  if (to !== undefined && !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(to)) {
    console.error(`not a version: ${to}`);
    process.exitCode = 1;
  } else if (to !== undefined) setVersion(version, to);
  else {
    const others = disagreeing(version);
    for (const path of others) console.error(`${path}: names another version than package.json, ${version}`);
    if (others.length > 0) process.exitCode = 1;
  }
}
