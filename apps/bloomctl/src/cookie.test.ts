import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { COOKIE_FILE, DEFAULT_COOKIE, findCookie, fingerprint } from './cookie.js';

let home: string;
let said: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'bloomctl-'));
  said = '';
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const machine = (env: Record<string, string> = {}) => ({
  home,
  env,
  stderr: { write: (text: string | Uint8Array) => ((said += String(text)), true) },
});
function file(name: string, text: string, mode = 0o600): string {
  const path = join(home, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

describe('choice of the cookie', () => {
  test('prefers the command line, with a warning', async () => {
    const found = await findCookie({ cookie: 'plain' }, machine({ BLOOM_COOKIE: 'env' }));
    expect(found).toEqual({ value: 'plain', source: '--cookie' });
    expect(said).toContain('can be read by every user');
  });

  test('tries the named file, the environment and the home directory, in this order', async () => {
    const named = file('named', 'from-file\n', 0o400);
    file(COOKIE_FILE, 'from-home');
    const env = { BLOOM_COOKIE: 'from-env', JF_DIST_COOKIE: 'of-the-node' };
    expect(await findCookie({ cookieFile: named }, machine(env))).toEqual({
      value: 'from-file',
      source: `${named} (mode 0400)`,
    });
    expect((await findCookie({}, machine(env))).value).toBe('from-env');
    expect((await findCookie({}, machine({ BLOOM_COOKIE: '', JF_DIST_COOKIE: 'of-the-node' }))).source).toContain(
      'JF_DIST_COOKIE',
    );
    // The other variable from which a node reads it.
    expect(await findCookie({}, machine({ JF_DIST_COOKIE: '', FJ_DIST_COOKIE: 'of-the-node' }))).toEqual({
      value: 'of-the-node',
      source: 'the environment (FJ_DIST_COOKIE)',
    });
    expect(await findCookie({}, machine())).toEqual({ value: 'from-home', source: '~/.bloom-cookie (mode 0600)' });
    expect(said).toBe('');
  });

  test('falls back to the well-known default', async () => {
    expect((await findCookie({}, machine())).value).toBe(DEFAULT_COOKIE);
  });

  test.each([
    ['readable by others', 0o644, 'secret'],
    ['readable by the group', 0o640, 'secret'],
    ['empty', 0o600, ' \n'],
    ['too long', 0o600, 'x'.repeat(5_000)],
  ])('refuses a file that is %s', async (_, mode, text) => {
    file(COOKIE_FILE, text, mode);
    const refused = findCookie({}, machine());
    await expect(refused).rejects.toMatchObject({ name: 'Failure', exit: 78 });
    await expect(refused).rejects.not.toThrow('secret');
  });

  test('refuses a file that does not exist', async () => {
    await expect(findCookie({ cookieFile: join(home, 'nothing') }, machine())).rejects.toMatchObject({ exit: 78 });
  });

  test("shows only the start of the cookie's hash", () => {
    expect(fingerprint('secret')).toBe('2bb8');
  });
});
