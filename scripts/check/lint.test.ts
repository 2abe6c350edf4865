import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { root } from './modules.mjs';

let checkout: string;
beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'bloom-lint-'));
  cpSync(join(root, '.oxlintrc.json'), join(checkout, '.oxlintrc.json'));
});
afterEach(() => rmSync(checkout, { recursive: true, force: true }));

/** Returns what the linter reports about a function with this number of parameters. */
function lint(file: string, parameters: number): string {
  const path = join(checkout, file);
  mkdirSync(dirname(path), { recursive: true });
  const names = Array.from({ length: parameters }, (_, i) => `p${i}`);
  const list = names.map((name) => `${name}: number`).join(', ');
  writeFileSync(path, `export function sum(${list}): number {\n  return ${names.join(' + ')};\n}\n`);
  const linter = join(root, 'node_modules', 'oxlint', 'bin', 'oxlint');

  return spawnSync(process.execPath, [linter, '--deny-warnings'], { cwd: checkout, encoding: 'utf8' }).stdout;
}

test('allows a function of three parameters', () => {
  expect(lint('packages/rooms/src/sum.ts', 3)).toContain('0 errors');
});

test('refuses a function of four parameters, in tests too', () => {
  expect(lint('packages/rooms/src/sum.test.ts', 4)).toContain('max-params');
});

test('allows a function of four parameters in the packet path', () => {
  expect(lint('packages/rtp/src/sum.ts', 4)).toContain('0 errors');
});

test('refuses a file name that is not kebab-case', () => {
  expect(lint('packages/rooms/src/theSum.ts', 1)).toContain('filename-case');
});
