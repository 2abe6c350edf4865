// `npm run build:bloomctl`: writes bloomctl as one file for machines without this checkout, which need only Node 20.
import { appendFileSync, chmodSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { bloomctlOptions, REQUIRE } from './bundling.mjs';
import { licencesOf } from './licences.mjs';
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
const { metafile } = await build({
  ...bloomctlOptions,
  absWorkingDir: root,
  entryPoints: Object.values(bloomctlOptions.entryPoints),
  outfile: file,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  metafile: true,
  legalComments: 'eof',
  banner: { js: `#!/usr/bin/env node\n${REQUIRE}` },
  plugins: [withoutDevtools],
  logLevel: 'warning',
});
// Licences go where the code goes.
const [output] = Object.values(metafile.outputs);
const used = Object.keys(output.inputs).filter((input) => output.inputs[input].bytesInOutput > 0);
const licences = `bloomctl\n\n${readFileSync(join(root, 'LICENSE'), 'utf8')}\n${licencesOf(used)}`;
appendFileSync(file, `/*! Licences\n\n${licences.replaceAll('*/', '* /')}\n*/\n`);
chmodSync(file, 0o755);
console.log(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
