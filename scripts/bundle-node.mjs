// Puts the programs of a node into a few files, for the container image: reading and compiling two thousand modules takes a
// third of its start. Replaces compiled files of the tree that it runs in, so it is no part of the build of a checkout.
import { cpSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { root } from './setup.mjs';

/** Programs by the app whose `dist` they go into, each at the path where the modules of that app look for it. */
const PROGRAMS = {
  bloom: {
    main: 'apps/bloom/dist/main.js',
    'worker-main': 'packages/sfu/dist/engine/worker-main.js',
    'engine/engine-main': 'packages/components/dist/hls/engine/engine-main.js',
    'engine/phone-main': 'packages/components/dist/sip/engine/phone-main.js',
    'engine/puller-main': 'packages/components/dist/rtsp/engine/puller-main.js',
  },
  'port-mapper': { main: 'apps/port-mapper/dist/main.js' },
};

/** Files that modules read, by the path where the bundled modules look for them. */
const READ_FILES = {
  'apps/bloom/dist/docs-page': 'packages/http-api/dist/docs-page',
  'apps/wasm/protect4.wasm': 'packages/webrtc/wasm/protect4.wasm',
};

/** Loaded from node_modules: native code, and a package that reads a file of its own. */
const EXTERNAL = ['node-av', 'node-av/*', '@evan/opus', '@evan/opus/*'];

async function bundle(app, entryPoints) {
  const dist = join('apps', app, 'dist');
  const bundled = `${dist}-bundled`;
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints,
    outdir: bundled,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Stack traces name lines of the sources.
    sourcemap: true,
    sourcesContent: false,
    external: EXTERNAL,
    banner: {
      js: "import{createRequire as bundledRequire}from'node:module';const require=bundledRequire(import.meta.url);",
    },
    metafile: true,
    logLevel: 'warning',
  });
  rmSync(dist, { recursive: true });
  renameSync(bundled, dist);
  return Object.keys(metafile.outputs).map((file) => file.replace(bundled, dist));
}

/** @throws Error for a file that bundled modules open beside themselves and that is not there */
function checkReadFiles(file) {
  for (const [, path] of readFileSync(file, 'utf8').matchAll(/new URL\("(\.[^"]+)", import\.meta\.url\)/g)) {
    const opened = join(dirname(file), path);
    if (!existsSync(opened)) throw new Error(`${file} opens ${opened}, which is not in the bundle: see PROGRAMS`);
  }
}

process.chdir(root);
const written = [];
for (const [app, entryPoints] of Object.entries(PROGRAMS)) written.push(...(await bundle(app, entryPoints)));
for (const [path, source] of Object.entries(READ_FILES)) cpSync(source, path, { recursive: true });
for (const file of written.filter((name) => name.endsWith('.js'))) checkReadFiles(file);
