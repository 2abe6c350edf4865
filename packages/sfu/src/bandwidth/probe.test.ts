import { beforeEach, expect, test } from '@jest/globals';
import { Probe } from './probe.js';

let probe: Probe;
beforeEach(() => {
  probe = new Probe();
});

/** Sends a probe of ten packets, 2 ms apart, which arrive `arrivalGapMs` apart. */
function send(arrivalGapMs: number, nowMs = 1_000): void {
  probe.start(nowMs);
  const id = Array.from({ length: 10 }, () => probe.sent())[0]!;
  probe.end();
  for (let i = 0; i < 10; i++) probe.arrived(id, 1_000, nowMs + i * 2, 60_000 + nowMs + i * arrivalGapMs);
}

test('reports one result per probe', () => {
  send(2);
  expect(probe.finish(1_100)).toEqual({ bps: 4_000_000, isWhole: true, isLimit: false });
  expect(probe.finish(1_100)).toBeUndefined();
});

test('finds the limit of a link in which the packets queue', () => {
  send(8);
  expect(probe.finish(1_200)).toEqual({ bps: 950_000, isWhole: true, isLimit: true });
});

test('does not count a packet of an earlier probe', () => {
  probe.start(1_000);
  const earlier = probe.sent();
  probe.start(2_000);
  probe.sent();
  probe.end();
  probe.arrived(earlier, 1_000, 1_000, 60_000);
  expect(probe.finish(2_100)).toBeUndefined();
  expect(probe.start(2_200)).toBe(false);
});

test('accepts a surprising result once a second probe has measured as much', () => {
  expect(probe.confirmed(2_000_000, 1_000)).toBe(0);
  expect(probe.wantsConfirmation).toBe(true);
  expect(probe.confirmed(3_000_000, 2_000)).toBe(2_000_000);
  expect(probe.wantsConfirmation).toBe(false);
});

test('discards a surprising result after five seconds, and after an ordinary one', () => {
  probe.confirmed(2_000_000, 1_000);
  expect(probe.confirmed(2_000_000, 6_000)).toBe(0);
  probe.refuted();
  expect(probe.confirmed(2_000_000, 6_100)).toBe(0);
});
