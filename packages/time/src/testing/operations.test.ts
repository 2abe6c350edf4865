import { expect, test } from '@jest/globals';
import { operationsOf } from './operations.js';

const operations = operationsOf('operations.test.ts');
const nothing = operationsOf('no-such-file.ts');

function loop(times: number): number {
  let sum = 0;
  for (let i = 0; i < times; i += 1) sum += i;
  return sum;
}

test('counts loops, even those of a function that has run before', () => {
  const few = operations(() => loop(10));
  expect(few).toBeLessThan(100);
  expect(operations(() => loop(10_000)) - few).toBeGreaterThanOrEqual(9_900);
});

test('throws when the file did not run', () => {
  expect(() => nothing(() => undefined)).toThrow('nothing of no-such-file.ts ran');
});
