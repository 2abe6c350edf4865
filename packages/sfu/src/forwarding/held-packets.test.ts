import { beforeEach, expect, test } from '@jest/globals';
import { Pacer } from '../bandwidth/pacer.js';
import { HeldPackets } from './held-packets.js';

let held: HeldPackets;
let wide: Pacer;
let full: Pacer;
beforeEach(() => {
  held = new HeldPackets();
  held.start(100);
  wide = new Pacer();
  full = new Pacer();
  full.limit(0, 0);
});

test('lets packets pass while the link has room', () => {
  expect([100, 101].map((sequence) => held.holds(sequence, wide, 0))).toEqual([false, false]);
  expect(held.take(101)).toBe(-1);
});

test('holds a packet for which there is no room and all later ones, and gives them out in order', () => {
  expect(held.holds(100, full, 0)).toBe(true);
  expect(held.holds(101, wide, 0)).toBe(true);
  expect([held.take(101), held.take(101), held.take(101)]).toEqual([100, 101, -1]);
  expect(held.holds(102, wide, 0)).toBe(false);
});

test('lets a late packet pass that later ones have overtaken', () => {
  expect(held.passes(102)).toBe(true);
  expect(held.holds(101, full, 0)).toBe(false);
  expect(held.passes(101)).toBe(false);
});

test('forgets what waits when another source starts', () => {
  held.holds(100, full, 0);
  held.start(7);
  expect(held.take(100)).toBe(-1);
  expect(held.passes(7)).toBe(true);
});

test('passes over packets that the store cannot have', () => {
  held.holds(100, full, 0);
  expect(held.take(30_001)).toBe(100);
  held.passOver(30_000);
  expect([held.take(30_001), held.take(30_001), held.take(30_001)]).toEqual([30_000, 30_001, -1]);
});

test('remembers which of the waiting packets carry no media', () => {
  expect(held.holdsEmpty(100)).toBe(false);
  held.holds(101, full, 0);
  expect(held.holdsEmpty(102)).toBe(true);
  expect([101, 102].map((sequence) => held.isEmpty(sequence))).toEqual([false, true]);
});

test('remembers at most 256 packets without media', () => {
  held.holds(100, full, 0);
  for (let sequence = 101; sequence < 1_000; sequence += 1) expect(held.holdsEmpty(sequence)).toBe(true);
  expect([101, 356, 357].map((sequence) => held.isEmpty(sequence))).toEqual([true, true, false]);
});

test('lets packets wait for 900 ms at most', () => {
  held.holds(100, full, 1_000);
  expect(held.isOverdue(1_899)).toBe(false);
  expect(held.isOverdue(1_900)).toBe(true);
});
