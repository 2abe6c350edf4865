import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { originAllowed, originRule } from './check-origin.js';

function allowed(
  rule: string,
  origin: string | undefined,
  { host = 'media.example:5002', secure = false } = {},
): boolean {
  const parsed = originRule.parse(rule);
  if (parsed === undefined) throw new Error(`no rule: ${rule}`);

  return originAllowed(parsed, { origin, host, secure, publicHost: 'example.com:4000/media' });
}

test('allows a request without an Origin under every rule', () => {
  for (const rule of ['true', 'false', ':conn', '//nobody.example']) expect(allowed(rule, undefined)).toBe(true);
});

test('allows every page with the rule false', () => {
  expect(allowed('false', 'https://evil.example')).toBe(true);
});

describe('the rule true, which compares the host with JF_HOST', () => {
  test.each([
    ['http://example.com', true],
    ['https://example.com:9999', true],
    ['HTTPS://EXAMPLE.COM', true],
    ['https://sub.example.com', false],
    ['https://example.com.evil.org', false],
    ['null', false],
    ['', false],
    ['example.com', false],
  ])('allows %s: %s', (origin, expected) => {
    expect(allowed('true', origin)).toBe(expected);
  });
});

describe('the rule :conn, which compares scheme, host and port of the request', () => {
  test.each([
    { origin: 'http://media.example:5002', host: 'media.example:5002', secure: false, expected: true },
    { origin: 'https://media.example:5002', host: 'media.example:5002', secure: false, expected: false },
    { origin: 'http://media.example', host: 'media.example:5002', secure: false, expected: false },
    { origin: 'http://media.example', host: 'media.example', secure: false, expected: true },
    { origin: 'https://media.example:443', host: 'media.example', secure: true, expected: true },
    { origin: 'https://[::1]:5002', host: '[::1]:5002', secure: true, expected: true },
    { origin: 'http://other.example:5002', host: 'media.example:5002', secure: false, expected: false },
  ])('lets a page of $origin connect to $host (secure: $secure): $expected', ({ origin, host, secure, expected }) => {
    expect(allowed(':conn', origin, { host, secure })).toBe(expected);
  });
});

describe('a list of hosts', () => {
  test.each([
    ['//app.example', 'https://app.example', true],
    ['//app.example', 'http://app.example:81', true],
    ['//app.example:81', 'http://app.example:81', true],
    ['//app.example:81', 'http://app.example', false],
    ['//*.example', 'https://a.b.example', true],
    ['//*.example', 'https://example', false],
    ['//*.example', 'https://evilexample', false],
    ['https://app.example', 'https://app.example', true],
    ['https://app.example', 'http://app.example', false],
    ['https://app.example', 'https://app.example:444', false],
    ['app.example', 'https://app.example', true],
    ['app.example:81', 'https://app.example:81', true],
    ['//a //b', 'https://b', true],
    ['//a //b', 'https://c', false],
  ])('allows with the list %s the origin %s: %s', (rule, origin, expected) => {
    expect(allowed(rule, origin)).toBe(expected);
  });
});

test('never throws, whatever the rule and the header', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (rule, origin, host) => {
      expect(typeof allowed(rule, origin, { host })).toBe('boolean');
    }),
    { numRuns: fuzzRuns(3_000) },
  );
});
