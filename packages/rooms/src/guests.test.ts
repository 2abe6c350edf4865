import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { defaultRoomConfig } from './room-service.js';
import { testNode, type TestNode } from './testing/index.js';
import { TestCluster } from './testing/test-cluster.js';

let node: TestNode;

beforeEach(() => {
  node = testNode();
});
afterEach(() => node.close());

const room = (config: object = {}) => node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen', ...config });
const peers = async (): Promise<string[]> => (await node.rooms.getRoom('kitchen')).peers.map(({ id }) => id);

async function guest(use: object = {}, more: { counts?: boolean } = {}) {
  const createdAt = await node.rooms.createdAt('kitchen');
  const invitation = { id: 'a', uses: 0, createdAt, expiresAt: createdAt + 3_600_000, ...use };
  return node.rooms.addGuest('kitchen', { invitation, options: { metadata: { name: 'Bob' } }, ...more });
}

test('adds a guest as a peer with a name that the host need not remove', async () => {
  await room();
  const { peer, token } = await guest();
  expect(peer.metadata).toEqual({ peer: null, server: { name: 'Bob' } });
  const { detach } = await node.connect(token);
  await node.advance(3_600);
  await detach();
  await node.advance(59);
  expect(await peers()).toEqual([peer.id]);
  await node.advance(1);
  expect(await peers()).toEqual([]);
});

test('removes a guest who never connects after 60 s, and keeps the others', async () => {
  await room();
  const { peer } = await node.rooms.addPeer('kitchen', {});
  await guest();
  await node.advance(60);
  expect(await peers()).toEqual([peer.id]);
});

test('removes a guest earlier if the room is configured to', async () => {
  await room({ peerDisconnectedTimeout: 5 });
  await guest();
  await node.advance(5);
  expect(await peers()).toEqual([]);
});

test('keeps the seat of a guest who returns within 60 s', async () => {
  await room();
  const { peer, token } = await guest();
  const { detach } = await node.connect(token);
  await detach();
  await node.advance(50);
  await node.connect(token);
  await node.advance(50);
  expect(await peers()).toEqual([peer.id]);
});

describe('a guest that does not count', () => {
  test('enters a full room, and takes no place in it', async () => {
    await room({ maxPeers: 1 });
    await guest({}, { counts: false });
    await guest();
    await guest({}, { counts: false });
    await expect(guest()).rejects.toMatchObject({ code: 'PEER_LIMIT' });
    expect(await peers()).toHaveLength(3);
  });

  test('does not keep a room that everybody else has left, nor by coming and going', async () => {
    await room({ peerlessPurgeTimeout: 100 });
    const { detach } = await node.connect((await node.rooms.addPeer('kitchen', {})).token);
    await node.connect((await guest({}, { counts: false })).token);
    await node.advance(200);
    await detach();
    await node.advance(60);
    await (await node.connect((await guest({}, { counts: false })).token)).detach();
    await node.advance(39);
    expect(await peers()).not.toEqual([]);
    await node.advance(1);
    await expect(peers()).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
  });
});

test('admits nobody with an invitation to an earlier room of this id', async () => {
  await room();
  await expect(guest({ createdAt: 1 })).rejects.toMatchObject({
    code: 'ROOM_NOT_FOUND',
    message: 'Room kitchen does not exist',
  });
});

test('uses nothing of the invitation when the room does not accept the options', async () => {
  await room();
  const createdAt = await node.rooms.createdAt('kitchen');
  const invitation = { id: 'a', uses: 1, createdAt, expiresAt: createdAt + 1_000 };
  const wrong = { permissions: { publish: 'everything' } };
  await expect(node.rooms.addGuest('kitchen', { invitation, options: wrong })).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
  });
  await expect(node.rooms.addGuest('kitchen', { invitation, options: {} })).resolves.toBeDefined();
});

test('counts the uses of an invitation once, whichever nodes are asked', async () => {
  const cluster = new TestCluster(['a', 'b', 'c']);
  try {
    await cluster.node('a').rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    await cluster.settled();
    const createdAt = await cluster.node('b').rooms.createdAt('kitchen');
    const invitation = { id: 'a', uses: 2, createdAt, expiresAt: createdAt + 60_000 };
    const asked = cluster.nodes.map(({ rooms }) => rooms.addGuest('kitchen', { invitation, options: {} }));
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    const [refused] = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused?.reason).toMatchObject({ code: 'INVITATION_USED' });
  } finally {
    await cluster.close();
  }
});

test('refuses guests through any node once the node of the room is about to end it, but not while it waits', async () => {
  const cluster = new TestCluster(['a', 'b']);
  const { host, rooms } = cluster.node('a');
  try {
    await rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    await cluster.settled();
    const createdAt = await rooms.createdAt('kitchen');
    const invitation = { id: 'a', uses: 0, createdAt, expiresAt: createdAt + 60_000 };
    const asked = () => cluster.node('b').rooms.addGuest('kitchen', { invitation, options: {} });
    host.drain('closing');
    await asked();
    host.endSoon();
    await expect(asked()).rejects.toMatchObject({
      code: 'DRAINING',
      message: 'Room kitchen ends, because its node is shutting down',
    });
    expect(host.view('kitchen')?.peers).toHaveLength(1);
  } finally {
    await cluster.close();
  }
});
