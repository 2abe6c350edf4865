import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { defaultRoomConfig } from './room-service.js';
import { testNode, TestSocket, videoTrack, type TestNode, type TestPeer } from './testing/index.js';

let node: TestNode;

beforeEach(() => {
  node = testNode();
});
afterEach(() => node.close());

async function room(config: Partial<typeof defaultRoomConfig> = {}): Promise<void> {
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen', ...config });
  node.news();
}

async function exists(): Promise<boolean> {
  return (await node.rooms.listRooms('local')).rooms.length > 0;
}

describe('the lifecycle of a room', () => {
  test('announces a room when it is created', async () => {
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });

    expect(node.news()).toEqual(['roomCreated']);
  });

  test('passes the webhook URL with each event of a room, including the first', async () => {
    await room({ webhookUrl: 'http://hook.example/' });
    await node.join('kitchen');
    await node.rooms.deleteRoom('kitchen');

    expect(new Set(node.webhookUrls)).toEqual(new Set(['http://hook.example/']));
    expect(node.notifications.length).toBeGreaterThan(4);
  });

  test('deleting a room ends its tracks and peers one by one, and the room last', async () => {
    await room();
    const ann = await node.join('kitchen');
    const bob = await node.join('kitchen');
    await node.rooms.addPeer('kitchen', {});
    await ann.act({ type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });
    await bob.act({ type: 'publish', tracks: [videoTrack('t3')] });
    node.news();
    await node.rooms.deleteRoom('kitchen');
    await node.system.idle();

    expect(node.news()).toEqual([
      'trackRemoved p1/t1',
      'trackRemoved p1/t2',
      'peerDisconnected p1',
      'peerDeleted p1',
      'trackRemoved p2/t3',
      'peerDisconnected p2',
      'peerDeleted p2',
      'peerDeleted p3',
      'roomDeleted',
    ]);
    expect(ann.socket.closed).toBe('1000 Room stopped');
    expect(bob.socket.closed).toBe('1000 Room stopped');
    expect(node.media.commands.at(-1)).toBe('kitchen: close');
    expect(await exists()).toBe(false);
  });

  test('ends a room without a connected peer for its full timeout as if it were deleted', async () => {
    await room({ peerlessPurgeTimeout: 2 });
    await node.advance(1.999);
    expect(await exists()).toBe(true);
    await node.advance(0.001);

    expect(node.news()).toEqual(['roomDeleted']);
    expect(await exists()).toBe(false);
  });

  test('does not keep a room for peers that never connect, but restarts the timeout for each added one', async () => {
    await room({ peerlessPurgeTimeout: 2 });
    await node.advance(1.5);
    await node.rooms.addPeer('kitchen', {});
    await node.advance(1.5);
    expect(node.news()).toEqual(['peerAdded p1']);
    await node.advance(0.5);

    expect(node.news()).toEqual(['peerDeleted p1', 'roomDeleted']);
  });

  test('keeps a room for a connected peer, and for one that comes back in time', async () => {
    await room({ peerlessPurgeTimeout: 2 });
    const ann = await node.join('kitchen');
    await node.advance(60);
    expect(await exists()).toBe(true);
    await ann.detach();
    await node.advance(1.9);
    const again = await node.connect(ann.token);
    await node.advance(60);
    expect(await exists()).toBe(true);
    await again.detach();
    node.news();
    await node.advance(2);

    expect(node.news()).toEqual(['peerDeleted p1', 'roomDeleted']);
  });

  test('restarts the timeout when a disconnected peer is removed', async () => {
    await room({ peerlessPurgeTimeout: 2 });
    await node.rooms.addPeer('kitchen', {});
    await node.advance(1);
    await node.rooms.removePeer('kitchen', 'p1');
    await node.advance(1.5);
    expect(await exists()).toBe(true);
    await node.advance(0.5);
    expect(await exists()).toBe(false);
  });

  test('restarts the timeout when the last disconnected peer runs out of time', async () => {
    await room({ peerlessPurgeTimeout: 3, peerDisconnectedTimeout: 2 });
    await node.rooms.addPeer('kitchen', {});
    node.news();
    await node.advance(2);
    expect(node.news()).toEqual(['peerDeleted p1']);
    await node.advance(2.9);
    expect(await exists()).toBe(true);
    await node.advance(0.1);
    expect(node.news()).toEqual(['roomDeleted']);
  });

  test('crashes a room whose media fail: it announces disconnects, but no removed tracks or peers', async () => {
    await room();
    const ann = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    await node.rooms.addPeer('kitchen', {});
    node.news();
    node.media.emit.get('kitchen')?.({ type: 'roomFailed', reason: 'worker gone' });
    await node.system.idle();

    expect(node.news()).toEqual(['peerDisconnected p1', 'roomCrashed']);
    expect(ann.socket.closed).toBe('1011 Internal server error');
    await expect(node.rooms.getRoom('kitchen')).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
    expect(node.host.load()).toEqual({ forwardedTracks: 0, rooms: 0 });
  });

  test('disconnects a peer with 1011 when its media worker ends, keeps it, and lets it connect again at once', async () => {
    await room();
    const ann = await node.join('kitchen');
    const bob = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    node.news();
    const lost = { type: 'transportLost', peerId: 'p1', reason: 'worker gone' } as const;
    node.media.emit.get('kitchen')?.({ ...lost, transport: 99 });
    await node.system.idle();
    expect(node.news()).toEqual([]);
    node.media.emit.get('kitchen')?.(lost);
    await node.system.idle();

    expect(node.news()).toEqual(['peerDisconnected p1', 'trackRemoved p1/t1']);
    expect(ann.socket.closed).toBe('1011 Internal server error');
    expect(bob.socket.closed).toBeUndefined();
    await node.connect(ann.token);
    expect(node.news()).toEqual(['peerConnected p1']);
  });

  test('crashes a room whose actor fails, without any effect on other rooms', async () => {
    await room();
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'garden' });
    const ann = await node.join('kitchen');
    const bob = await node.join('garden');
    node.news();
    const kitchen = node.system.list({ limit: 100, match: (path) => path === '/rooms/kitchen' })[0]?.ref;
    node.system.cast(kitchen ?? 'none', { type: 'fromMedia', event: null } as never);
    await node.system.idle();

    expect(node.news()).toEqual(['peerDisconnected p1', 'roomCrashed']);
    expect(ann.socket.closed).toBe('1011 Internal server error');
    expect(bob.socket.closed).toBeUndefined();
    expect((await node.rooms.listRooms('local')).rooms.map(({ id }) => id)).toEqual(['garden']);
  });

  test.each(['deleted', 'crashed'])('a room that is %s is no load any more when its end is announced', async (how) => {
    await room();
    const ann = await node.join('kitchen');
    await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    expect(node.loads.at(-1)).toEqual({ forwardedTracks: 1, rooms: 1 });
    if (how === 'deleted') await node.rooms.deleteRoom('kitchen');
    else node.media.emit.get('kitchen')?.({ type: 'roomFailed', reason: 'worker gone' });
    await node.system.idle();

    expect(node.notifications.at(-1)?.type).toBe(how === 'deleted' ? 'roomDeleted' : 'roomCrashed');
    expect(node.loads.at(-1)).toEqual({ forwardedTracks: 0, rooms: 0 });
  });

  test('frees the id of a deleted room immediately', async () => {
    await room();
    await node.rooms.deleteRoom('kitchen');
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    await node.system.idle();

    expect(node.news()).toEqual(['roomDeleted', 'roomCreated']);
    expect((await node.rooms.getRoom('kitchen')).id).toBe('kitchen');
  });
});

describe('the lifecycle of a peer', () => {
  test('announces that a peer was added, connected and has set its metadata', async () => {
    await room();
    await node.join('kitchen', { name: 'Ann' });

    expect(node.news()).toEqual(['peerAdded p1', 'peerConnected p1', 'peerMetadataUpdated p1']);
  });

  test('keeps a peer that loses its socket in the room, disconnected and without tracks', async () => {
    await room();
    const ann = await node.join('kitchen', { name: 'Ann' });
    await ann.act({ type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });
    node.news();
    await ann.detach();
    await ann.detach();

    expect(node.news()).toEqual(['peerDisconnected p1', 'trackRemoved p1/t1', 'trackRemoved p1/t2']);
    expect((await node.rooms.getRoom('kitchen')).peers).toEqual([
      { id: 'p1', type: 'webrtc', status: 'disconnected', tracks: [], metadata: { name: 'Ann' } },
    ]);
    expect(node.media.commands).toContain('kitchen: closeTransport p1');
  });

  test("ends a deleted peer's tracks, its connection and the peer itself, in this order", async () => {
    await room();
    const ann = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    node.news();
    await node.rooms.removePeer('kitchen', 'p1');
    await node.system.idle();

    expect(node.news()).toEqual(['trackRemoved p1/t1', 'peerDisconnected p1', 'peerDeleted p1']);
    expect(ann.socket.closed).toBe('1000 Peer removed');
    expect(node.system.list({ limit: 100, match: (path) => path.includes('p1') })).toEqual([]);
  });

  test('announces no disconnect for a deleted peer that was never connected', async () => {
    await room();
    await node.rooms.addPeer('kitchen', {});
    const ann = await node.join('kitchen');
    await ann.detach();
    node.news();
    await node.rooms.removePeer('kitchen', 'p1');
    await node.rooms.removePeer('kitchen', 'p2');

    expect(node.news()).toEqual(['peerDeleted p1', 'peerDeleted p2']);
  });

  test('removes a peer after the disconnect timeout if it never connects', async () => {
    await room({ peerDisconnectedTimeout: 2 });
    await node.rooms.addPeer('kitchen', {});
    node.news();
    await node.advance(1.999);
    expect(node.news()).toEqual([]);
    await node.advance(0.001);

    expect(node.news()).toEqual(['peerDeleted p1']);
    expect((await node.rooms.getRoom('kitchen')).peers).toEqual([]);
  });

  test('gives a peer the full disconnect timeout after each loss, and none while connected', async () => {
    await room({ peerDisconnectedTimeout: 2 });
    const ann = await node.join('kitchen');
    await node.advance(10);
    await ann.detach();
    await node.advance(1.9);
    const again = await node.connect(ann.token);
    await node.advance(10);
    await again.detach();
    await node.advance(1.9);
    node.news();
    await node.advance(0.1);

    expect(node.news()).toEqual(['peerDeleted p1']);
  });

  test('crashes a peer with the reason when its transport fails', async () => {
    await room();
    const ann = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    node.news();
    node.media.emit.get('kitchen')?.({ type: 'transportFailed', peerId: 'p1', reason: 'DTLS fingerprint mismatch' });
    await node.system.idle();

    expect(node.news()).toEqual([
      'trackRemoved p1/t1',
      'peerDisconnected p1',
      'peerCrashed p1 "DTLS fingerprint mismatch"',
    ]);
    expect(ann.socket.closed).toBe('1011 DTLS fingerprint mismatch');
  });

  test('crashes a peer with the reason when its session gives up, cut to the length of a close frame', async () => {
    await room();
    const ann = await node.join('kitchen');
    node.news();
    const reason = `${'x'.repeat(122)}é and more`;
    await ann.act({ type: 'fail', reason });

    expect(node.news()).toEqual(['peerDisconnected p1', `peerCrashed p1 "${reason}"`]);
    expect(ann.socket.closed).toBe(`1011 ${'x'.repeat(122)}`);
    expect(await node.rooms.attachPeer(ann.token, new TestSocket())).toBe('peer not found');
  });

  test('crashes a peer with an unknown reason when its actor fails, and shows the others only that it left', async () => {
    await room();
    const ann = await node.join('kitchen');
    const bob = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    node.news();
    bob.socket.sent.length = 0;
    await ann.receive('crash');

    expect(node.news()).toEqual(['trackRemoved p1/t1', 'peerDisconnected p1', 'peerCrashed p1 ""']);
    expect(ann.socket.closed).toBe('1011 Internal server error');
    expect(node.media.commands.at(-1)).toBe('kitchen: closeTransport p1');
    expect(bob.socket.sent).toEqual([{ type: 'endpointRemoved', endpointId: 'p1' }]);
    await bob.act({ type: 'publish', tracks: [videoTrack('t2')] });
    expect(node.news()).toEqual(['trackAdded p2/t2']);
    expect((await node.rooms.getRoom('kitchen')).peers.map(({ id }) => id)).toEqual(['p2']);
  });

  test.each([false, true])("ignores late events of a peer's former transport (connected again: %s)", async (again) => {
    await room();
    const ann = await node.join('kitchen');
    const transport = node.media.lastTransport;
    await ann.detach();
    if (again) await node.connect(ann.token);
    node.news();
    const emit = node.media.emit.get('kitchen');
    emit?.({ type: 'transportFailed', peerId: 'p1', reason: 'late', transport });
    await node.system.idle();
    expect(node.news()).toEqual([]);

    if (!again) return;
    emit?.({ type: 'transportFailed', peerId: 'p1', reason: 'now', transport: node.media.lastTransport });
    await node.system.idle();
    expect(node.news()).toContain('peerCrashed p1 "now"');
  });

  test("announces a peer's metadata on every join, and later only when it changes", async () => {
    await room();
    const ann = await node.join('kitchen', null);
    expect(node.news()).toContain('peerMetadataUpdated p1');
    await ann.act({ type: 'setMetadata', metadata: null });
    expect(node.news()).toEqual([]);
    await ann.act({ type: 'setMetadata', metadata: { name: 'Ann' } });
    await ann.act({ type: 'setMetadata', metadata: { name: 'Ann' } });
    expect(node.news()).toEqual(['peerMetadataUpdated p1']);
    await ann.act({ type: 'leave' });
    await ann.act({ type: 'join', metadata: { name: 'Ann' } });
    expect(node.news()).toEqual(['peerMetadataUpdated p1']);
  });
});

describe('disconnect notifications', () => {
  test('sends one PeerDisconnected per connection, however often and however sockets end', async () => {
    await room();
    let ann: Pick<TestPeer, 'token' | 'detach'> = await node.join('kitchen');
    for (let i = 0; i < 5; i++) {
      await ann.detach();
      await ann.detach();
      ann = await node.connect(ann.token);
    }
    await node.rooms.removePeer('kitchen', 'p1');
    await ann.detach();
    await node.rooms.deleteRoom('kitchen');
    await node.system.idle();

    const news = node.news();
    const count = (event: string): number => news.filter((item) => item === event).length;
    expect(count('peerConnected p1')).toBe(6);
    expect(count('peerDisconnected p1')).toBe(6);
  });
});
