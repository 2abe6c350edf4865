import { expect, test } from '@jest/globals';
import { LayerRates } from './layer-rates.js';
import { layersToLeaveOut, leastBitrates, NOT_REDUCED, reducedBitrates } from './reduced-bitrates.js';

/** A stream whose temporal layers have 40, 20 and 40 % of its rate, as in Chromium's VP8. */
function layered(): LayerRates {
  const rates = new LayerRates();
  for (let ms = 0; ms <= 2_000; ms += 250) {
    for (const [temporalLayer, bytes] of [400, 200, 400].entries())
      rates.count({ spatialLayer: 0, temporalLayer }, bytes, ms);
  }
  return rates;
}

test('divides the bitrate of a variant by the measured shares of its layers', () => {
  expect(reducedBitrates(1_000_000, layered())).toEqual([600_000, 400_000]);
  expect(reducedBitrates(1_000_000, new LayerRates())).toEqual([]);
  expect(reducedBitrates(1_000_000, undefined)).toEqual([]);
});

test('knows no shares before the first measurement', () => {
  const rates = new LayerRates();
  rates.count({ spatialLayer: 0, temporalLayer: 2 }, 100, 0);
  expect(reducedBitrates(1_000_000, rates)).toEqual([]);
});

test('prefers a variant without one layer to a lower one', () => {
  const bitrates = { l: 150_000, m: 500_000, h: 1_500_000 };
  expect(leastBitrates(bitrates, { ...NOT_REDUCED, h: [900_000, 600_000] })).toEqual({ ...bitrates, h: 900_000 });
});

test.each([
  [Infinity, 0],
  [1_100_000, 0],
  [1_099_999, 1],
  [660_000, 1],
  [440_000, 2],
  [1, 2],
])('of %d bit/s leaves out %d layers', (bps, fewer) => {
  expect(layersToLeaveOut(bps, 1_000_000, [600_000, 400_000])).toBe(fewer);
});

test('leaves out nothing of a variant without layers', () => {
  expect(layersToLeaveOut(1, 1_000_000, [])).toBe(0);
});
