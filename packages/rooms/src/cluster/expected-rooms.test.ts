import { beforeEach, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import type { RoomRef } from '../room/room-messages.js';
import { Directory } from './directory.js';
import { EXPECTED_MS, ExpectedRooms } from './expected-rooms.js';

let clock: ManualClock;
let directory: Directory;
let expected: ExpectedRooms;
let outcomes: boolean[];

beforeEach(() => {
  clock = new ManualClock();
  directory = new Directory('a', clock);
  expected = new ExpectedRooms(directory, clock);
  outcomes = [];
  announce('b', 1);
});

function announce(node: string, epoch: number): void {
  expected.announced('kitchen');
  directory.add(node, { roomId: 'kitchen', createdAt: 1, epoch, ref: { path: node, key: node } as RoomRef });
}

const pass = (ms: number): Promise<void> =>
  clock.advanceAsync(ms, () => new Promise((resolve) => setImmediate(resolve)));

function wait(roomId = 'kitchen', isAwaited = false): void {
  void expected.isBack(roomId, isAwaited).then((isBack) => outcomes.push(isBack));
}

test('waits for a room whose owner has just been lost until another member announces it', async () => {
  directory.lost('b');
  wait();
  wait();
  await pass(EXPECTED_MS - 1);
  expect(outcomes).toEqual([]);
  announce('c', 3);
  await pass(0);
  expect(outcomes).toEqual([true, true]);
});

test('waits no longer than a standby may need, counted from the loss', async () => {
  directory.lost('b');
  await pass(EXPECTED_MS - 1_000);
  wait();
  await pass(999);
  expect(outcomes).toEqual([]);
  await pass(1);
  expect(outcomes).toEqual([false]);
});

test('waits for no room whose owner was lost long ago', async () => {
  directory.lost('b');
  await pass(EXPECTED_MS);
  expect(await expected.isBack('kitchen')).toBe(false);
});

test('waits for no room that nobody has announced', async () => {
  expect(await expected.isBack('cellar')).toBe(false);
});

test('waits for a room at a standby although nobody announces it any more', async () => {
  directory.replace('b', []);
  wait('kitchen', true);
  await pass(EXPECTED_MS - 1);
  expect(outcomes).toEqual([]);
  announce('c', 3);
  await pass(0);
  expect(outcomes).toEqual([true]);
});

test('lets each of those who wait for such a room wait for the same time', async () => {
  directory.replace('b', []);
  wait('kitchen', true);
  await pass(1_000);
  wait('kitchen', true);
  await pass(EXPECTED_MS - 1_000);
  expect(outcomes).toEqual([false]);
  announce('c', 3);
  await pass(0);
  expect(outcomes).toEqual([false, true]);
});

test('says at once that a room has an owner with a link', async () => {
  expect(await expected.isBack('kitchen')).toBe(true);
});

test('waits again for a room that is lost again', async () => {
  directory.lost('b');
  wait();
  await pass(EXPECTED_MS);
  announce('c', 3);
  directory.lost('c');
  wait();
  await pass(100);
  announce('d', 5);
  await pass(0);
  expect(outcomes).toEqual([false, true]);
});
