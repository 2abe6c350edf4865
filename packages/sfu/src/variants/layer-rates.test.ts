import { expect, test } from '@jest/globals';
import { LayerRates } from './layer-rates.js';

/** Counts a key picture whose spatial layers have 1,000 and 4,000 bytes. */
function countKey(rates: LayerRates, timestamp: number): void {
  for (const [spatialLayer, payloadLength] of [
    [0, 1_000],
    [1, 2_500],
    [1, 1_500],
  ] as const) {
    rates.countKey({ spatialLayer }, { timestamp, payloadLength });
  }
}

test('returns at which rate a key picture of each size comes through within 400 ms', () => {
  const rates = new LayerRates();
  expect(rates.keyBps(1)).toBe(0);
  countKey(rates, 1);
  expect([0, 1, Infinity].map((spatial) => rates.keyBps(spatial))).toEqual([20_000, 100_000, 100_000]);
});

test('counts with the key picture before while the newest one is incomplete', () => {
  const rates = new LayerRates();
  countKey(rates, 1);
  rates.countKey({ spatialLayer: 0 }, { timestamp: 2, payloadLength: 3_000 });
  expect([0, 1].map((spatial) => rates.keyBps(spatial))).toEqual([60_000, 100_000]);
});

test('gives key pictures of a stream with few pictures per second more time', () => {
  const rates = new LayerRates();
  countKey(rates, 1);
  for (let nowMs = 0; nowMs <= 2_000; nowMs += 250) {
    rates.count({ spatialLayer: 0, temporalLayer: 0 }, 100, nowMs);
    rates.countPicture({ temporalLayer: 0 });
  }
  // Four pictures take 1 s.
  expect(rates.keyBps(1)).toBe(40_000);
});
