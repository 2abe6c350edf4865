import { expect, test } from '@jest/globals';
import { QualityMeter, type QualitySigns } from './quality-meter.js';

const START: QualitySigns = { received: 0, missing: 0, sent: 0, lost: 0, roundTripMs: 50, reducedBy: 0 };

/** Returns the quality after a first look and these changes. */
function after(change: Partial<QualitySigns>): string | undefined {
  const meter = new QualityMeter();
  meter.look(START, false);

  return meter.look({ ...START, ...change }, false) ?? 'excellent';
}

test('a path without loss is excellent from the first look on', () => {
  expect(new QualityMeter().look(START, false)).toBe('excellent');
});

test.each([
  [{ sent: 1_000, lost: 10 }, 'excellent'],
  [{ sent: 1_000, lost: 30 }, 'good'],
  [{ sent: 1_000, lost: 100 }, 'poor'],
  [{ received: 970, missing: 30 }, 'good'],
  [{ received: 900, missing: 100 }, 'poor'],
  [{ roundTripMs: 1_000 }, 'good'],
  [{ roundTripMs: 2_000 }, 'poor'],
  [{ reducedBy: 1 }, 'good'],
  [{ reducedBy: 2 }, 'poor'],
])('%j is %s', (change, quality) => {
  expect(after(change)).toBe(quality);
});

test('losses count in the interval in which they occur only', () => {
  const meter = new QualityMeter();
  meter.look(START, false);
  expect(meter.look({ ...START, sent: 1_000, lost: 100 }, false)).toBe('poor');
  expect(meter.look({ ...START, sent: 2_000, lost: 100 }, false)).toBe('excellent');
});

test('an unchanged quality is not repeated', () => {
  const meter = new QualityMeter();
  meter.look(START, false);
  expect(meter.look({ ...START, sent: 1_000 }, false)).toBeUndefined();
});

test('a client from which nothing arrives is lost until something does', () => {
  const meter = new QualityMeter();
  meter.look(START, false);
  expect(meter.look(START, true)).toBe('lost');
  expect(meter.look(START, false)).toBe('excellent');
});

test('counters that fall with the end of a stream are no losses', () => {
  const meter = new QualityMeter();
  meter.look({ ...START, sent: 5_000, lost: 400, received: 5_000, missing: 400 }, false);
  expect(meter.look({ ...START, sent: 100, received: 100 }, false)).toBeUndefined();
});

test('a few packets say nothing about losses', () => {
  expect(after({ sent: 5, lost: 5, received: 4, missing: 4 })).toBe('excellent');
});
