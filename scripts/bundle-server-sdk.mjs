// Puts the server SDK and the parts of @bloom/protocol that it uses into one file, as an ES module and as CommonJS, with types for both:
// the published package depends on nothing of this workspace. Part of every build and of `npm pack`.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const sdk = join(root, 'packages', 'server-sdk');
const dist = join(sdk, 'dist');
const types = join(dist, 'types');
const commonJsTypes = join(dist, 'types-cjs');
const { dependencies } = JSON.parse(readFileSync(join(sdk, 'package.json'), 'utf8'));

if (existsSync(join(types, 'index.js'))) {
  for (const [format, file] of [
    ['esm', 'index.js'],
    ['cjs', 'index.cjs'],
  ]) {
    await build({
      absWorkingDir: root,
      entryPoints: [join(types, 'index.js')],
      outfile: join(dist, file),
      bundle: true,
      format,
      platform: 'node',
      target: 'node20',
      external: Object.keys(dependencies).flatMap((name) => [name, `${name}/*`]),
      logLevel: 'warning',
    });
  }

  rmSync(commonJsTypes, { recursive: true, force: true });
  mkdirSync(commonJsTypes, { recursive: true });
  for (const name of readdirSync(types).filter((file) => file.endsWith('.d.ts'))) {
    const text = readFileSync(join(types, name), 'utf8').replaceAll(/(from '\.\/[\w-]+)\.js'/g, "$1.cjs'");
    writeFileSync(join(commonJsTypes, name.replace(/ts$/, 'cts')), text);
  }
  copyFileSync(join(root, 'LICENSE'), join(sdk, 'LICENSE'));
}
