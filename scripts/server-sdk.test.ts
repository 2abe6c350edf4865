import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const installed = 'node_modules/@bloom/server-sdk';
let folder: string;
let files: string[];

/** Runs a program of this workspace in the folder of a user who has installed the package. */
function run(program: string, args: string[]): string {
  return execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-server-sdk-'));
  const pack = ['pack', '--json', '--silent', '--pack-destination', folder];
  const out = execFileSync('npm', pack, { cwd: join(root, 'packages', 'server-sdk'), encoding: 'utf8' });
  const [{ filename, files: packed }] = JSON.parse(out.slice(out.indexOf('[')));
  files = packed.map(({ path }: { path: string }) => path).toSorted();
  run('mkdir', ['-p', installed]);
  run('tar', ['-xzf', filename, '--strip-components=1', '-C', installed]);
  for (const name of ['ws', '@bufbuild'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  for (const name of ['node', 'ws']) {
    run('mkdir', ['-p', 'node_modules/@types']);
    symlinkSync(join(root, 'node_modules', '@types', name), join(folder, 'node_modules', '@types', name));
  }
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the package holds the bundles, their types, and what people read', () => {
  const declarations = ['client', 'errors', 'index', 'notifications', 'reconnecting', 'types'];
  expect(files).toEqual(
    [
      'LICENSE',
      'README.md',
      'package.json',
      'dist/index.js',
      'dist/index.cjs',
      ...declarations.flatMap((name) => [`dist/types/${name}.d.ts`, `dist/types-cjs/${name}.d.cts`]),
    ].toSorted(),
  );
  for (const file of files) {
    const text = readFileSync(join(folder, installed, file), 'utf8');
    expect(text).not.toMatch(/sourceMappingURL|from '@bloom\/protocol'|from "@bloom\/protocol"/);
  }
});

test('the bundle stays small: at most 30 kB, 8 kB compressed', () => {
  const bundle = readFileSync(join(folder, installed, 'dist/index.js'));
  expect(bundle.length).toBeLessThan(30_000);
  expect(gzipSync(bundle).length).toBeLessThan(8_000);
});

test('runs as a module and in CommonJS', () => {
  const use = `const url = 'http://h'; new BloomClient({ url, token: 't' }); console.log(typeof parseWebhook, BloomApiError.name);`;
  writeFileSync(
    join(folder, 'use.mjs'),
    `import { BloomApiError, BloomClient, parseWebhook } from '@bloom/server-sdk'; ${use}`,
  );
  writeFileSync(
    join(folder, 'use.cjs'),
    `const { BloomApiError, BloomClient, parseWebhook } = require('@bloom/server-sdk'); ${use}`,
  );
  for (const file of ['use.mjs', 'use.cjs']) expect(run(process.execPath, [file])).toBe('function BloomApiError\n');
});

test.each([
  ['use.mts', 'node16', 'node16'],
  ['use.cts', 'node16', 'node16'],
  ['use.ts', 'esnext', 'bundler'],
])('its types are found by %s with %s, %s', (file, module, resolution) => {
  writeFileSync(
    join(folder, file),
    `import { BloomClient, parseWebhook, type Component } from '@bloom/server-sdk';
    export const playable = (component: Component): boolean => component.type === 'hls' && component.properties.playable;
    export const hls = new BloomClient({ url: 'http://h', token: 't' }).addComponent('r', 'hls', {});
    export const shown = async (): Promise<boolean> => (await hls).properties.playable;
    export const room: string | undefined = parseWebhook(Buffer.alloc(0))?.roomId;`,
  );
  const options = ['--strict', '--noEmit', '--target', 'es2022', '--types', 'node', '--skipLibCheck', 'false'];
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  run(process.execPath, [compiler, ...options, '--module', module, '--moduleResolution', resolution, file]);
});
