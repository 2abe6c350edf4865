// Bundles each published package, with the parts of other packages that it uses and its types, into one file, so it
// depends on nothing in this workspace. The server SDK is also bundled as CommonJS, and for browsers. Part of every
// build and of `npm pack`.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const browser = { entry: 'index.js', format: 'esm', platform: 'browser', target: 'es2022' };
const node = { entry: 'index.js', format: 'esm', platform: 'node', target: 'node20' };
const sdks = {
  client: { 'index.js': browser },
  react: { 'index.js': browser },
  'server-sdk': {
    'index.js': node,
    'index.cjs': { ...node, format: 'cjs' },
    'browser.js': { ...browser, entry: 'browser.js', plugins: [replace('socket.js', 'web-socket.js')] },
  },
};

for (const [name, bundles] of Object.entries(sdks)) {
  const folder = join(root, 'packages', name);
  const dist = join(folder, 'dist');
  const types = join(dist, 'types');
  if (!existsSync(join(types, 'index.js'))) continue;
  const { dependencies = {}, peerDependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  for (const [file, { entry, ...options }] of Object.entries(bundles)) {
    await build({
      absWorkingDir: root,
      entryPoints: [join(types, entry)],
      outfile: join(dist, file),
      bundle: true,
      external: Object.keys({ ...dependencies, ...peerDependencies }).flatMap((one) => [one, `${one}/*`]),
      logLevel: 'warning',
      ...options,
    });
  }
  if ('index.cjs' in bundles) writeCommonJsTypes(types, join(dist, 'types-cjs'));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

/** Replaces a module of the package with another one beside it. */
function replace(module, other) {
  return {
    name: `${other} for ${module}`,
    setup: ({ onResolve }) =>
      onResolve({ filter: /^\.\// }, ({ path, resolveDir }) =>
        path === `./${module}` ? { path: join(resolveDir, other) } : undefined,
      ),
  };
}

function writeCommonJsTypes(types, commonJsTypes) {
  rmSync(commonJsTypes, { recursive: true, force: true });
  mkdirSync(commonJsTypes, { recursive: true });
  for (const file of readdirSync(types).filter((one) => one.endsWith('.d.ts'))) {
    const text = readFileSync(join(types, file), 'utf8').replaceAll(/(from '\.\/[\w-]+)\.js'/g, "$1.cjs'");
    writeFileSync(join(commonJsTypes, file.replace(/ts$/, 'cts')), text);
  }
}
