// People who keep their media at the former node of their room until all of them have it at the new one.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { defaultRoomConfig } from './room-service.js';
import type { RoomRef } from './room/room-messages.js';
import { testNode, type TestNode, type TestPeer, TestSocket } from './testing/index.js';

let node: TestNode;
beforeEach(async () => {
  node = testNode();
  await node.host.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
});
afterEach(() => node.close());

/** Joins as a client that opens a second connection when its room moves. */
async function enter(): Promise<TestPeer> {
  const { peer, token } = await node.rooms.addPeer('kitchen', {});
  const client = await node.connect(token);
  await client.act({ type: 'join', metadata: null, moves: true });
  return { id: peer.id, ...client };
}

/** Gives the room away. By default another room of the node stands for the one at its new owner. */
async function give(given?: () => Promise<RoomRef | undefined>): Promise<void> {
  await node.host.createRoom({ ...defaultRoomConfig, roomId: 'elsewhere' });
  const target = node.host.roomRef('elsewhere');
  const carry = { offer: async () => null, given: given ?? (async () => target), over: () => undefined };
  expect(await node.host.giveRoom('kitchen', carry)).toBeNull();
  await node.system.idle();
  node.media.commands.splice(0);
}

const isMoved = { type: 'moved' } as const;
const told = ({ socket }: TestPeer): string[] =>
  (socket.sent as { type: string }[]).map(({ type }) => type).filter((type) => type.endsWith('Moved'));
const isClosed = (): boolean => node.media.commands.includes('kitchen: close');

test('a client that opens a second connection is told, and keeps its websocket and its media', async () => {
  const ann = await enter();
  await give();
  expect(told(ann)).toEqual(['roomMoved']);
  expect(ann.socket.closed).toBeUndefined();
  expect(isClosed()).toBe(false);
  expect(node.host.leaving).toBe(1);
});

test('all others leave at once', async () => {
  const [ann, bob] = [await enter(), await node.join('kitchen')];
  await give();
  expect(bob.socket.closed).toBe('1012 Room moved');
  expect(told(bob)).toEqual([]);
  expect(ann.socket.closed).toBeUndefined();
});

test('a client is told once every other one has its second connection', async () => {
  const [ann, bob] = [await enter(), await enter()];
  await give();
  await ann.act(isMoved, isMoved);
  expect([told(ann), told(bob)]).toEqual([['roomMoved'], ['roomMoved']]);
  await bob.act(isMoved);
  expect([told(ann), told(bob)]).toEqual([
    ['roomMoved', 'othersMoved'],
    ['roomMoved', 'othersMoved'],
  ]);
});

test('one that leaves without a second connection keeps nobody waiting', async () => {
  const [ann, bob] = [await enter(), await enter()];
  await give();
  await ann.act(isMoved);
  await bob.detach();
  expect(told(ann)).toEqual(['roomMoved', 'othersMoved']);
});

test('the media of the room ends when the last one has closed its websocket', async () => {
  const [ann, bob] = [await enter(), await enter()];
  await give();
  for (const one of [ann, bob]) await one.act(isMoved);
  await ann.detach();
  expect(node.media.commands).toEqual([`kitchen: closeTransport ${ann.id}`]);
  await bob.detach();
  expect(isClosed()).toBe(true);
  expect(node.host.leaving).toBe(0);
});

test('the media stays until everybody has said that they send nothing more', async () => {
  const [ann, bob] = [await enter(), await enter()];
  await give();
  // Ann repeats herself before she is told: she may still send something.
  await ann.act(isMoved, isMoved);
  await bob.act(isMoved, isMoved);
  expect([ann.socket.closed, bob.socket.closed]).toEqual([undefined, undefined]);
  await ann.act(isMoved);
  expect([ann.socket.closed, bob.socket.closed]).toEqual(['1012 Room moved', '1012 Room moved']);
  expect([told(ann), told(bob)]).toEqual([
    ['roomMoved', 'othersMoved'],
    ['roomMoved', 'othersMoved'],
  ]);
  expect(isClosed()).toBe(true);
});

test('one that leaves without a word keeps nobody from the end', async () => {
  const [ann, bob] = [await enter(), await enter()];
  await give();
  for (const one of [ann, bob, ann]) await one.act(isMoved);
  expect(ann.socket.closed).toBeUndefined();
  await bob.detach();
  expect(ann.socket.closed).toBe('1012 Room moved');
  expect(isClosed()).toBe(true);
});

test('who does not follow within 8 s is sent after the others', async () => {
  const ann = await enter();
  await give();
  await node.advance(7.9);
  expect(ann.socket.closed).toBeUndefined();
  await node.advance(0.2);
  expect(ann.socket.closed).toBe('1012 Room moved');
  expect(isClosed()).toBe(true);
});

test('nobody is told before the room runs at its new owner', async () => {
  const ann = await enter();
  let run: (room: RoomRef | undefined) => void = () => undefined;
  await give(() => new Promise((resolve) => (run = resolve)));
  expect(told(ann)).toEqual([]);
  run(node.host.roomRef('elsewhere'));
  await node.system.idle();
  expect(told(ann)).toEqual(['roomMoved']);
});

test('people of a room that is lost on its way come back to hear that', async () => {
  const ann = await enter();
  node.news();
  await give(() => Promise.reject(new Error('b has died')));
  expect(ann.socket.closed).toBe('1012 Room moved');
  expect(node.news()).toEqual(['roomCreated', `peerDisconnected ${ann.id}`, 'roomCrashed']);
});

test('a room of the same id can begin at the former node meanwhile', async () => {
  const ann = await enter();
  await give();
  await node.host.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
  expect(ann.socket.closed).toBe('1012 Room moved');
  expect(node.host.view('kitchen')?.peers).toEqual([]);
});

test('a node that ends waits for nobody', async () => {
  const ann = await enter();
  await give();
  const ended = node.host.deleteAll();
  await node.system.idle();
  expect(ann.socket.closed).toBe('1012 Room moved');
  await ann.detach();
  await ended;
});

test('a client that follows nothing changes nothing', async () => {
  const ann = await enter();
  await ann.act(isMoved);
  expect(node.host.view('kitchen')?.peers).toMatchObject([{ id: ann.id, status: 'connected' }]);
  await give();
  expect(told(ann)).toEqual(['roomMoved']);
});

test('another websocket with the same token cannot follow for it', async () => {
  const ann = await enter();
  ann.socket.alive = false;
  const again = await node.connect(ann.token, new TestSocket());
  await again.act({ type: 'join', metadata: null, moves: true });
  await give();
  await ann.act(isMoved);
  expect(told({ ...ann, ...again })).toEqual(['roomMoved']);
});
