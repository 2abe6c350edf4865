import { expect, test } from '@jest/globals';
import { argumentsFor, progressBar, progressOf } from './simulation-progress.mjs';

test.each([
  [{ done: 0, count: 10, ms: 0 }, '0 of 10 histories, 0.0 a second'],
  [{ done: 30, count: 90, ms: 2_000 }, '30 of 90 histories, 15.0 a second, 4 s left'],
  [{ done: 1_000, count: 100_000, ms: 25_000 }, '1000 of 100000 histories, 40.0 a second, 41 min left'],
  [{ done: 1_000, count: 1_000_000, ms: 25_000 }, '1000 of 1000000 histories, 40.0 a second, 6.9 h left'],
  [{ done: 90, count: 90, ms: 3_000 }, '90 of 90 histories, 30.0 a second'],
])('says how far a run is and when it will end: %j', (run, text) => {
  expect(progressOf(run)).toBe(text);
});

test('draws a bar that grows with the run', () => {
  const filled = [0, 5, 10].map((done) => progressBar({ done, count: 10, ms: 1_000 }).split('#').length - 1);
  expect(filled).toEqual([0, 15, 30]);
});

test('names the arguments that repeat a history of the same run', () => {
  const plain = { nodes: undefined, hasStandbys: false, faults: undefined };
  expect(argumentsFor(plain, { seed: 7, seeds: 1 })).toBe('npm run simulate -- --seeds 1 --seed 7');
  const special = { nodes: 4, hasStandbys: true, faults: ['crash', 'busy'] };
  const expected = 'npm run simulate -- --seeds 20 --seed 8 --nodes 4 --standby --faults crash,busy';
  expect(argumentsFor(special, { seed: 8, seeds: 20 })).toBe(expected);
});
