// Puts each published package and the parts of other packages that it uses into one file, with types: a published package depends on
// nothing of this workspace. The server SDK is also bundled as CommonJS. Part of every build and of `npm pack`.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const sdks = [
  { name: 'client', platform: 'browser', target: 'es2022', formats: { esm: 'index.js' } },
  { name: 'react', platform: 'browser', target: 'es2022', formats: { esm: 'index.js' } },
  { name: 'server-sdk', platform: 'node', target: 'node20', formats: { esm: 'index.js', cjs: 'index.cjs' } },
];

for (const { name, platform, target, formats } of sdks) {
  const folder = join(root, 'packages', name);
  const dist = join(folder, 'dist');
  const types = join(dist, 'types');
  if (!existsSync(join(types, 'index.js'))) continue;
  const { dependencies = {}, peerDependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  for (const [format, file] of Object.entries(formats)) {
    await build({
      absWorkingDir: root,
      entryPoints: [join(types, 'index.js')],
      outfile: join(dist, file),
      bundle: true,
      format,
      platform,
      target,
      external: Object.keys({ ...dependencies, ...peerDependencies }).flatMap((one) => [one, `${one}/*`]),
      logLevel: 'warning',
    });
  }
  if ('cjs' in formats) writeCommonJsTypes(types, join(dist, 'types-cjs'));
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}

function writeCommonJsTypes(types, commonJsTypes) {
  rmSync(commonJsTypes, { recursive: true, force: true });
  mkdirSync(commonJsTypes, { recursive: true });
  for (const file of readdirSync(types).filter((one) => one.endsWith('.d.ts'))) {
    const text = readFileSync(join(types, file), 'utf8').replaceAll(/(from '\.\/[\w-]+)\.js'/g, "$1.cjs'");
    writeFileSync(join(commonJsTypes, file.replace(/ts$/, 'cts')), text);
  }
}
