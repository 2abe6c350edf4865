// `npm run build:bloomctl`: writes bloomctl as one file for machines without this checkout, which need only Node 20.
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { bloomctlOptions, REQUIRE } from './bundling.mjs';
import { root, setUp } from '../setup.mjs';

/** React's devtools, which ink loads only in development: an import that cannot be resolved would end the program. */
const withoutDevtools = {
  name: 'without react-devtools-core',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^react-devtools-core$/ }, ({ path }) => ({ path, namespace: 'none' }));
    onLoad({ filter: /.*/, namespace: 'none' }, () => ({ contents: 'export default undefined;' }));
  },
};

// Tests name a file of their own, and have a workspace that is built.
const [, , chosen] = process.argv;
if (chosen === undefined) setUp();
const file = resolve(chosen ?? join(root, 'dist', 'bloomctl.mjs'));
mkdirSync(dirname(file), { recursive: true });
const { build } = await import('esbuild');
await build({
  ...bloomctlOptions,
  absWorkingDir: root,
  entryPoints: Object.values(bloomctlOptions.entryPoints),
  outfile: file,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // Licences go where the code goes.
  legalComments: 'eof',
  banner: { js: `#!/usr/bin/env node\n${REQUIRE}` },
  plugins: [withoutDevtools],
  logLevel: 'warning',
});
chmodSync(file, 0o755);
console.log(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
