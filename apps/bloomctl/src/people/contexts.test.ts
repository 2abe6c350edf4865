import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { Failure } from '../exit.js';
import { contextsFile, mustBeName, parseContexts, readContexts, writeContexts } from './contexts.js';

let home: string;
let place: { env: Record<string, string>; home: string; uid: number; pid: number };
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'bloomctl-contexts-'));
  place = { env: {}, home, uid: statSync(home).uid, pid: 812 };
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const lab = { url: 'http://127.0.0.1:5002/', tokenFile: '/etc/token' };

async function written(): Promise<string> {
  await writeContexts({ current: 'lab', byName: new Map([['lab', lab]]) }, place);
  return contextsFile(place);
}

describe('the file of contexts', () => {
  test('has none where there is no file', async () => {
    expect(await readContexts(place)).toEqual({ current: undefined, byName: new Map() });
  });

  test('is written for its owner alone, and read back', async () => {
    const path = await written();
    expect(path).toBe(join(home, '.config', 'bloom', 'contexts.json'));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await readContexts(place)).toEqual({ current: 'lab', byName: new Map([['lab', lab]]) });
  });

  test('is below XDG_CONFIG_HOME, unless that is relative', () => {
    expect(contextsFile({ env: { XDG_CONFIG_HOME: '/etc/xdg' }, home })).toBe('/etc/xdg/bloom/contexts.json');
    expect(contextsFile({ env: { XDG_CONFIG_HOME: 'here' }, home })).toBe(join(home, '.config/bloom/contexts.json'));
  });

  test.each([0o644, 0o620, 0o606])(
    'is refused with mode %o, since others could choose commands or servers',
    async (mode) => {
      const path = await written();
      chmodSync(path, mode);
      await expect(readContexts(place)).rejects.toMatchObject({ exit: 78, advice: `chmod 600 ${path}` });
    },
  );

  test('is refused if it belongs to somebody else', async () => {
    const path = await written();
    const { uid } = place;
    if (uid === 0) chownSync(path, 4711, 4711);
    // Files of root are accepted from everybody.
    await expect(readContexts({ ...place, uid: uid === 0 ? 0 : uid + 1 })).rejects.toMatchObject({ exit: 78 });
  });

  test('is refused if it is too long to be one', async () => {
    const path = await written();
    writeFileSync(path, ' '.repeat(65_537), { mode: 0o600 });
    await expect(readContexts(place)).rejects.toMatchObject({ exit: 78 });
  });

  test('writes through no link that waits at the path of the new file', async () => {
    const path = await written();
    const target = join(home, 'target');
    symlinkSync(target, `${path}.812.part`);
    await expect(written()).rejects.toMatchObject({ exit: 78 });
    expect(existsSync(target)).toBe(false);
  });

  test('names the folder that cannot be made', async () => {
    writeFileSync(join(home, '.config'), '');
    await expect(written()).rejects.toMatchObject({ exit: 78, message: expect.stringContaining('cannot be written') });
    rmSync(join(home, '.config'));
    mkdirSync(join(home, '.config'));
    expect(JSON.parse(readFileSync(await written(), 'utf8'))).toMatchObject({ v: 1, current: 'lab' });
  });
});

test.each(['', '.', '..', '-x', '__proto__', 'a b', 'a/b', 'a\u001b[2J', 'x'.repeat(65)])(
  'does not accept %j as the name of a context',
  (name) => {
    expect(() => mustBeName(name)).toThrow(expect.objectContaining({ exit: 64 }));
  },
);

test.each([
  ['no JSON', '{'],
  ['no contexts', '{}'],
  ['a list of contexts', '{"contexts":[]}'],
  ['a context without address', '{"contexts":{"a":{}}}'],
  ['an address with a password', '{"contexts":{"a":{"url":"https://me:secret@b"}}}'],
  ['two origins of a token', '{"contexts":{"a":{"url":"https://b","tokenFile":"x","tokenCommand":"y"}}}'],
  ['a command that is no text', '{"contexts":{"a":{"url":"https://b","tokenCommand":["x"]}}}'],
  ['a context in use that is missing', '{"current":"constructor","contexts":{}}'],
  ['the name of every prototype', '{"contexts":{"__proto__":{"url":"https://b"}}}'],
])('refuses a file with %s', (_, text) => {
  expect(() => parseContexts(text, '/file')).toThrow(Failure);
});

test('fails on garbage only with a sentence', () => {
  const entry = fc.record({ url: fc.webUrl(), tokenFile: fc.anything(), tokenCommand: fc.anything() });
  const like = fc.record({
    current: fc.anything(),
    contexts: fc.dictionary(fc.string(), fc.oneof(entry, fc.anything())),
  });
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        like.map((value) => JSON.stringify(value)),
      ),
      (text) => {
        try {
          const { current, byName } = parseContexts(text, '/file');
          expect(current === undefined || byName.has(current)).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(Failure);
        }
      },
    ),
    { numRuns: fuzzRuns(2_000) },
  );
});
