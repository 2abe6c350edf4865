import { expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { AcceptRate } from './accept-rate.js';

function taken(rate: AcceptRate, count: number, address: (i: number) => string): number {
  return Array.from({ length: count }, (_, i) => rate.take(address(i))).filter(Boolean).length;
}

test('leaves the other addresses their share during a flood from one address', () => {
  const rate = new AcceptRate(new ManualClock(), 100);
  expect(taken(rate, 300, () => '192.0.2.1')).toBe(100);
  expect(taken(rate, 100, (i) => `198.51.100.${i}`)).toBe(100);
});

test('leaves known addresses their share during a flood from many addresses', () => {
  const clock = new ManualClock();
  const rate = new AcceptRate(clock, 100);
  rate.know('203.0.113.9');
  expect(taken(rate, 2_000, (i) => `10.0.${i >> 8}.${i & 255}`)).toBe(400);
  expect(taken(rate, 2_000, () => '203.0.113.9')).toBe(1_000);
  clock.advance(1_000);
  expect(rate.take('192.0.2.1')).toBe(true);
});

test('returns an address its share evenly, not at the next whole second', () => {
  const clock = new ManualClock();
  const rate = new AcceptRate(clock, 100);
  clock.advance(990);
  expect(taken(rate, 300, () => '192.0.2.1')).toBe(100);
  clock.advance(20);
  expect(taken(rate, 300, () => '192.0.2.1')).toBe(2);
});

test('keeps a used-up share used up while other addresses come and go', () => {
  const clock = new ManualClock();
  const rate = new AcceptRate(clock, 100);
  let accepted = 0;
  for (let i = 0; i < 50; i++) {
    accepted += taken(rate, 20, () => '192.0.2.1');
    rate.take(`10.0.0.${i}`);
    clock.advance(100);
  }
  expect(accepted).toBeLessThanOrEqual(100 + 5 * 100);
});

test('remembers a limited number of known addresses, the latest ones', () => {
  const rate = new AcceptRate(new ManualClock(), 1);
  rate.know('192.0.2.1');
  for (let i = 0; i < 1_024; i++) rate.know(`10.0.${i >> 8}.${i & 255}`);
  expect(rate.isKnown('192.0.2.1')).toBe(false);
  expect(rate.isKnown('10.0.3.255')).toBe(true);
});
