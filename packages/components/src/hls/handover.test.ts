import { expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { Handover } from './handover.js';

function start(isUnderway?: () => boolean): { clock: ManualClock; handover: Handover; over: string[] } {
  const clock = new ManualClock();
  const handover = new Handover(clock, isUnderway);
  const over: string[] = [];
  void handover.over.then((how) => over.push(how));

  return { clock, handover, over };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('keeps the files of a stream as long as another node asks for them, and 3 minutes longer', async () => {
  const { clock, handover, over } = start();
  await clock.advanceAsync(170_000, turn);
  handover.touch();
  await clock.advanceAsync(179_000, turn);
  expect(over).toEqual([]);
  await clock.advanceAsync(1_000, turn);
  expect(over).toEqual(['abandoned']);
});

test('keeps the files as long as the room may not have arrived, unless the node ends', async () => {
  let isUnderway = true;
  const { clock, over } = start(() => isUnderway);
  await clock.advanceAsync(600_000, turn);
  expect(over).toEqual([]);
  isUnderway = false;
  await clock.advanceAsync(180_000, turn);
  expect(over).toEqual(['abandoned']);

  const ending = start(() => true);
  ending.handover.hurry();
  await ending.clock.advanceAsync(10_000, turn);
  expect(ending.over).toEqual(['abandoned']);
});

test('waits for 10 s only once the node ends', async () => {
  const { clock, handover, over } = start();
  handover.hurry();
  await clock.advanceAsync(9_000, turn);
  // Asking again does not begin the time anew.
  handover.hurry();
  await clock.advanceAsync(1_000, turn);
  expect(over).toEqual(['abandoned']);
});

test('is over once the other node has the files, whatever follows', async () => {
  const { clock, handover, over } = start();
  handover.end('copied');
  handover.hurry();
  handover.end('lost');
  await turn();
  expect(over).toEqual(['copied']);
  expect(clock.pending).toBe(0);
});
