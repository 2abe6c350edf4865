// What people who come are told about the standby of their room.
import { expect, test } from '@jest/globals';
import type { PeerRecord } from '../peer/peer-record.js';
import { Endpoints } from './endpoints.js';
import type { RoomWorld } from './room-world.js';

const newcomer = (id: string) => ({ id, ref: { path: `/peers/${id}`, key: id }, hidden: true }) as PeerRecord;

test('nobody who comes is told of a standby that the room no longer has', () => {
  const told: string[] = [];
  const sendToPeer: RoomWorld['sendToPeer'] = ({ key }, { type }) => void told.push(`${key} ${type}`);
  const world = { sendToPeer, now: () => 0, setTimer: () => undefined } as unknown as RoomWorld;
  const endpoints = new Endpoints({ roomId: 'kitchen', world, onChange: () => undefined });
  endpoints.nameStandby('b.example/socket/peer/websocket');
  endpoints.introduce(newcomer('ann'));
  endpoints.nameStandby(null);
  endpoints.introduce(newcomer('bob'));
  expect(told).toEqual(['ann standby']);
});
