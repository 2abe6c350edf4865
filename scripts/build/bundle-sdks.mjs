// Bundles each published package, with the parts of other packages that it uses and its types, into one file, so it
// depends on nothing in this workspace: as an ES module and as CommonJS, the server SDK for browsers too. Part of every
// build and of `npm pack`.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { commonJsOf } from './common-js.mjs';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const browser = { entry: 'index.js', format: 'esm', platform: 'browser', target: 'es2022' };
const node = { entry: 'index.js', format: 'esm', platform: 'node', target: 'node20' };
/** The kit must share the page's only copy of the hooks: a second copy would create a second React context. */
const kit = { ...browser, entry: 'kit/index.js', plugins: [outside('../index.js', '@bloom/react')] };
/** Parts of the client that are loaded when a call needs them, also by a CommonJS bundle, since `import()` can. */
const later = ['measurement.js', 'moving.js'];
const client = { ...browser, plugins: later.map((file) => outside(`./${file}`, `./${file}`)) };
const encryption = { ...browser, entry: 'encryption/index.js', define: () => ({ WORKER_SOURCE: workerSource() }) };
const sdks = {
  client: {
    'index.js': client,
    'index.cjs': { ...client, format: 'cjs' },
    ...Object.fromEntries(later.map((file) => [file, { ...browser, entry: file }])),
    'encryption-worker.js': { ...browser, entry: 'encryption/worker.js', format: 'iife', minify: true },
    'encryption.js': encryption,
    'encryption.cjs': { ...encryption, format: 'cjs' },
  },
  react: {
    'index.js': browser,
    'index.cjs': { ...browser, format: 'cjs' },
    'kit.js': kit,
    'kit.cjs': { ...kit, format: 'cjs' },
  },
  'server-sdk': {
    'index.js': node,
    'index.cjs': { ...node, format: 'cjs' },
    'browser.js': { ...browser, entry: 'browser.js', plugins: [replace('socket.js', 'web-socket.js')] },
  },
};
const styles = { react: { 'src/kit/kit.css': 'kit.css' } };

for (const [name, bundles] of Object.entries(sdks)) {
  const folder = join(root, 'packages', name);
  const dist = join(folder, 'dist');
  const types = join(dist, 'types');
  if (!existsSync(join(types, 'index.js'))) continue;
  const { dependencies = {}, peerDependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  for (const [file, { entry, define = () => ({}), ...options }] of Object.entries(bundles)) {
    const all = {
      absWorkingDir: root,
      entryPoints: [join(types, entry)],
      outfile: join(dist, file),
      bundle: true,
      external: Object.keys({ ...dependencies, ...peerDependencies }).flatMap((one) => [one, `${one}/*`]),
      logLevel: 'warning',
      define: define(),
      ...options,
    };
    const small = options.format === 'cjs' ? await smallCommonJs(all) : undefined;
    if (small === undefined) await build(all);
    else writeFileSync(all.outfile, small);
  }
  writeCommonJsTypes(types, join(dist, 'types-cjs'));
  for (const [from, to] of Object.entries(styles[name] ?? {})) {
    copyFileSync(join(folder, from), join(dist, to));
    // TypeScript 6 and newer import no file without types. An ES module may import CommonJS, but not the reverse.
    writeFileSync(join(dist, `${to}.d.cts`), 'export {};\n');
  }
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

/** The worker of `@bloom/client/encryption` as a literal: the package starts it without a file of its own. */
function workerSource() {
  return JSON.stringify(readFileSync(join(root, 'packages', 'client', 'dist', 'encryption-worker.js'), 'utf8'));
}

async function smallCommonJs(options) {
  const { outputFiles } = await build({ ...options, format: 'esm', write: false });

  return commonJsOf(outputFiles[0].text);
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

/** Imports a module from a package at run time instead of bundling it. */
function outside(module, name) {
  return {
    name: `${module} from ${name}`,
    setup: ({ onResolve }) =>
      onResolve({ filter: /^\.\.?\// }, ({ path }) => (path === module ? { path: name, external: true } : undefined)),
  };
}

function writeCommonJsTypes(types, commonJsTypes) {
  rmSync(commonJsTypes, { recursive: true, force: true });
  for (const file of readdirSync(types, { recursive: true }).filter((one) => one.endsWith('.d.ts'))) {
    const text = readFileSync(join(types, file), 'utf8').replaceAll(/(from '\.{1,2}\/[\w-]+)\.js'/g, "$1.cjs'");
    const target = join(commonJsTypes, file.replace(/ts$/, 'cts'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
}
