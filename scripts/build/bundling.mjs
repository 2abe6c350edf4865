// Bundles Node programs so that they start fast; skips a bundle whose inputs have not changed.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../setup.mjs';

function fingerprint(files) {
  const seen = files.map((file) => {
    const path = join(root, file);
    if (!existsSync(path)) return file;
    const { size, mtimeMs } = statSync(path);
    return `${file} ${size} ${mtimeMs}`;
  });
  return createHash('sha256').update(seen.join('\n')).digest('hex');
}

/** Name of the file in a bundle's folder that lists its inputs. */
const stampOf = (outdir) => join(root, outdir, '.bundled-from');

/** Returns true if the bundle in a folder, relative to the root, is complete and up to date. */
export function isFresh(outdir) {
  if (!existsSync(stampOf(outdir))) return false;
  const { files, digest } = JSON.parse(readFileSync(stampOf(outdir), 'utf8'));
  return fingerprint(files) === digest;
}

/** Gives CommonJS packages in an ES module the `require` that they expect. */
export const REQUIRE =
  "import{createRequire as bundledRequire}from'node:module';const require=bundledRequire(import.meta.url);";

/** What all bundles of bloomctl have in common. */
export const bloomctlOptions = {
  entryPoints: { bloomctl: 'apps/bloomctl/dist/modules/main.js' },
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: true,
  define: { 'process.env.NODE_ENV': '"production"', 'process.env.DEV': '"false"' },
};

/**
 * Bundles into `outdir`. `readFiles` are inputs other than modules. `check` receives each written file, by its path
 * relative to the root, and throws if the bundle is unusable; the next build then tries again.
 */
export async function bundle({ script, outdir, readFiles = [], check = () => {}, ...options }) {
  const { build } = await import('esbuild');
  const { metafile } = await build({
    absWorkingDir: root,
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    banner: { js: REQUIRE },
    metafile: true,
    logLevel: 'warning',
    ...options,
  });
  const outputs = Object.keys(metafile.outputs);
  for (const file of outputs) check(file);
  const files = [
    ...Object.keys(metafile.inputs).filter((file) => existsSync(join(root, file))),
    ...readFiles,
    ...outputs,
  ];
  for (const own of [script, import.meta.url]) files.push(relative(root, fileURLToPath(own)));
  writeFileSync(stampOf(outdir), JSON.stringify({ digest: fingerprint(files), files }));
}
