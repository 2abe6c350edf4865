import { describe, expect, test } from '@jest/globals';
import { ManualClock } from './testing/index.js';
import { inTime, sleep } from './waiting.js';

const never = new Promise<string>(() => {});
const lateError = (): never => {
  throw new Error('too late');
};

describe('sleep', () => {
  test('ends on time and leaves no timer', async () => {
    const clock = new ManualClock();
    const slept = sleep(100, { clock });
    clock.advance(99);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    await slept;
    expect(clock.pending).toBe(0);
  });

  test('ends early when aborted, before or while it waits', async () => {
    const clock = new ManualClock();
    await sleep(100, { clock, signal: AbortSignal.abort() });
    const abort = new AbortController();
    const slept = sleep(100, { clock, signal: abort.signal });
    abort.abort();
    await slept;
    expect(clock.pending).toBe(0);
  });
});

describe('work with a time limit', () => {
  test('keeps the outcome of work that finishes in time', async () => {
    const clock = new ManualClock();
    await expect(inTime(Promise.resolve('done'), { timeoutMs: 5, late: lateError, clock })).resolves.toBe('done');
    const failure = Promise.reject(new Error('broken'));
    await expect(inTime(failure, { timeoutMs: 5, late: lateError, clock })).rejects.toThrow('broken');
    expect(clock.pending).toBe(0);
  });

  test('gives late work the outcome of `late`', async () => {
    const clock = new ManualClock();
    const value = inTime(never, { timeoutMs: 5, late: () => 'late' as const, clock });
    const error = inTime(never, { timeoutMs: 5, late: lateError, clock });
    clock.advance(5);
    await expect(value).resolves.toBe('late');
    await expect(error).rejects.toThrow('too late');
    expect(clock.pending).toBe(0);
  });

  test('lets late work fail without an unhandled rejection', async () => {
    const clock = new ManualClock();
    let fail: (reason: Error) => void = () => {};
    const work = new Promise<string>((_, reject) => {
      fail = reject;
    });
    const outcome = inTime(work, { timeoutMs: 5, late: () => 'late', clock });
    clock.advance(5);
    await expect(outcome).resolves.toBe('late');
    fail(new Error('broken'));
    await new Promise(setImmediate);
  });
});
