import { expect, test } from '@jest/globals';
import { StandingDelay } from './standing-delay.js';

/** Takes a packet each 20 ms for some seconds. */
function run(standing: StandingDelay, seconds: number, delayOf: (packet: number) => number): number {
  for (let i = 0; i < seconds * 50; i++) standing.sample(delayOf(i), (atMs += 20));
  return standing.ms;
}
let atMs = 5_000;

test('tells how long the fastest packet waits, whatever the clocks of the two sides', () => {
  const standing = new StandingDelay();
  expect(run(standing, 5, () => -7_000)).toBe(0);
  expect(run(standing, 2, () => -6_700)).toBe(300);
  expect(run(standing, 2, () => -7_000)).toBe(0);
});

test('does not take delays for a queue while single packets are fast', () => {
  const standing = new StandingDelay();
  run(standing, 5, () => 30);
  expect(run(standing, 5, (packet) => (packet % 20 === 0 ? 30 : 400))).toBe(0);
});

test('takes a longer way for the usual one after two minutes', () => {
  const standing = new StandingDelay();
  run(standing, 5, () => 30);
  expect(run(standing, 50, () => 230)).toBe(200);
  expect(run(standing, 75, () => 230)).toBe(0);
});

test('starts over when the clock has jumped', () => {
  const standing = new StandingDelay();
  run(standing, 5, () => 30);
  standing.reset();
  expect(run(standing, 5, () => 9_000)).toBe(0);
});
