import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { findToken, tokenOf } from './token.js';

const folder = mkdtempSync(join(tmpdir(), 'bloomctl-token-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const sealed = (claim: unknown): string => `${Buffer.from(JSON.stringify(claim)).toString('base64url')}.c2lnbmF0dXJl`;

test('recognises by its form a token of the API or of a peer, or an invitation', () => {
  expect(tokenOf('development', 'x').kind).toBe('api');
  expect(tokenOf('a.b', 'x').kind).toBe('api');
  expect(tokenOf(sealed(5), 'x').kind).toBe('api');
  expect(tokenOf(sealed({ other: 1 }), 'x').kind).toBe('api');
  expect(tokenOf(sealed(['hall', 'ann', 1]), 'x')).toMatchObject({ kind: 'peer', roomId: 'hall' });
  expect(tokenOf(sealed({ roomId: 'hall' }), 'x')).toMatchObject({ kind: 'invitation', roomId: 'hall' });
});

test('accepts the link for guests in place of its invitation', () => {
  const token = sealed({ roomId: 'hall' });
  expect(tokenOf(` https://media.example.com/#invitation=${token}\n`, 'x').value).toBe(token);
});

test.each(['', ' \n', 'two words', 'line\nbreak', 'caf\u00e9'])('%j is no token', (text) => {
  expect(() => tokenOf(text, 'here')).toThrow('the token from here');
});

test('refuses a file that every user can read', async () => {
  const path = join(folder, 'open');
  writeFileSync(path, 'development', { mode: 0o644 });
  await expect(findToken(path, { env: {} })).rejects.toMatchObject({ exit: 78, advice: `chmod 600 ${path}` });
});

test('reads the file before the environment, and refuses to start with neither', async () => {
  const path = join(folder, 'closed');
  writeFileSync(path, 'of-the-file\n', { mode: 0o600 });
  const env = { BLOOM_TOKEN: 'of-the-environment' };
  expect((await findToken(path, { env })).value).toBe('of-the-file');
  expect((await findToken(undefined, { env })).value).toBe('of-the-environment');
  await expect(findToken(undefined, { env: {} })).rejects.toMatchObject({ exit: 78 });
});
