// Bundles programs of Node for starting fast, when something has changed since the last time.
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

/** What a bundle was made from is noted in its folder. */
const stampOf = (outdir) => join(root, outdir, '.bundled-from');

/** Returns whether the bundle in a folder, relative to the root, is whole and made from the files as they are now. */
export function isFresh(outdir) {
  if (!existsSync(stampOf(outdir))) return false;
  const { files, digest } = JSON.parse(readFileSync(stampOf(outdir), 'utf8'));
  return fingerprint(files) === digest;
}

/**
 * Bundles into `outdir`. `readFiles` are files that the bundle is made from besides its modules; `check` throws for a written
 * file, given by its path relative to the root, with which the bundle is no good: the next build tries again.
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
    banner: {
      js: "import{createRequire as bundledRequire}from'node:module';const require=bundledRequire(import.meta.url);",
    },
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
