import { expect, test } from '@jest/globals';
import { Pacer } from './pacer.js';

/** Sends packets of 1,000 bytes whenever there is room, looking every 20 ms. Returns the bytes sent. */
function fill(pacer: Pacer, fromMs: number, toMs: number): number {
  let bytes = 0;
  for (let nowMs = fromMs; nowMs < toMs; nowMs += 20) {
    while (pacer.hasRoom(nowMs)) {
      pacer.sent(1_000, nowMs);
      bytes += 1_000;
    }
  }
  return bytes;
}

test('holds nothing back while no limit of the link is known', () => {
  const pacer = new Pacer();
  for (let i = 0; i < 1_000; i += 1) pacer.sent(1_000, 0);
  expect(pacer.hasRoom(0)).toBe(true);
});

test('lets a burst of 40 ms leave at once, and the rest at a rate a quarter above the limit', () => {
  const pacer = new Pacer();
  pacer.limit(800_000, 0);
  // 125 bytes per ms.
  expect(fill(pacer, 0, 20)).toBe(5_000);
  expect(fill(pacer, 20, 1_000) / 980).toBeCloseTo(125, -1);
});

test('saves no room while little is sent', () => {
  const pacer = new Pacer();
  pacer.limit(800_000, 0);
  expect(fill(pacer, 60_000, 60_020)).toBe(5_000);
});

test('lets everything leave once the limit is unknown again, and begins anew with the next one', () => {
  const pacer = new Pacer();
  pacer.limit(800_000, 0);
  fill(pacer, 0, 20);
  expect(pacer.hasRoom(0)).toBe(false);
  pacer.limit(Infinity, 0);
  expect(pacer.hasRoom(0)).toBe(true);
});

test('keeps the limit of a link that was congested less than two seconds ago, however long packets wait', () => {
  const pacer = new Pacer();
  pacer.limit(800_000, 1_000);
  fill(pacer, 1_000, 1_020);
  pacer.lapse(2_999);
  expect(pacer.hasRoom(1_000)).toBe(false);
});

test('holds nothing back from a lapse of the limit until the next congestion', () => {
  const pacer = new Pacer();
  pacer.limit(800_000, 0);
  fill(pacer, 0, 20);
  pacer.lapse(2_000);
  pacer.limit(800_000, 0);
  expect(pacer.hasRoom(2_000)).toBe(true);
  pacer.limit(800_000, 2_050);
  fill(pacer, 2_050, 2_070);
  expect(pacer.hasRoom(2_050)).toBe(false);
});
