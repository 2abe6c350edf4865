import { beforeEach } from '@jest/globals';
import { roomServiceSuite } from '@bloom/rooms/testing';
import { MemoryRooms } from './memory-rooms.js';

let rooms: MemoryRooms;
beforeEach(() => {
  rooms = new MemoryRooms();
});

roomServiceSuite('rooms in memory', () => rooms);
