import { beforeEach, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { EventRate } from './event-rate.js';

let clock: ManualClock;
let rate: EventRate;

beforeEach(() => {
  clock = new ManualClock();
  rate = new EventRate(clock);
});

test('allows a burst of 1,000 events, then 200 per second', () => {
  for (let i = 0; i < 1_000; i++) expect(rate.count(100)).toBe(0);
  expect(rate.count(100)).toBe(5);
  clock.advance(5);
  expect(rate.count(100)).toBe(5);
  clock.advance(1_005);
  let passed = 0;
  while (rate.count(100) === 0) passed++;
  expect(passed).toBe(200);
});

test('counts twenty repetitions as one event', () => {
  const waits = new Set(Array.from({ length: 20_000 - 20 }, () => rate.countRepetition()));
  expect([...waits]).toEqual([0]);
  expect(rate.count(100)).toBeCloseTo(0);
  expect(rate.countRepetition()).toBeCloseTo(5 / 20);
});

test('counts an event of 1 MiB as 257', () => {
  for (let i = 0; i < 3; i++) expect(rate.count(1024 * 1024)).toBe(0);
  expect(rate.count(1024 * 1024)).toBe(((4 * 257 - 1_000) * 1_000) / 200);
});

test('allows no larger burst after an hour of silence', () => {
  clock.advance(3_600_000);
  let passed = 0;
  while (rate.count(100) === 0) passed++;
  expect(passed).toBe(1_000);
});
