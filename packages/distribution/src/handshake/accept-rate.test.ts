import { expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { AcceptRate } from './accept-rate.js';

function taken(rate: AcceptRate, count: number, address: (i: number) => string): number {
  return Array.from({ length: count }, (_, i) => rate.take(address(i))).filter(Boolean).length;
}

test('a flood from one address leaves the other addresses their share', () => {
  const rate = new AcceptRate(new ManualClock(), 100);
  expect(taken(rate, 300, () => '192.0.2.1')).toBe(100);
  expect(taken(rate, 100, (i) => `198.51.100.${i}`)).toBe(100);
});

test('a flood from many addresses leaves known addresses their share', () => {
  const clock = new ManualClock();
  const rate = new AcceptRate(clock, 100);
  rate.know('203.0.113.9');
  expect(taken(rate, 2_000, (i) => `10.0.${i >> 8}.${i & 255}`)).toBe(400);
  expect(taken(rate, 2_000, () => '203.0.113.9')).toBe(1_000);
  clock.advance(1_000);
  expect(rate.take('192.0.2.1')).toBe(true);
});

test('remembers a limited number of known addresses, the latest ones', () => {
  const rate = new AcceptRate(new ManualClock(), 1);
  rate.know('192.0.2.1');
  for (let i = 0; i < 1_024; i++) rate.know(`10.0.${i >> 8}.${i & 255}`);
  expect(rate.isKnown('192.0.2.1')).toBe(false);
  expect(rate.isKnown('10.0.3.255')).toBe(true);
});
