import { beforeEach, expect, test } from '@jest/globals';
import { type LogFields, silentLog } from '@bloom/log';
import type { Notification } from '@bloom/protocol';
import { Fence } from './fence.js';

let fence: Fence;
let fenced: Set<string>;
let published: string[];
let lines: [string, LogFields | undefined][];

beforeEach(() => {
  lines = [];
  fence = new Fence({ ...silentLog, warn: (event, fields) => void lines.push([event, fields]) });
  fenced = new Set();
  published = [];
  fence.watcher = { changed: () => undefined, isFenced: (roomId) => fenced.has(roomId) };
});

/** `metadata`: what the event carries. */
function publish(roomId: string, event: string, metadata: unknown = null): void {
  const notification = { type: 'peerMetadataUpdated', roomId, peerId: 'p', metadata } as const;
  fence.pass(notification, () => void published.push(event));
}

function message(data: string): void {
  const notification: Notification = {
    type: 'dataMessage',
    roomId: 'kitchen',
    peerId: 'p',
    label: 'chat',
    to: [],
    data,
  };
  fence.pass(notification, () => void published.push(data));
}

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

test('drops no message of a client once the room is not fenced, and publishes it after what was held back', () => {
  fenced.add('kitchen');
  publish('kitchen', 'one');
  fenced.delete('kitchen');
  message('hello');
  expect(published).toEqual(['one', 'hello']);
});

test('forgets the events of a room that goes on at another node', () => {
  fenced.add('kitchen');
  publish('kitchen', 'one');
  fence.drop('kitchen');
  fenced.delete('kitchen');
  fence.release('kitchen');
  expect(published).toEqual([]);
});

test('publishes what became of uploads although its room goes on at another node, which knows nothing of them', () => {
  const about = { roomId: 'kitchen', componentId: 'c', prefix: '', files: [] };
  fenced.add('kitchen');
  publish('kitchen', 'one');
  fence.pass({ type: 'recordingUploaded', ...about }, () => void published.push('uploaded'));
  fence.drop('kitchen');
  expect(published).toEqual(['uploaded']);
});

test('holds at most 10,000 events of one room', () => {
  fenced.add('kitchen');
  for (let i = 0; i < 10_010; i += 1) publish('kitchen', `${i}`);
  fenced.clear();
  fence.release('kitchen');
  expect(published).toHaveLength(10_000);
  expect(published.at(-1)).toBe('9999');
});

test('holds at most 16 Mi characters of one room', () => {
  fenced.add('kitchen');
  for (let i = 0; i < 20; i += 1) publish('kitchen', `${i}`, 'x'.repeat(1024 * 1024));
  fenced.clear();
  fence.release('kitchen');
  expect(published).toHaveLength(15);
  expect(lines).toEqual([['room.events_dropped', { roomId: 'kitchen', events: 5 }]]);
});

test('holds no messages of clients, and says once how many were dropped', () => {
  message('before');
  fenced.add('kitchen');
  for (let i = 0; i < 10_010; i += 1) message(`${i}`);
  publish('kitchen', 'one');
  fenced.clear();
  fence.release('kitchen');
  expect(published).toEqual(['before', 'one']);
  expect(lines).toEqual([['room.events_dropped', { roomId: 'kitchen', events: 10_010 }]]);
});
