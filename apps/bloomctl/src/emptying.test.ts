import { expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { untilEmpty } from './emptying.js';
import { EXIT, Failure } from './exit.js';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const STAYS = [{ room: 'kitchen', reason: 'no other node can take it' }];

/** Returns what is said while a node answers this each second. `movesUntil`: seconds from the start. */
async function said(
  answers: ({ rooms: number; staying?: typeof STAYS } | null | 'late')[],
  movesUntil = 30,
): Promise<string[]> {
  const clock = new ManualClock();
  const lines: string[] = [];
  const ask = async () => {
    const answer = answers.shift();
    if (answer === 'late') throw new Failure(EXIT.timeout, 'no answer');
    const drain = answer === null ? null : { staying: answer?.staying ?? [], movesUntil: movesUntil * 1_000 };
    return { rooms: answer?.rooms ?? 0, drain, now: clock.now() } as never;
  };
  const over = untilEmpty({ node: 'a@localhost', ask, say: (line) => void lines.push(line), clock }).catch(
    (error: unknown) => void lines.push(String(error)),
  );
  for (let second = 0; second < 10; second += 1) await clock.advanceAsync(1_000, turn);
  await over;

  return lines;
}

test('ends with the news that no room is left, even after reasons why some stay for a moment', async () => {
  const stays = 'kitchen stays: no other node can take it';
  expect(
    await said([{ rooms: 3 }, { rooms: 1, staying: STAYS }, 'late', { rooms: 1, staying: STAYS }, { rooms: 0 }]),
  ).toEqual(['3 rooms left', '1 room left', stays, '0 rooms left']);
});

test('says once that the rooms which are left no longer move', async () => {
  expect(await said([{ rooms: 1 }, { rooms: 1 }, { rooms: 1 }, { rooms: 0 }], 1)).toEqual([
    '1 room left',
    'the time to move has passed: rooms are moved again by another drain --move',
    '0 rooms left',
  ]);
});

test('fails if the node takes rooms again before it is empty', async () => {
  expect(await said([{ rooms: 1 }, null])).toEqual([
    '1 room left',
    'Failure: a@localhost takes rooms again: its drain has ended',
  ]);
});
