import { describe, expect, test } from '@jest/globals';
import { TurnQueue } from './turn-queue.js';

describe('the turn queue', () => {
  test('runs one step per turn, in order, including steps added by other steps', () => {
    const turns: (() => void)[] = [];
    const done: number[] = [];
    const queue = new TurnQueue({ maxWaiting: 512, perTurn: 1, nextTurn: (run) => turns.push(run) });
    for (const step of [1, 2]) queue.add(() => done.push(step));
    expect(done).toEqual([]);
    expect(turns.length).toBe(1);
    turns.shift()?.();
    expect(done).toEqual([1]);
    expect(turns.length).toBe(1);
    queue.add(() => done.push(3));
    turns.shift()?.();
    turns.shift()?.();
    expect(done).toEqual([1, 2, 3]);
    expect(turns.length).toBe(0);
    queue.add(() => done.push(4));
    turns.shift()?.();
    expect(done).toEqual([1, 2, 3, 4]);
    expect(turns.length).toBe(0);
  });

  test('drops steps beyond the limit, and accepts more once some have run', () => {
    const turns: (() => void)[] = [];
    const queue = new TurnQueue({ maxWaiting: 512, perTurn: 1, nextTurn: (run) => turns.push(run) });
    const taken = Array.from({ length: 600 }, () => queue.add(() => undefined)).filter(Boolean);
    expect(taken.length).toBe(512);
    turns.shift()?.();
    expect(queue.add(() => undefined)).toBe(true);
    expect(queue.add(() => undefined)).toBe(false);
  });

  test('runs several steps per turn and continues after one that throws', () => {
    const turns: (() => void)[] = [];
    const done: number[] = [];
    const queue = new TurnQueue({ maxWaiting: 512, perTurn: 2, nextTurn: (run) => turns.push(run) });
    for (const step of [1, 2, 3]) queue.add(() => done.push(step));
    queue.add(() => {
      throw new Error('a fault');
    });
    queue.add(() => done.push(5));
    turns.shift()?.();
    expect(done).toEqual([1, 2]);
    expect(() => turns.shift()?.()).toThrow('a fault');
    turns.shift()?.();
    expect(done).toEqual([1, 2, 3, 5]);
    expect(turns.length).toBe(0);
  });

  test('keeps no list of past steps under sustained load', () => {
    const turns: (() => void)[] = [];
    const queue = new TurnQueue({ maxWaiting: 512, perTurn: 8, nextTurn: (run) => turns.push(run) });
    let done = 0;
    for (let step = 0; step < 10_000; step++) {
      while (queue.add(() => void done++));
      turns.shift()?.();
    }
    expect(done).toBe(80_000);
  });

  test('runs steps immediately without turns of an event loop', () => {
    const done: number[] = [];
    new TurnQueue({ maxWaiting: 1, perTurn: 1 }).add(() => done.push(1));
    expect(done).toEqual([1]);
  });
});
