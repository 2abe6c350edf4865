import { describe, expect, test } from '@jest/globals';
import { codePoint, fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { DEFAULT_TTL, issuePeerToken, relayCredentials, verifyPeerToken } from './credentials.js';

const key = { secretKeyBase: 'sixteen-letters!' };
const claim = { roomId: 'kitchen', peerId: 'ann' };
const now = Date.UTC(2026, 10, 21, 12, 0, 0, 500);
const token = issuePeerToken(claim, now, key);

describe('peer tokens', () => {
  test('issues a token for one room and peer that is valid on any node with the same secret', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (roomId, peerId, secretKeyBase) => {
        const other = issuePeerToken({ roomId, peerId }, now, { secretKeyBase });

        expect(verifyPeerToken(other, now, { secretKeyBase })).toEqual({ roomId, peerId });
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('keeps a token valid for 24 hours after its issue', () => {
    expect(verifyPeerToken(token, now + DEFAULT_TTL * 1_000 - 1_000, key)).toEqual(claim);
    expect(verifyPeerToken(token, now + DEFAULT_TTL * 1_000, key)).toBe('expired token');
  });

  test('keeps a token valid for the lifetime it was issued with', () => {
    const short = issuePeerToken({ ...claim, ttl: 90 }, now, key);
    expect(verifyPeerToken(short, now + 89_000, key)).toEqual(claim);
    expect(verifyPeerToken(short, now + 90_000, key)).toBe('expired token');
  });

  test('refuses a token of another secret, even when it has expired', () => {
    expect(verifyPeerToken(token, now + 2 * DEFAULT_TTL * 1_000, { secretKeyBase: 'another' })).toBe('invalid token');
  });

  test('refuses a token with a single changed character', () => {
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom(...'abcXYZ019-_.=+/ \n'), (at, letter) => {
        fc.pre(token[at] !== letter);
        const changed = token.slice(0, at) + letter + token.slice(at + 1);

        expect(verifyPeerToken(changed, now, key)).toBe('invalid token');
      }),
      { numRuns: fuzzRuns(4_000) },
    );
  });

  test('never accepts garbage as a token and never throws on it', () => {
    const garbage = fc.oneof(
      fc.string({ unit: codePoint(fc), maxLength: 300 }),
      fc.tuple(fc.base64String(), fc.base64String()).map(([a, b]) => `${a}.${b}`),
      fc.string().map((text) => `${token}${text}.`),
      fc.nat(10_000).map((n) => '.'.repeat(n)),
    );

    fc.assert(
      fc.property(garbage, (text) => {
        expect(verifyPeerToken(text, now, key)).toBe('invalid token');
      }),
      { numRuns: fuzzRuns(6_000) },
    );
    expect(verifyPeerToken('', now, key)).toBe('invalid token');
  });
});

test('derives relay credentials from the Unix time with the peer id, and the base64 HMAC-SHA1 of that', () => {
  // printf '%s' '1795262400:ann' | openssl dgst -sha1 -hmac secret -binary | base64
  expect(relayCredentials('ann', 1_795_262_400_999, 'secret')).toEqual({
    username: '1795262400:ann',
    password: 's8r9PO01A0fudTxwW5PC0DY3I4M=',
  });
});
