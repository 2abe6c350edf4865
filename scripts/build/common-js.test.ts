import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileFunction } from 'node:vm';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { commonJsOf } from './common-js.mjs';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-common-js-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Bundles modules by name, of which `index` is the first. */
async function bundle(modules: Record<string, string>): Promise<string | undefined> {
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(folder, `${name}.js`), text);
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: [join(folder, 'index.js')],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    packages: 'external',
  });

  return commonJsOf(outputFiles[0]?.text ?? '');
}

function run(text: string | undefined): unknown {
  const module = { exports: {} };
  compileFunction(text ?? '', ['exports', 'require', 'module'])(module.exports, undefined, module);

  return module.exports;
}

test('exports names as they are', async () => {
  expect(run(await bundle({ index: 'export const a = 1; export const $b = 2;' }))).toEqual({ a: 1, $b: 2 });
});

test('exports names that esbuild has changed, because another module has the same one', async () => {
  const other = 'const Foo = 1; export const bar = () => Foo;';
  const text = await bundle({ other, index: "import { bar } from './other.js'; export const Foo = 2 + bar();" });
  expect(text).toContain('Foo: Foo2');
  expect(run(text)).toEqual({ Foo: 3 });
});

test.each([
  ['a default export', 'export const a = 1; export default 2;'],
  ['an import', "import { readFileSync } from 'node:fs'; export const a = readFileSync;"],
  ['import.meta', 'export const a = () => import.meta.url;'],
  ['a top-level await', 'export const a = await Promise.resolve(1);'],
  ['a name of CommonJS', 'class module {} export const a = module;'],
  ['no export', 'globalThis.a = 1;'],
])('leaves a module with %s to esbuild', async (_what, index) => {
  expect(await bundle({ index })).toBeUndefined();
});
