import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { NONCE_LIFETIME_MS, Nonces } from './nonces.js';

const NOW = 1_790_000_000_000;

test('accepts a nonce from its client within its lifetime, in every thread with the secret', () => {
  const secret = Buffer.alloc(32, 3);
  const nonce = new Nonces(secret).mint({ address: '192.0.2.1', port: 4000 }, NOW);
  const elsewhere = new Nonces(secret);
  expect(elsewhere.holds(nonce, { address: '192.0.2.1', port: 4000 }, NOW + NONCE_LIFETIME_MS - 1)).toBe(true);
  expect(elsewhere.holds(nonce, { address: '192.0.2.1', port: 4000 }, NOW - 1_000)).toBe(true);
  expect(elsewhere.holds(nonce, { address: '192.0.2.1', port: 4000 }, NOW - 6_000)).toBe(false);
  expect(elsewhere.holds(nonce, { address: '192.0.2.1', port: 4000 }, NOW + NONCE_LIFETIME_MS)).toBe(false);
  expect(elsewhere.holds(nonce, { address: '192.0.2.1', port: 4001 }, NOW)).toBe(false);
  expect(elsewhere.holds(nonce, { address: '192.0.2.2', port: 4000 }, NOW)).toBe(false);
  expect(new Nonces().holds(nonce, { address: '192.0.2.1', port: 4000 }, NOW)).toBe(false);
});

test('accepts no other text as a nonce', () => {
  const nonces = new Nonces();
  const real = nonces.mint({ address: '192.0.2.1', port: 4000 }, NOW);
  const near = fc.tuple(fc.nat(real.length - 1), fc.constantFrom(...'0123456789abcdefgé')).map(([at, char]) => {
    return real.slice(0, at) + char + real.slice(at + 1);
  });
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 40 }), near), (text) => {
      expect(nonces.holds(text, { address: '192.0.2.1', port: 4000 }, NOW)).toBe(text === real);
    }),
    { numRuns: fuzzRuns(10_000) },
  );
});
