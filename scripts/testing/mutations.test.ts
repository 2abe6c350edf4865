import { expect, test } from '@jest/globals';
import { stale } from './mutations.mjs';

const mutation = { id: 'a', file: 'x.ts', find: 'a < b', replace: 'a > b', tests: ['x.test'] };

test('requires a mutation to match its source once, change it, and name tests', () => {
  const read = (file: string): string => {
    if (file === 'x.ts') return 'if (a < b) b < c || b < c;';
    throw new Error('ENOENT');
  };
  expect(stale([mutation], read)).toEqual([]);
  expect(stale([{ ...mutation, find: 'b > a' }], read)).toEqual(['a x.ts: "b > a" occurs 0 times']);
  expect(stale([{ ...mutation, find: 'b < c' }], read)).toEqual(['a x.ts: "b < c" occurs 2 times']);
  expect(stale([{ ...mutation, replace: 'a < b', tests: [] }], read)).toEqual([
    'a x.ts: it changes nothing',
    'a x.ts: it names no tests',
  ]);
  expect(stale([mutation, { ...mutation, file: 'y.ts' }], read)).toEqual(['a y.ts: there is no such file']);
});
