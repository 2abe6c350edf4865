// Compresses the part of Swagger UI that a browser needs, 0.5 of 12 MB, into the HTTP API. Part of every build.
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const manifest = createRequire(join(root, 'packages/http-api/package.json')).resolve('swagger-ui-dist/package.json');
const target = join(root, 'packages', 'http-api', 'dist', 'docs-page');
const stamp = join(target, 'package.json');
const wanted = readFileSync(manifest, 'utf8');

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  mkdirSync(target, { recursive: true });
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css']) {
    writeFileSync(join(target, `${name}.gz`), gzipSync(readFileSync(join(dirname(manifest), name)), { level: 9 }));
  }
  for (const name of ['LICENSE', 'NOTICE', 'swagger-ui-bundle.js.LICENSE.txt']) {
    copyFileSync(join(dirname(manifest), name), join(target, name));
  }
  writeFileSync(stamp, wanted);
}
