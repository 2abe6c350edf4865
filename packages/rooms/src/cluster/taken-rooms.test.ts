// The rooms that a node has taken over, until their owners know.
import { expect, test } from '@jest/globals';
import { TakenRooms } from './taken-rooms.js';

const roomOf = (owner: string, ownerProcess: string, roomId: string) => ({
  owner,
  ownerProcess,
  roomId,
  createdAt: 1,
  epoch: 2,
});

test('tells the processes of an owner apart', () => {
  const taken = new TakenRooms();
  taken.add(roomOf('a', 'a1', 'kitchen'));
  expect(taken.hasOf({ owner: 'a', ownerProcess: 'a1' })).toBe(true);
  expect(taken.hasOf({ owner: 'a', ownerProcess: 'a2' })).toBe(false);
  taken.delete('a', 'kitchen');
  expect(taken.hasOf({ owner: 'a', ownerProcess: 'a1' })).toBe(false);
  expect(taken.owners).toEqual([]);
});

test('remembers 100,000 rooms of owners that never return, and forgets the oldest', () => {
  const taken = new TakenRooms();
  for (let i = 0; i < 100_010; i += 1) taken.add(roomOf(`owner ${i % 7}`, 'p', `room ${i}`));
  expect(taken.size).toBe(100_000);
  expect(taken.has('owner 0', 'room 0')).toBe(false);
  expect(taken.has(`owner ${100_009 % 7}`, 'room 100009')).toBe(true);
});
