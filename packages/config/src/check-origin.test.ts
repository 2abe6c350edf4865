import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { originAllowed, originRule } from './check-origin.js';

function allowed(rule: string, origin: string | undefined, host = 'media.example:5002', secure = false): boolean {
  const parsed = originRule.parse(rule);
  if (parsed === undefined) throw new Error(`no rule: ${rule}`);

  return originAllowed(parsed, { origin, host, secure, publicHost: 'example.com:4000/media' });
}

test('every rule allows a request without an Origin', () => {
  for (const rule of ['true', 'false', ':conn', '//nobody.example']) expect(allowed(rule, undefined)).toBe(true);
});

test('false allows every page', () => {
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
  ])('%s is allowed: %s', (origin, expected) => {
    expect(allowed('true', origin)).toBe(expected);
  });
});

describe('the rule :conn, which compares scheme, host and port of the request', () => {
  test.each([
    ['http://media.example:5002', 'media.example:5002', false, true],
    ['https://media.example:5002', 'media.example:5002', false, false],
    ['http://media.example', 'media.example:5002', false, false],
    ['http://media.example', 'media.example', false, true],
    ['https://media.example:443', 'media.example', true, true],
    ['https://[::1]:5002', '[::1]:5002', true, true],
    ['http://other.example:5002', 'media.example:5002', false, false],
  ])('a page of %s may connect to %s (secure: %s): %s', (origin, host, secure, expected) => {
    expect(allowed(':conn', origin, host, secure)).toBe(expected);
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
  ])('the list %s allows %s: %s', (rule, origin, expected) => {
    expect(allowed(rule, origin)).toBe(expected);
  });
});

test('never throws, whatever the rule and the header', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (rule, origin, host) => {
      expect(typeof allowed(rule, origin, host)).toBe('boolean');
    }),
    { numRuns: fuzzRuns(3_000) },
  );
});
