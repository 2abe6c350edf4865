// Puts `bloomctl` and everything it needs into one file, with the full-screen view as a chunk of its own: loading some
// hundred small modules takes longer than asking a cluster. Part of every build; does nothing when nothing has changed.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const app = join(root, 'apps', 'bloomctl');
const entry = join(app, 'dist', 'modules', 'main.js');
const program = join(app, 'dist', 'bloomctl.js');
const chunks = join(app, 'dist', 'chunks');
const stamp = join(app, 'dist', '.bundled-from');

/** Of the files that went in last time. */
function fingerprint(files) {
  const seen = files.map((file) => {
    const path = join(root, file);
    if (!existsSync(path)) return file;
    const { size, mtimeMs } = statSync(path);
    return `${file} ${size} ${mtimeMs}`;
  });
  return createHash('sha256').update(seen.join('\n')).digest('hex');
}

function isFresh() {
  if (!existsSync(program) || !existsSync(stamp)) return false;
  const { files, digest } = JSON.parse(readFileSync(stamp, 'utf8'));
  return fingerprint(files) === digest;
}

async function bundleBloomctl() {
  if (!existsSync(entry) || isFresh()) return;
  const { build } = await import('esbuild');
  rmSync(chunks, { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { bloomctl: entry },
    outdir: join(app, 'dist'),
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: true,
    legalComments: 'linked',
    define: { 'process.env.NODE_ENV': '"production"', 'process.env.DEV': '"false"' },
    // A debugger of React that ink asks for in development only.
    external: ['react-devtools-core'],
    banner: {
      js: "import{createRequire as bloomctlRequire}from'node:module';const require=bloomctlRequire(import.meta.url);",
    },
    metafile: true,
    logLevel: 'warning',
  });
  const files = Object.keys(metafile.inputs).filter((file) => existsSync(join(root, file)));
  writeFileSync(stamp, JSON.stringify({ digest: fingerprint(files), files }));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await bundleBloomctl();
