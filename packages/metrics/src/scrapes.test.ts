import { setImmediate as settle } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { Scrapes } from './scrapes.js';

/** Starts scrapes with numbered texts that take `costMs` each. */
function start(costMs: number) {
  const clock = new ManualClock();
  const begun: number[] = [];
  const scrapes = new Scrapes(() => {
    begun.push(clock.now());
    return new Promise((resolve) => clock.setTimeout(() => resolve(`text ${begun.length}`), costMs));
  }, clock);

  async function pass(ms: number): Promise<void> {
    await settle();
    await clock.advanceAsync(ms, () => settle());
  }

  return { begun, scrapes, pass };
}

test('lets callers that ask during a scrape share the next one, which starts after nine times its duration', async () => {
  const { scrapes, begun, pass } = start(100);
  const first = scrapes.take();
  await pass(50);
  const others = Array.from({ length: 1_000 }, () => scrapes.take());
  await pass(949);
  expect(String(await first)).toBe('text 1');
  expect(begun).toEqual([0]);
  await pass(101);

  const texts = await Promise.all(others);
  expect(String(texts[0])).toBe('text 2');
  expect(new Set(texts).size).toBe(1);
  expect(begun).toEqual([0, 1_000]);
});

test('starts a text at once after the pause, which is 5 s at most', async () => {
  const { scrapes, begun, pass } = start(2_000);
  void scrapes.take();
  await pass(2_000);
  void scrapes.take();
  await pass(5_000 + 2_000 + 60_000);
  void scrapes.take();
  await pass(1);

  expect(begun).toEqual([0, 7_000, 69_000]);
});

test('fails for all who share a failing text, and generates the next one', async () => {
  let fails = true;
  const scrapes = new Scrapes(() => (fails ? Promise.reject(new Error('broken')) : Promise.resolve('text')));
  await expect(Promise.all([scrapes.take(), scrapes.take()])).rejects.toThrow('broken');
  fails = false;

  expect(String(await scrapes.take())).toBe('text');
});
