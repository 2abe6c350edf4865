import { expect, test } from '@jest/globals';
import { type BudgetHolder, PictureBudget } from './picture-budget.js';

function world(limit: number): { budget: PictureBudget; given: string[]; track: (name: string) => BudgetHolder } {
  const given: string[] = [];
  const track = (name: string): BudgetHolder => ({ origin: name.charAt(0), giveUp: () => void given.push(name) });

  return { budget: new PictureBudget(limit), given, track };
}

test('reserves what fits, and changes nothing otherwise', () => {
  const { budget, given, track } = world(100);
  const [a, b] = [track('a'), track('b')];
  expect(budget.reserve(a, 60)).toBe(true);
  expect(budget.reserve(b, 60)).toBe(false);
  expect(budget.reserve(b, 40)).toBe(true);
  expect(budget.reserve(a, 61)).toBe(false);
  expect(budget.bytes).toBe(100);
  budget.release(a);
  budget.release(a);
  expect(budget.bytes).toBe(40);
  expect(given).toEqual([]);
});

test('keeps room for other publishers when one has many tracks', () => {
  const { budget, given, track } = world(100);
  for (let i = 0; i < 10; i++) budget.reserve(track(`a${i}`), 10);
  expect(budget.reserve(track('b'), 25)).toBe(true);
  expect(given).toHaveLength(3);
  expect(budget.bytes).toBe(95);
});

test('gives nothing to a publisher that would then have as much as the largest one', () => {
  const { budget, given, track } = world(100);
  for (const name of ['a1', 'a2', 'b1', 'b2']) budget.reserve(track(name), 25);
  expect(budget.reserve(track('c'), 60)).toBe(false);
  expect(budget.reserve(track('a3'), 10)).toBe(false);
  expect(given).toEqual([]);
  expect(budget.reserve(track('c'), 10)).toBe(true);
  expect(given).toHaveLength(1);
});

test('does not evict a newcomer in favour of tracks that made room for it', () => {
  const { budget, given, track } = world(100);
  const large = track('a1');
  budget.reserve(track('a2'), 40);
  budget.reserve(large, 60);
  expect(budget.reserve(track('b'), 30)).toBe(true);
  expect(given).toEqual(['a1']);
  expect(budget.reserve(large, 60)).toBe(false);
});
