import { expect, test } from '@jest/globals';
import { KeptSlots } from './kept-slots.js';

test('frees slots together once the queue has drained, after which they can be kept again', async () => {
  let queued = 3;
  const freed: number[] = [];
  const kept = new KeptSlots(
    () => queued--,
    (slot) => freed.push(slot),
  );
  kept.add(7);
  kept.add(9);
  while (queued >= 0) {
    expect(freed).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(freed).toEqual([7, 9]);

  queued = 0;
  kept.add(7);
  while (freed.length < 3) await new Promise((resolve) => setImmediate(resolve));
  expect(freed).toEqual([7, 9, 7]);
});
