import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { NONCE_LIFETIME_MS, Nonces } from './nonces.js';
import { SourceLimiter } from './source-limiter.js';

const NOW = 1_790_000_000_000;

test('accepts a nonce from its client within its lifetime, in every thread with the secret', () => {
  const secret = Buffer.alloc(32, 3);
  const nonce = new Nonces(secret).mint('192.0.2.1', 4000, NOW);
  const elsewhere = new Nonces(secret);
  expect(elsewhere.holds(nonce, '192.0.2.1', 4000, NOW + NONCE_LIFETIME_MS - 1)).toBe(true);
  expect(elsewhere.holds(nonce, '192.0.2.1', 4000, NOW - 1_000)).toBe(true);
  expect(elsewhere.holds(nonce, '192.0.2.1', 4000, NOW - 6_000)).toBe(false);
  expect(elsewhere.holds(nonce, '192.0.2.1', 4000, NOW + NONCE_LIFETIME_MS)).toBe(false);
  expect(elsewhere.holds(nonce, '192.0.2.1', 4001, NOW)).toBe(false);
  expect(elsewhere.holds(nonce, '192.0.2.2', 4000, NOW)).toBe(false);
  expect(new Nonces().holds(nonce, '192.0.2.1', 4000, NOW)).toBe(false);
});

test('accepts no other text as a nonce', () => {
  const nonces = new Nonces();
  const real = nonces.mint('192.0.2.1', 4000, NOW);
  const near = fc.tuple(fc.nat(real.length - 1), fc.constantFrom(...'0123456789abcdefgé')).map(([at, char]) => {
    return real.slice(0, at) + char + real.slice(at + 1);
  });
  fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 40 }), near), (text) => {
      expect(nonces.holds(text, '192.0.2.1', 4000, NOW)).toBe(text === real);
    }),
    { numRuns: fuzzRuns(10_000) },
  );
});

test('a limiter allows a burst and then refills over time', () => {
  const limiter = new SourceLimiter({ burst: 2, perSecond: 10 });
  const taken = [0, 0, 0, 50, 100, 100, 1_000, 1_000, 1_000].map((ms) => limiter.take('192.0.2.1', NOW + ms));
  expect(taken).toEqual([true, true, false, false, true, false, true, true, false]);
});

test("no outsider can predict which networks share a limiter's bucket", () => {
  const addresses = Array.from({ length: 500 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
  const sharers = (seed: { seed?: number } = {}) =>
    addresses.filter((address) => {
      const limiter = new SourceLimiter({ burst: 1, perSecond: 1, buckets: 32, ...seed });
      return limiter.take('192.0.2.1', NOW) && !limiter.take(address, NOW);
    });
  expect(sharers({ seed: 1 })).not.toEqual([]);
  expect(sharers({ seed: 1 })).toEqual(sharers({ seed: 1 }));
  expect(sharers({ seed: 1 })).not.toEqual(sharers({ seed: 2 }));
  // Each limiter draws its own seed, so every address has different sharers.
  expect(sharers().length).toBeLessThan(100);
  expect(sharers()).not.toEqual(sharers());
});
