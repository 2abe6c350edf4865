import { expect, test } from '@jest/globals';
import { SourceLimiter } from './source-limiter.js';

const NOW = 1_790_000_000_000;

test('allows a burst and then refills over time', () => {
  const limiter = new SourceLimiter({ burst: 2, perSecond: 10 });
  const taken = [0, 0, 0, 50, 100, 100, 1_000, 1_000, 1_000].map((ms) => limiter.take('192.0.2.1', NOW + ms));
  expect(taken).toEqual([true, true, false, false, true, false, true, true, false]);
});

test("gives outsiders no way to predict which networks share a limiter's bucket", () => {
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
