import { describe, expect, test } from '@jest/globals';
import { HandshakeQueue } from './handshake-queue.js';

describe('the queue of handshakes', () => {
  test('handles one step per turn, in order, also those added meanwhile', () => {
    const turns: (() => void)[] = [];
    const done: number[] = [];
    const queue = new HandshakeQueue((run) => turns.push(run));
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
    const queue = new HandshakeQueue((run) => turns.push(run));
    const taken = Array.from({ length: 600 }, () => queue.add(() => undefined)).filter(Boolean);
    expect(taken.length).toBe(512);
    turns.shift()?.();
    expect(queue.add(() => undefined)).toBe(true);
    expect(queue.add(() => undefined)).toBe(false);
  });

  test('without turns of an event loop nothing waits', () => {
    const done: number[] = [];
    new HandshakeQueue().add(() => done.push(1));
    expect(done).toEqual([1]);
  });
});
