// Bundles a node's programs into a few files: reading and compiling two thousand modules takes a third of its start.
// Part of every build; does nothing when nothing has changed.
import { copyFileSync, cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { bundle, isFresh } from './bundling.mjs';
import { root } from '../setup.mjs';

/** Programs by the app whose `dist` receives them, each at the path where that app's modules look for it. */
const PROGRAMS = {
  bloom: {
    main: 'apps/bloom/dist/modules/main.js',
    // For tests that start a node in a separate process.
    node: 'apps/bloom/dist/modules/node.js',
    'worker-main': 'packages/sfu/dist/engine/worker-main.js',
    'mix-main': 'packages/components/dist/mix/mix-main.js',
    'engine/engine-main': 'packages/components/dist/hls/engine/engine-main.js',
    'engine/phone-main': 'packages/components/dist/sip/engine/phone-main.js',
    'engine/puller-main': 'packages/components/dist/rtsp/engine/puller-main.js',
  },
  'port-mapper': { main: 'apps/port-mapper/dist/modules/main.js' },
};

const DOCS_PAGE = 'packages/http-api/dist/docs-page';
const WASM = 'packages/webrtc/wasm/protect4.wasm';

/** Files in an app's `dist` that do not belong to its bundle. */
const COMPILED = ['modules', '.tsbuildinfo'];

/** Packages loaded from node_modules: native code, and one that reads its own file. */
const EXTERNAL = ['node-av', 'node-av/*', '@evan/opus', '@evan/opus/*'];

/** Modules look for the WebAssembly in their package, and bundles beside themselves. */
const wasmBeside = {
  name: 'wasm-beside',
  setup({ onLoad }) {
    onLoad({ filter: /wasm-kernel\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replace('../../wasm/', './'),
      resolveDir: dirname(path),
    }));
  },
};

/** @throws Error for faults that would show only in use: a missing file beside a module, a package without names */
function check(file) {
  if (!file.endsWith('.js')) return;
  const code = readFileSync(file, 'utf8');
  if (/^export default require_/m.test(code)) {
    throw new Error(`${file} is a CommonJS package that is loaded with import(): its exports have no names there`);
  }
  for (const [, path] of code.matchAll(/new URL\("(\.[^"]+)", import\.meta\.url\)/g)) {
    const opened = join(dirname(file), path);
    if (!existsSync(opened)) throw new Error(`${file} opens ${opened}, which is not in the bundle: see PROGRAMS`);
  }
}

process.chdir(root);
for (const [app, entryPoints] of Object.entries(PROGRAMS)) {
  const outdir = `apps/${app}/dist`;
  if (isFresh(outdir)) continue;
  for (const name of readdirSync(outdir)) {
    if (!COMPILED.includes(name)) rmSync(join(outdir, name), { recursive: true });
  }
  if (app === 'bloom') {
    cpSync(DOCS_PAGE, join(outdir, basename(DOCS_PAGE)), { recursive: true });
    copyFileSync(WASM, join(outdir, basename(WASM)));
  }
  await bundle({
    script: import.meta.url,
    outdir,
    entryPoints,
    readFiles: app === 'bloom' ? [WASM, `${DOCS_PAGE}/package.json`] : [],
    // Lets stack traces name source lines.
    sourcemap: true,
    sourcesContent: false,
    external: EXTERNAL,
    plugins: [wasmBeside],
    check,
  });
}
