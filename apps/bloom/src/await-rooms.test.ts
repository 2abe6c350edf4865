import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { type ComponentKind, defaultRoomConfig } from '@bloom/rooms';
import { testNode, type TestNode } from '@bloom/rooms/testing';
import { awaitRooms } from './await-rooms.js';

/** A component that cannot move. */
const STAYS: ComponentKind = {
  type: 'hls',
  limitPerRoom: null,
  prepare: async () => ({
    properties: {},
    subscribeMode: null,
    start: () => ({ close: async () => undefined }),
  }),
};

let node: TestNode;
/** Orders to move rooms, in milliseconds. */
let moves: number[];

beforeEach(async () => {
  node = testNode({ componentKinds: [STAYS] });
  moves = [];
  node.host.drainOrder.moveThrough({
    refusal: () => undefined,
    moveAll: async (ms) => void moves.push(ms),
    stop: () => undefined,
    moveTo: async () => ({ outcome: 'stays', reason: 'this test moves none' }),
    staying: new Map(),
  });
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
});
afterEach(() => node.close());

/** Returns true if the wait is over after `seconds`, and not 100 ms earlier. */
async function isOverAfter(
  seconds: number,
  { drainTimeout = 0, livekit = null }: { drainTimeout?: number; livekit?: object | null } = {},
): Promise<boolean> {
  const settings = { drainMode: 'move' as const, drainTimeout, livekit };
  let over = false;
  void awaitRooms({ rooms: node.host, settings, log: silentLog, clock: node.clock }).then(() => (over = true));
  await node.advance(Math.max(0, seconds - 0.1));
  if (over && seconds > 0) return false;
  await node.advance(0.1);

  return over;
}

/** Makes the room stay here. */
const stream = () => node.rooms.addComponent('kitchen', 'hls', {});

test('moves rooms for 8 s without a drain timeout', async () => {
  expect(await isOverAfter(8)).toBe(true);
  expect(moves).toEqual([8_000]);
});

test('leaves 2 of the 8 s for LiveKit clients', async () => {
  expect(await isOverAfter(6, { livekit: {} })).toBe(true);
  expect(moves).toEqual([6_000]);
});

test('does not wait when every room that is left must stay', async () => {
  await stream();
  expect(await isOverAfter(0, { livekit: {} })).toBe(true);
});

test('waits while one of the rooms can still move', async () => {
  await stream();
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'hall' });
  expect(await isOverAfter(6, { livekit: {} })).toBe(true);
});

test('waits for the end of rooms that must stay until the drain timeout', async () => {
  await stream();
  expect(await isOverAfter(60, { drainTimeout: 60 })).toBe(true);
});

test('is over when the last room has ended', async () => {
  node.clock.setTimeout(() => void node.rooms.deleteRoom('kitchen'), 3_100);
  expect(await isOverAfter(3.2, { drainTimeout: 60 })).toBe(true);
});

test('waits until the people of a moved room have their media elsewhere', async () => {
  const { token } = await node.rooms.addPeer('kitchen', {});
  const client = await node.connect(token);
  await client.act({ type: 'join', metadata: null, moves: true });
  const given = () => new Promise<undefined>(() => undefined);
  await node.host.giveRoom('kitchen', { offer: async () => null, given, over: () => undefined });
  await node.advance(0.1);
  expect(await isOverAfter(8)).toBe(true);
});
