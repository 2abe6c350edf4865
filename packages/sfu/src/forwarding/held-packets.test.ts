import { beforeEach, expect, test } from '@jest/globals';
import { PacketStore } from '@bloom/rtp';
import { Pacer } from '../bandwidth/pacer.js';
import { HeldPackets, sendHeld } from './held-packets.js';

let held: HeldPackets;
let wide: Pacer;
let full: Pacer;
beforeEach(() => {
  held = new HeldPackets();
  held.start(100);
  wide = new Pacer();
  full = new Pacer();
  full.limit(0, -60_000);
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

test('lets a packet without room wait for its own 900 ms at most, and then gives up the limit', () => {
  const store = new PacketStore();
  for (const [sequence, atMs] of [
    [100, 0],
    [101, 500],
  ] as const) {
    store.put(sequence, Buffer.alloc(10), 0, 10, atMs);
    held.holds(sequence, full, atMs);
  }
  const mayLeave = (nowMs: number): boolean => held.mayLeave({ store, newest: 101, openEnd: -1 }, full, nowMs);
  held.take(101);
  expect([900, 1_400].map(mayLeave)).toEqual([false, false]);
  expect(mayLeave(1_401)).toBe(true);
  expect(full.hasRoom(1_401)).toBe(true);
});

test('lets a packet leave without room once the store needs its place, or if it is missing', () => {
  const store = new PacketStore({ packets: 16, bytes: 1_000 });
  held.holds(100, full, 0);
  const mayLeave = (newest: number): boolean => held.mayLeave({ store, newest, openEnd: -1 }, full, 0);
  expect(mayLeave(101)).toBe(true);
  for (const sequence of [100, 101, 102]) store.put(sequence, Buffer.alloc(200), 0, 200, 0);
  expect(mayLeave(102)).toBe(true);
  held.take(102);
  expect(mayLeave(102)).toBe(false);
});

test('a slot that fails holds up no other, and what it has left is tried again', () => {
  const faults: unknown[] = [];
  const slot = (left: number, fails = false) => ({
    sendHeld: () => {
      if (fails) throw new Error('broken');
      left -= 1;
      return left >= 0;
    },
    get hasHeld(): boolean {
      return left > 0;
    },
    fault: (error: unknown) => void faults.push(error),
  });
  const [good, broken] = [slot(3), slot(2, true)];
  const slots = new Map([
    ['1', broken],
    ['2', good],
  ]);
  expect(sendHeld(slots, 0)).toBe(true);
  expect(good.hasHeld).toBe(false);
  expect(faults.length).toBeGreaterThan(0);
  slots.delete('1');
  expect(sendHeld(slots, 0)).toBe(false);
});
