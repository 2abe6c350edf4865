import { expect, test } from '@jest/globals';
import { longestOutside } from './pauses.js';

const OWN = [
  { from: 1_000, to: 1_400 },
  { from: 5_000, to: 5_900 },
];

test('a pause counts whole when others had theirs at another time', () => {
  expect(longestOutside(OWN, [{ from: 2_000, to: 4_000 }])).toBe(900);
});

test('of a pause that others had too, only the rest counts', () => {
  expect(
    longestOutside(OWN, [
      { from: 4_900, to: 5_200 },
      { from: 5_800, to: 7_000 },
    ]),
  ).toBe(600);
});

test('a pause that others had whole does not count', () => {
  expect(longestOutside(OWN, [{ from: 4_000, to: 6_000 }])).toBe(400);
});
