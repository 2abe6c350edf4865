// Bundles `bloomctl` and its dependencies into one file, with a separate chunk for the full-screen view: loading
// hundreds of small modules takes longer than asking a cluster. Part of every build; does nothing when nothing has
// changed.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bloomctlOptions, bundle, isFresh } from './bundling.mjs';
import { root } from '../setup.mjs';

const dist = 'apps/bloomctl/dist';
const entry = bloomctlOptions.entryPoints.bloomctl;

async function bundleBloomctl() {
  if (!existsSync(join(root, entry)) || isFresh(dist)) return;
  rmSync(join(root, dist, 'chunks'), { recursive: true, force: true });
  await bundle({
    ...bloomctlOptions,
    script: import.meta.url,
    outdir: dist,
    chunkNames: 'chunks/[name]-[hash]',
    legalComments: 'linked',
    // React's devtools, which ink loads only in development.
    external: ['react-devtools-core'],
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await bundleBloomctl();
