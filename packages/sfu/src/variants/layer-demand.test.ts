import { expect, test } from '@jest/globals';
import { LayerDemand } from './layer-demand.js';

const [NONE, LOW, MEDIUM, HIGH] = [-1, 0, 1, 2];

test('all variants count as needed at first', () => {
  const demand = new LayerDemand();
  expect(demand.look(HIGH, 0)).toBeUndefined();
  expect([LOW, MEDIUM, HIGH].map((index) => demand.isUnneeded(index))).toEqual([false, false, false]);
});

test('a lower demand is told once it has lasted 5 s', () => {
  const demand = new LayerDemand();
  expect(demand.look(LOW, 0)).toBeUndefined();
  expect(demand.look(LOW, 4_999)).toBeUndefined();
  expect(demand.look(LOW, 5_000)).toBe('l');
  expect([LOW, MEDIUM, HIGH].map((index) => demand.isUnneeded(index))).toEqual([false, true, true]);
});

test('a viewer that comes back within 5 s changes nothing', () => {
  const demand = new LayerDemand();
  demand.look(LOW, 0);
  expect(demand.look(HIGH, 4_000)).toBeUndefined();
  expect(demand.look(LOW, 6_000)).toBeUndefined();
  expect(demand.look(LOW, 11_000)).toBe('l');
});

test('a higher demand is told at once', () => {
  const demand = new LayerDemand();
  demand.look(NONE, 0);
  expect(demand.look(NONE, 5_000)).toBeNull();
  expect(demand.look(MEDIUM, 5_100)).toBe('m');
  expect(demand.look(HIGH, 5_200)).toBe('h');
});

test('a variant that is needed again may still be stopped for 3.5 s, and one that always was may not', () => {
  const demand = new LayerDemand();
  demand.look(LOW, 0);
  demand.look(LOW, 5_000);
  demand.look(HIGH, 6_000);
  const at = (nowMs: number) => [LOW, MEDIUM, HIGH].map((index) => demand.mayHaveStopped(index, nowMs));
  expect(at(9_400)).toEqual([false, true, true]);
  expect(at(9_500)).toEqual([false, false, false]);
});

test('looks are due every 100 ms', () => {
  const demand = new LayerDemand();
  demand.look(HIGH, 1_000);
  expect([1_099, 1_100].map((nowMs) => demand.isDue(nowMs))).toEqual([false, true]);
});
