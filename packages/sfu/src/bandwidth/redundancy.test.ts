import { expect, test } from '@jest/globals';
import { Redundancy } from './redundancy.js';

/** Counts `seconds` of 50 packets a second, of which this part is lost. */
function run(redundancy: Redundancy, seconds: number, part: number, standingMs = 0): number[] {
  const distances: number[] = [];
  for (let i = 0; i < seconds * 5; i++) {
    totals.atMs += 200;
    totals.lost += 10 * part;
    totals.received += 10 * (1 - part);
    redundancy.count(totals, totals.atMs, standingMs);
    distances.push(redundancy.distance);
  }
  return distances;
}
const totals = { lost: 0, received: 0, atMs: 0 };

test('repeats nothing without loss, and one or two packets by the loss', () => {
  const redundancy = new Redundancy();
  expect(new Set(run(redundancy, 10, 0))).toEqual(new Set([0]));
  run(redundancy, 5, 0.04);
  expect(redundancy.distance).toBe(1);
  run(redundancy, 1, 0.2);
  expect(redundancy.distance).toBe(2);
});

test('repeats less some seconds after the loss has ended, and then nothing', () => {
  const redundancy = new Redundancy();
  run(redundancy, 5, 0.2);
  const distances = run(redundancy, 40, 0);
  expect(distances.slice(0, 25)).toEqual(Array.from({ length: 25 }, () => 2));
  expect(distances.toSorted((a, b) => b - a)).toEqual(distances);
  expect(distances.at(-1)).toBe(0);
});

test('does not take a single lost packet for loss', () => {
  const redundancy = new Redundancy();
  redundancy.count({ lost: 0, received: 0 }, 0, 0);
  redundancy.count({ lost: 1, received: 29 }, 600, 0);
  expect(redundancy.distance).toBe(0);
});

test('believes the receiver reports of a client without feedback on packets', () => {
  const redundancy = new Redundancy();
  redundancy.measured(0.2, 0, 0);
  expect(redundancy.distance).toBe(2);
});

test('repeats nothing against the loss of a full queue, nor for some seconds after it', () => {
  const redundancy = new Redundancy();
  expect(new Set(run(redundancy, 10, 0.3, 400))).toEqual(new Set([0]));
  expect(new Set(run(redundancy, 3, 0.3))).toEqual(new Set([0]));
  run(redundancy, 3, 0.3);
  expect(redundancy.distance).toBe(2);
});

test('waits twice as long each time that redundancy has filled the queue, until the loss has ended once', () => {
  const redundancy = new Redundancy();
  const pauses = (): number => {
    run(redundancy, 1, 0.3, 400);
    for (let seconds = 0; ; seconds++) {
      if (run(redundancy, 1, 0.3).at(-1)! > 0) return 8 * Math.round(seconds / 8);
    }
  };
  run(redundancy, 5, 0.3);
  expect(Array.from({ length: 6 }, pauses)).toEqual([8, 16, 32, 64, 120, 120]);
  run(redundancy, 60, 0);
  run(redundancy, 5, 0.3);
  expect(pauses()).toBe(8);
});
