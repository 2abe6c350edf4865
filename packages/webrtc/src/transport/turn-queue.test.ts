import { describe, expect, test } from '@jest/globals';
import { TurnQueue } from './turn-queue.js';

describe('the queue of steps between media', () => {
  test('handles one step per turn, in order, also those added meanwhile', () => {
    const turns: (() => void)[] = [];
    const done: number[] = [];
    const queue = new TurnQueue({ maxWaiting: 512, perTurn: 1, nextTurn: (run) => turns.push(run) });
    for (const step of [1, 2]) queue.add(() => done.push(step));
    expect([done, turns.length]).toEqual([[], 1]);
    turns.shift()?.();
    expect([done, turns.length]).toEqual([[1], 1]);
    queue.add(() => done.push(3));
    turns.shift()?.();
    turns.shift()?.();
    expect([done, turns.length]).toEqual([[1, 2, 3], 0]);
    queue.add(() => done.push(4));
    turns.shift()?.();
    expect([done, turns.length]).toEqual([[1, 2, 3, 4], 0]);
  });

  test('drops what is too much, and takes again when some have gone', () => {
    const turns: (() => void)[] = [];
    const queue = new TurnQueue({ maxWaiting: 512, perTurn: 1, nextTurn: (run) => turns.push(run) });
    const taken = Array.from({ length: 600 }, () => queue.add(() => undefined)).filter(Boolean);
    expect(taken.length).toBe(512);
    turns.shift()?.();
    expect(queue.add(() => undefined)).toBe(true);
    expect(queue.add(() => undefined)).toBe(false);
  });

  test('does several steps per turn and goes on after one that throws', () => {
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
    expect([done, turns.length]).toEqual([[1, 2, 3, 5], 0]);
  });

  test('keeps no list of the past under lasting load', () => {
    const turns: (() => void)[] = [];
    const queue = new TurnQueue({ maxWaiting: 512, perTurn: 8, nextTurn: (run) => turns.push(run) });
    let done = 0;
    for (let step = 0; step < 10_000; step++) {
      while (queue.add(() => void done++));
      turns.shift()?.();
    }
    expect(done).toBe(80_000);
  });

  test('without turns of an event loop nothing waits', () => {
    const done: number[] = [];
    new TurnQueue({ maxWaiting: 1, perTurn: 1 }).add(() => done.push(1));
    expect(done).toEqual([1]);
  });
});
