import { expect, test } from '@jest/globals';
import { SendQueue } from './send-queue.js';

const message = (reliable: boolean, bytes: number, stream = 0) => ({ stream, reliable, frame: Buffer.alloc(bytes) });
const KIB = 1024;

test('drops the oldest lossy messages to make room, and refuses a reliable one that does not fit', () => {
  const queue = new SendQueue();
  for (let n = 0; n < 16; n++) expect(queue.push(message(false, 64 * KIB, n))).toBe(true);
  expect(queue.push(message(false, 64 * KIB, 16))).toBe(true);
  expect(queue.length).toBe(16);
  expect(queue.bytes).toBe(KIB * KIB);
  expect(queue.dropped).toBe(1);
  expect(queue.shift()?.stream).toBe(1);
  for (let n = 0; n < 16; n++) expect(queue.push(message(true, 64 * KIB))).toBe(true);
  expect(queue.length).toBe(16);
  expect(queue.dropped).toBe(16);
  expect(queue.push(message(true, 1))).toBe(false);
  expect(queue.push(message(false, 1))).toBe(true);
  expect(queue.length).toBe(16);
  expect(queue.dropped).toBe(17);
});

test('holds at most 4,096 messages', () => {
  const queue = new SendQueue();
  for (let n = 0; n < 4_096; n++) queue.push(message(true, 1));
  expect(queue.push(message(true, 1))).toBe(false);
  expect(queue.length).toBe(4_096);
});

test('drops the messages of a closed channel and keeps the order of the others', () => {
  const queue = new SendQueue();
  for (const [stream, bytes] of [
    [1, 10],
    [2, 20],
    [1, 30],
    [2, 40],
  ] as const)
    queue.push(message(true, bytes, stream));
  queue.push(message(false, 5, 2));
  queue.forget(1);
  expect(queue.bytes).toBe(65);
  const left = [queue.shift(), queue.shift(), queue.shift(), queue.shift()].map((each) => each?.frame.length);
  expect(left).toEqual([20, 5, 40, undefined]);
  expect(queue.bytes).toBe(0);
});
