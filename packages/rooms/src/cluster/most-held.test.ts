// The most that one member can make a node hold, measured at the limits of docs/reference/limits.md.
import { expect, test } from '@jest/globals';
import { heldBytes } from '@bloom/time/testing';
import type { RoomRef } from '../room/room-messages.js';
import { Directory, MAX_ROOMS } from './directory.js';

const MIB = 1024 * 1024;
const LONGEST_ID = 255;

const roomId = (i: number): string => String(i).padEnd(LONGEST_ID, 'x');

test('holds at most 128 MiB of rooms for a member that announces endlessly', () => {
  const { held, bytes } = heldBytes(() => {
    const directory = new Directory('a', { now: () => 0 });
    for (let i = 0; i < MAX_ROOMS + 10; i += 1) {
      // As decoded from a message: a new string and a new reference.
      const id = Buffer.from(roomId(i)).toString();
      directory.add('b', { roomId: id, createdAt: i, ref: { path: `/rooms/${id}` } as unknown as RoomRef });
    }
    return directory;
  });
  process.stdout.write(`a member's announced rooms: ${(bytes / MIB).toFixed(1)} MiB\n`);
  expect(held.knows('b', roomId(MAX_ROOMS - 1))).toBe(true);
  expect(held.knows('b', roomId(MAX_ROOMS))).toBe(false);
  expect(bytes).toBeLessThan(160 * MIB);
}, 60_000);

test('does not keep ids that no room can have', () => {
  const directory = new Directory('a', { now: () => 0 });
  const id = 'x'.repeat(LONGEST_ID + 1);
  directory.add('b', { roomId: id, createdAt: 1, ref: {} as RoomRef });
  expect(directory.knows('b', id)).toBe(false);
});
