import { afterEach, expect, test } from '@jest/globals';
import { judge, provenance } from './report.js';

afterEach(() => {
  process.exitCode = undefined;
});

test('leaves the exit status unchanged when a target is reached', () => {
  expect(judge(0.8, { must: 1, aim: 0.8 })).toBe('aim reached');
  expect(judge(1, { must: 1, aim: 0.8 })).toBe('must reached');
  expect(judge(90_000, { must: 90_000, aim: 120_000, better: 'more' })).toBe('must reached');
  expect(process.exitCode).toBeUndefined();
});

test.each([
  ['a value above its limit', 1.01, 'less'],
  ['a value below its limit', 0.99, 'more'],
  ['a value that could not be measured', Number.NaN, 'less'],
] as const)('misses the target with %s and exits with status 1', (_, value, better) => {
  expect(judge(value, { must: 1, aim: 1, better })).toBe('MISSED');
  expect(process.exitCode).toBe(1);
});

test('prints a table with its date and commit', () => {
  expect(provenance()).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC, commit ([0-9a-f]{7,}|unknown)/);
});
