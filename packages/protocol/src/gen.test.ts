import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..', '..');
const bin = join(root, 'node_modules', '.bin');

test('matches the committed sources to what the generator makes of the .proto files', () => {
  const out = mkdtempSync(join(tmpdir(), 'bloom-gen-'));
  try {
    const template = JSON.stringify({
      version: 'v2',
      plugins: [{ local: 'protoc-gen-es', out, opt: ['target=ts', 'import_extension=js'] }],
    });
    execFileSync(join(bin, 'buf'), ['generate', '--template', template, join(here, '..', 'proto')], {
      cwd: root,
      env: { ...process.env, PATH: [bin, process.env['PATH']].join(delimiter) },
      stdio: 'pipe',
    });
    expect(readFolder(join(here, 'gen', 'jellyfish'))).toEqual(readFolder(join(out, 'jellyfish')));
  } finally {
    rmSync(out, { recursive: true });
  }
}, 30_000);

function readFolder(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}
