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

describe('a room', () => {
  test('is announced when it is created', async () => {
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });

    expect(node.news()).toEqual(['roomCreated']);
  });

  test('hands the webhook URL to each of its events, the first included', async () => {
    await room({ webhookUrl: 'http://hook.example/' });
    await node.join('kitchen');
    await node.rooms.deleteRoom('kitchen');

    expect(new Set(node.webhookUrls)).toEqual(new Set(['http://hook.example/']));
    expect(node.notifications.length).toBeGreaterThan(4);
  });

  test('that is deleted ends tracks and peers one by one and itself last', async () => {
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
    expect([ann.socket.closed, bob.socket.closed]).toEqual(['1000 Room stopped', '1000 Room stopped']);
    expect(node.media.commands.at(-1)).toBe('kitchen: close');
    expect(await exists()).toBe(false);
  });

  test('without a connected peer for its full timeout goes as if it was deleted', async () => {
    await room({ peerlessPurgeTimeout: 2 });
    await node.advance(1.999);
    expect(await exists()).toBe(true);
    await node.advance(0.001);

    expect(node.news()).toEqual(['roomDeleted']);
    expect(await exists()).toBe(false);
  });

  test('is not kept by peers that never connected, but each added one restarts the clock', async () => {
    await room({ peerlessPurgeTimeout: 2 });
    await node.advance(1.5);
    await node.rooms.addPeer('kitchen', {});
    await node.advance(1.5);
    expect(node.news()).toEqual(['peerAdded p1']);
    await node.advance(0.5);

    expect(node.news()).toEqual(['peerDeleted p1', 'roomDeleted']);
  });

  test('is kept by a connected peer, and by one that comes back in time', async () => {
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

  test('restarts the clock when a disconnected peer is removed', async () => {
    await room({ peerlessPurgeTimeout: 2 });
    await node.rooms.addPeer('kitchen', {});
    await node.advance(1);
    await node.rooms.removePeer('kitchen', 'p1');
    await node.advance(1.5);
    expect(await exists()).toBe(true);
    await node.advance(0.5);
    expect(await exists()).toBe(false);
  });

  test('restarts the clock when its last disconnected peer runs out of time', async () => {
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

  test('whose media fail has crashed: peers are disconnected, neither tracks nor peers are announced as removed', async () => {
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
    expect(node.local.load()).toEqual({ forwardedTracks: 0, rooms: 0 });
  });

  test('whose actor fails has crashed as well, and no other room notices', async () => {
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

  test.each(['deleted', 'crashed'])('that is %s weighs nothing any more when its end is announced', async (how) => {
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

  test('frees its id at once', async () => {
    await room();
    await node.rooms.deleteRoom('kitchen');
    await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    await node.system.idle();

    expect(node.news()).toEqual(['roomDeleted', 'roomCreated']);
    expect((await node.rooms.getRoom('kitchen')).id).toBe('kitchen');
  });
});

describe('a peer', () => {
  test('is announced when it is added, connected, and has said who it is', async () => {
    await room();
    await node.join('kitchen', { name: 'Ann' });

    expect(node.news()).toEqual(['peerAdded p1', 'peerConnected p1', 'peerMetadataUpdated p1']);
  });

  test('that loses its socket stays, disconnected, without tracks', async () => {
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

  test('that is deleted loses tracks, connection and itself, in this order', async () => {
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

  test('that was not connected is deleted without a disconnect', async () => {
    await room();
    await node.rooms.addPeer('kitchen', {});
    const ann = await node.join('kitchen');
    await ann.detach();
    node.news();
    await node.rooms.removePeer('kitchen', 'p1');
    await node.rooms.removePeer('kitchen', 'p2');

    expect(node.news()).toEqual(['peerDeleted p1', 'peerDeleted p2']);
  });

  test('that never connects goes after the disconnect timeout', async () => {
    await room({ peerDisconnectedTimeout: 2 });
    await node.rooms.addPeer('kitchen', {});
    node.news();
    await node.advance(1.999);
    expect(node.news()).toEqual([]);
    await node.advance(0.001);

    expect(node.news()).toEqual(['peerDeleted p1']);
    expect((await node.rooms.getRoom('kitchen')).peers).toEqual([]);
  });

  test('has the full disconnect timeout after each loss, and none while connected', async () => {
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

  test('whose transport fails has crashed with that reason', async () => {
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

  test('whose session gives up has crashed with its reason, cut to what a close frame holds', async () => {
    await room();
    const ann = await node.join('kitchen');
    node.news();
    const reason = `${'x'.repeat(122)}é and more`;
    await ann.act({ type: 'fail', reason });

    expect(node.news()).toEqual(['peerDisconnected p1', `peerCrashed p1 "${reason}"`]);
    expect(ann.socket.closed).toBe(`1011 ${'x'.repeat(122)}`);
    expect(await node.rooms.attachPeer(ann.token, new TestSocket())).toBe('peer not found');
  });

  test('whose actor faults has crashed for an unknown reason, and the others only lose sight of it', async () => {
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

  test.each([false, true])(
    'is not harmed by late news of its former transport (connected again: %s)',
    async (again) => {
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
    },
  );

  test('says its metadata on every join, and afterwards only when they differ', async () => {
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

describe('one PeerDisconnected per connection', () => {
  test('however often sockets come and go, and whatever ends them', async () => {
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
