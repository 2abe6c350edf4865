import { beforeEach, expect, test } from '@jest/globals';
import { Fence } from './fence.js';

let fence: Fence;
let fenced: Set<string>;
let published: string[];

beforeEach(() => {
  fence = new Fence();
  fenced = new Set();
  published = [];
  fence.watcher = { changed: () => undefined, isFenced: (roomId) => fenced.has(roomId) };
});

const publish = (roomId: string, event: string): void => fence.pass(roomId, () => void published.push(event));

test('publishes at once while the room is not fenced', () => {
  publish('kitchen', 'one');
  expect(published).toEqual(['one']);
});

test('publishes what was held back in order, before anything later', () => {
  fenced.add('kitchen');
  publish('kitchen', 'one');
  publish('hall', 'elsewhere');
  fence.release('kitchen');
  expect(published).toEqual(['elsewhere']);
  fenced.delete('kitchen');
  publish('kitchen', 'two');
  fence.release('kitchen');
  publish('kitchen', 'three');
  expect(published).toEqual(['elsewhere', 'one', 'two', 'three']);
});

test('forgets the events of a room that goes on at another node', () => {
  fenced.add('kitchen');
  publish('kitchen', 'one');
  fence.drop('kitchen');
  fenced.delete('kitchen');
  fence.release('kitchen');
  expect(published).toEqual([]);
});

test('holds at most 10,000 events of one room', () => {
  fenced.add('kitchen');
  for (let i = 0; i < 10_010; i += 1) publish('kitchen', `${i}`);
  fenced.clear();
  fence.release('kitchen');
  expect(published).toHaveLength(10_000);
  expect(published.at(-1)).toBe('9999');
});
