import { expect, test } from '@jest/globals';
import { checkPlan, forwardedTracks, rampOf } from './plan.js';

const plan = { rooms: 2, people: 10, publishers: 3, minutes: 1, kbps: 500 };

test('sends each video to everybody else in its room', () => {
  expect(forwardedTracks(plan)).toBe(54);
});

test('refuses a plan above the ceiling unless `--ceiling` raises it', () => {
  expect(() => checkPlan(plan, 53)).toThrow(
    expect.objectContaining({ exit: 64, advice: 'if nobody else needs this server, say --ceiling 54' }),
  );
  expect(() => checkPlan(plan, 54)).not.toThrow();
});

test('refuses more publishers than people', () => {
  expect(() => checkPlan({ ...plan, publishers: 11 }, 1_000)).toThrow('of 10 people in a room 11 cannot publish');
});

test.each([
  [1, 2, [2]],
  [1, 5, [3, 5]],
  [2, 10, [2, 4, 6, 8, 10, 12, 14, 16, 18, 20]],
  [3, 7, [2, 4, 6, 8, 11, 13, 15, 17, 19, 21]],
])('ramps %i rooms with %i people up to all of them', (rooms, people, ramp) => {
  expect(rampOf({ ...plan, rooms, people })).toEqual(ramp);
});
