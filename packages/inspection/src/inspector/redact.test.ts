import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { openActorSystem } from '@bloom/actors';
import { createMasker, MASK, silentLog } from '@bloom/log';
import fc from 'fast-check';
import { isSecretName, part, Redactor } from './redact.js';

const KNOWN = 'known-secret-value';
const redactor = new Redactor(createMasker([KNOWN]));
const ALL = { depth: 10, bytes: 65_536 };

describe('secrets', () => {
  test.each([
    'token',
    'apiToken',
    'peer_token',
    'password',
    'registrarPassword',
    'passwd',
    'icePwd',
    'cookie',
    'secretKeyBase',
    'secretAccessKey',
    'accessKeyId',
    'Authorization',
    'x-api-key',
    'credentials',
    'privateKey',
  ])('recognises the secret name %s', (name) => {
    expect(isSecretName(name)).toBe(true);
    expect(redactor.show({ deep: [{ [name]: 'x' }] }, ALL)).toEqual({
      value: { deep: [{ [name]: MASK }] },
      truncated: false,
      redacted: 1,
    });
    expect(redactor.show(new Map([[name, { any: 'thing' }]]), ALL).value).toEqual({ [name]: MASK });
  });

  test.each(['tokenCount', 'key', 'path', 'monkey', 'roomId', 'passed'])('shows values with the name %s', (name) => {
    expect(isSecretName(name)).toBe(false);
  });

  test.each([
    ['a known value', `a ${KNOWN} b`, `a ${MASK} b`],
    ['a token of a peer', 'x SFMyNTY.g2gDdAAAAAJk.Q4-_x y', `x ${MASK} y`],
    ['a JSON web token', 'eyJhbGciOi.eyJzdWIi.c2ln', MASK],
    ['a header with a bearer', '-H "Authorization: Bearer abc.def" url', `-H "Authorization: Bearer ${MASK}" url`],
    ['a bearer', 'with bearer abc.def, now', `with bearer ${MASK}, now`],
    ['a header', 'a\r\nProxy-Authorization: Digest response="ab"\r\nb', `a\r\nProxy-Authorization: ${MASK}\r\nb`],
    ['a session description', 'a=ice-ufrag:u\r\na=ice-pwd:topsecret\r\n', `a=ice-ufrag:u\r\na=ice-pwd:${MASK}\r\n`],
    ['a user of a URL', 'to https://u:p%20w@h.io/x', `to https://${MASK}@h.io/x`],
    ['a parameter of a URL', 'http://h/x?a=1&api_key=abc&b=2', `http://h/x?a=1&api_key=${MASK}&b=2`],
    ['a JSON text', '{"token":"abc","n":1}', `{"token":"${MASK}","n":1}`],
    ['a JSON text in a JSON text', '{"a":"{\\"password\\":\\"abc\\"}"}', `{"a":"{\\"password\\":\\"${MASK}\\"}"}`],
  ])('masks secrets in texts: %s', (_what, text, shown) => {
    expect(redactor.text(text)).toBe(shown);
    expect(redactor.show({ text }, ALL)).toMatchObject({ value: { text: shown }, redacted: 1 });
    expect(redactor.show(new Error(text), ALL).value).toBe(`Error: ${shown}`);
  });

  test('finds whole secrets in nested JSON texts, whatever their characters', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.constantFrom('"', '\\', 'mark', ' ', '\n', ':', '}', 'ü'), { maxLength: 8 }),
        (levels, parts) => {
          let text = JSON.stringify({ before: 1, password: `${parts.join('')}mark`, after: 2 });
          for (let level = 1; level < levels; level++) text = JSON.stringify({ text });
          expect(redactor.text(text)).not.toContain('mark');
          expect(redactor.text(text)).toContain('before');
        },
      ),
      { numRuns: fuzzRuns(2_000) },
    );
  });

  test('never shows part of a secret, wherever a text is cut', () => {
    for (let bytes = 16; bytes < 60; bytes++) {
      const { value } = redactor.show([`${'x'.repeat(20)}${KNOWN}${'y'.repeat(20)}`], { depth: 3, bytes });
      expect(JSON.stringify(value)).not.toContain('known');
    }
    for (const before of [65_530, 65_536, 69_620, 69_630]) {
      expect(redactor.text(`${'x'.repeat(before)}${KNOWN}${'y'.repeat(9_000)}`)).not.toContain('know');
    }
    // Masking shortens the text, but text from beyond the end must not fill the gap.
    for (let length = 1_000; length < 1_020; length++) {
      expect(redactor.text(`${KNOWN} `.repeat(5_000), length)).not.toMatch(/know/);
    }
  });

  test('never shows part of a secret that follows a very long one', () => {
    const long = `a=ice-pwd:${'p'.repeat(4_400)} `;
    const text = `${long}${'x'.repeat(1_000 + 4_096 - long.length - 5)}${KNOWN}${'y'.repeat(5_000)}`;
    expect(redactor.text(text, 1_000)).not.toContain('know');
  });

  test('searches no more than it shows, so that no one can make it slow', () => {
    const hostile = 'eyJ-'.repeat(16_384);
    // A hundred times the whole text would take minutes.
    for (let i = 0; i < 100; i++) expect(redactor.show({ hostile }, { depth: 3, bytes: 512 }).truncated).toBe(true);
  });

  test('masks secrets that a path names', () => {
    const state = { peers: { ann: { token: 'abc', tracks: [1] } } };
    expect(part(state, 'peers.ann.token')).toBe(MASK);
    expect(part(state, 'peers.*.token')).toEqual({ ann: MASK });
    expect(part(state, 'peers.ann.*')).toEqual({ token: MASK, tracks: [1] });
  });

  test('lets no secret through, whatever surrounds it', () => {
    const holder = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 5 },
        fc.string(),
        fc.constant(`<${KNOWN}>`),
        fc.array(tie('any'), { maxLength: 4 }),
        fc.dictionary(fc.oneof(fc.string(), fc.constant(KNOWN), fc.constant('password')), tie('any'), { maxKeys: 4 }),
        fc.array(tie('any'), { maxLength: 3 }).map((items) => new Set(items)),
        tie('any').map((item) => new Map([[item, item]])),
        tie('any').map((item) => Object.assign(new Error(KNOWN), { cause: item })),
      ),
    })).any;
    const cut = fc.record({ depth: fc.integer({ min: 1, max: 10 }), bytes: fc.integer({ min: 16, max: 2_000 }) });
    fc.assert(
      fc.property(holder, cut, (value, how) => {
        const shown = JSON.stringify(redactor.show(value, how).value) ?? '';
        expect(shown).not.toContain(KNOWN);
        // Marks for omitted parts add a few characters per level.
        expect(shown.length).toBeLessThan(how.bytes * 2 + 400);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  }, 60_000);
});

describe('shown values', () => {
  test('shows any value as plain JSON', () => {
    const system = openActorSystem({ log: silentLog });
    const ref = system.spawn({ kind: 'k', init: () => null, handlers: {} }, { name: 'me' });
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    const hostile = {
      get bad(): never {
        throw new Error('no');
      },
    };
    const value = {
      ref,
      bytes: new Uint8Array(3),
      when: new Date(0),
      never: new Date(Number.NaN),
      big: 12n,
      nan: Number.NaN,
      set: new Set([1]),
      map: new Map<unknown, unknown>([[{ k: 1 }, 2]]),
      run: () => 1,
      wait: Promise.resolve(),
      hostile,
      cyclic,
    };
    const shown = redactor.show(value, { depth: 3, bytes: 10_000 }).value;
    expect(JSON.parse(JSON.stringify(shown))).toEqual(shown);
    expect(shown).toMatchObject({
      ref: '<actor /me>',
      bytes: '<3 bytes>',
      when: '1970-01-01T00:00:00.000Z',
      never: 'Invalid Date',
      big: '12',
      nan: 'NaN',
      set: [1],
      map: { '<object>': 2 },
      wait: '<promise>',
      hostile: { bad: '<unreadable>' },
      cyclic: { self: { self: '<nested>' } },
    });
    void system.close();
  });

  test('respects the limits and reports what is missing', () => {
    const list = redactor.show({ list: Array.from({ length: 1_000 }, (_, i) => i) }, { depth: 3, bytes: 100 });
    expect(list.truncated).toBe(true);
    expect(JSON.stringify(list.value)).toMatch(/<\d{3} more>/);
    const text = redactor.show('x'.repeat(1_000), { depth: 1, bytes: 50 });
    expect(text).toMatchObject({ value: `${'x'.repeat(48)}…`, truncated: true });
    const odd: unknown = JSON.parse('{"__proto__":{"a":1}}');
    expect(redactor.show(odd, ALL).value).toEqual(odd);
  });

  test('never throws', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true }),
        (value) => {
          const { value: shown } = redactor.show(value, { depth: 4, bytes: 300 });
          const text = JSON.stringify(shown);
          expect(() => JSON.parse(text)).not.toThrow();
          // The limit counts values; marks for omitted parts come on top.
          expect(text.length).toBeLessThan(1_000);
        },
      ),
      { numRuns: fuzzRuns(3_000) },
    );
  });

  test('shows a part of a value', () => {
    const state = { peers: new Map([['ann', { tracks: [{ id: 't1' }, { id: 't2' }] }]]), set: new Set(['a', 'b']) };
    expect(part(state, 'peers.*.tracks')).toEqual({ ann: [{ id: 't1' }, { id: 't2' }] });
    expect(part(state, 'peers.ann.tracks.*.id')).toEqual(['t1', 't2']);
    expect(part(state, 'peers.ann.tracks.1.id')).toBe('t2');
    expect(part(state, 'set.1')).toBe('b');
    expect(part(state, 'peers.bob.tracks')).toBeUndefined();
    expect(part(state, 'constructor.name')).toBeUndefined();
    expect(part(5, 'a')).toBeUndefined();
  });
});
