import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { defaultRoomConfig } from './room-service.js';
import { negotiation, testNode, TestSocket, videoTrack, type TestNode, type TestPeer } from './testing/index.js';

let node: TestNode;

beforeEach(async () => {
  node = testNode();
  await node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
});
afterEach(() => node.close());

function heard({ socket }: TestPeer): unknown[] {
  return socket.sent.splice(0);
}

describe('what peers see of each other', () => {
  test('shows a joining peer everyone who has joined, with their tracks, and shows them the peer', async () => {
    const ann = await node.join('kitchen', { name: 'Ann' });
    await ann.act({ type: 'publish', tracks: [videoTrack('t1', { metadata: 'cam' })] });
    await node.connect((await node.rooms.addPeer('kitchen', {})).token);
    const carl = await node.join('kitchen', { name: 'Carl' });

    expect(heard(carl)).toEqual([
      {
        type: 'joined',
        endpoints: [
          { id: 'p1', type: 'webrtc', metadata: { name: 'Ann' }, tracks: [videoTrack('t1', { metadata: 'cam' })] },
        ],
      },
    ]);
    expect(heard(ann)).toEqual([
      { type: 'joined', endpoints: [] },
      { type: 'endpointAdded', endpoint: { id: 'p3', type: 'webrtc', metadata: { name: 'Carl' }, tracks: [] } },
    ]);
  });

  test('passes a flood of metadata on at a limited rate, including the last update', async () => {
    const ann = await node.join('kitchen');
    const bob = await node.join('kitchen');
    heard(bob);
    const metadata = (i: number) => `${i} ${'x'.repeat(60_000)}`;
    for (let i = 0; i < 200; i++) await ann.act({ type: 'setMetadata', metadata: metadata(i) });
    expect(heard(bob)).toHaveLength(5);
    await node.advance(10);
    expect(heard(bob)).toEqual([{ type: 'endpointUpdated', endpointId: 'p1', metadata: metadata(199) }]);
    await ann.act({ type: 'setMetadata', metadata: 'x'.repeat(65_536) });
    await node.advance(10);
    expect(heard(bob)).toEqual([]);
    await ann.detach();
    const again = await node.connect(ann.token);
    await again.act({ type: 'join', metadata: 'back' });
    expect(heard(bob)).toMatchObject([{ type: 'endpointRemoved' }, { endpoint: { metadata: 'back' } }]);
  });

  test('sends tracks, metadata and encodings to all others, never the sender, and only when they change', async () => {
    const ann = await node.join('kitchen');
    const bob = await node.join('kitchen');
    [ann, bob].map(heard);
    node.news();
    await ann.act(
      { type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] },
      { type: 'setMetadata', metadata: { name: 'Ann' } },
      { type: 'setTrackMetadata', trackId: 't1', metadata: { a: 1 } },
      { type: 'setTrackMetadata', trackId: 't1', metadata: { a: 1 } },
      { type: 'setTrackMetadata', trackId: 'nobody', metadata: 1 },
      { type: 'setEncoding', trackId: 't1', encoding: 'm', enabled: false },
      { type: 'setEncoding', trackId: 't1', encoding: 'm', enabled: false },
      { type: 'setEncoding', trackId: 't1', encoding: 'm', enabled: true },
      { type: 'unpublish', trackIds: ['t2', 't2', 'unknown'] },
    );

    expect(heard(bob)).toEqual([
      { type: 'tracksAdded', endpointId: 'p1', tracks: [videoTrack('t1'), videoTrack('t2')] },
      { type: 'endpointUpdated', endpointId: 'p1', metadata: { name: 'Ann' } },
      { type: 'trackUpdated', endpointId: 'p1', trackId: 't1', metadata: { a: 1 } },
      { type: 'encodingChanged', endpointId: 'p1', trackId: 't1', encoding: 'm', enabled: false },
      { type: 'encodingChanged', endpointId: 'p1', trackId: 't1', encoding: 'm', enabled: true },
      { type: 'tracksRemoved', endpointId: 'p1', trackIds: ['t2'] },
    ]);
    expect(heard(ann)).toEqual([]);
    expect(node.news()).toEqual([
      'trackAdded p1/t1',
      'trackAdded p1/t2',
      'peerMetadataUpdated p1',
      'trackMetadataUpdated p1/t1',
      'trackRemoved p1/t2',
    ]);
  });

  test('carries the last known state of the track in TrackRemoved', async () => {
    const ann = await node.join('kitchen');
    await ann.act(
      { type: 'publish', tracks: [videoTrack('t1')] },
      { type: 'setTrackMetadata', trackId: 't1', metadata: { a: 1 } },
      { type: 'unpublish', trackIds: ['t1'] },
    );

    expect(node.notifications.at(-1)).toEqual({
      type: 'trackRemoved',
      roomId: 'kitchen',
      owner: { peerId: 'p1' },
      track: { id: 't1', type: 'video', metadata: { a: 1 } },
    });
  });

  test('refuses a track id that another peer already uses', async () => {
    const ann = await node.join('kitchen');
    const bob = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    node.news();
    await bob.act({ type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });

    expect(node.news()).toEqual(['trackAdded p2/t2']);
  });

  test('publishes and announces nothing before the client has joined', async () => {
    const ann = await node.join('kitchen');
    const { peer, token } = await node.rooms.addPeer('kitchen', {});
    const bob = await node.connect(token);
    heard(ann);
    node.news();
    await bob.act({ type: 'publish', tracks: [videoTrack('t1')] }, { type: 'setMetadata', metadata: 1 });
    await ann.act({ type: 'publish', tracks: [videoTrack('t2')] });

    expect(node.news()).toEqual(['trackAdded p1/t2']);
    expect(bob.socket.sent).toEqual([]);
    expect((await node.rooms.getRoom('kitchen')).peers.find(({ id }) => id === peer.id)?.metadata).toBeNull();
  });

  test('shows the others a socket loss as the end of the endpoint', async () => {
    const ann = await node.join('kitchen');
    const bob = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    heard(bob);
    await ann.detach();

    expect(heard(bob)).toEqual([{ type: 'endpointRemoved', endpointId: 'p1' }]);
  });

  test('keeps a leaving peer connected with a new transport, and lets it join again', async () => {
    const ann = await node.join('kitchen', { name: 'Ann' });
    const bob = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    heard(bob);
    node.news();
    await ann.act({ type: 'leave' });

    expect(node.news()).toEqual(['trackRemoved p1/t1']);
    expect(heard(bob)).toEqual([{ type: 'endpointRemoved', endpointId: 'p1' }]);
    expect(node.media.commands.slice(-2)).toEqual(['kitchen: closeTransport p1', 'kitchen: openTransport p1']);
    expect((await node.rooms.getRoom('kitchen')).peers[0]).toMatchObject({
      status: 'connected',
      tracks: [],
      metadata: { name: 'Ann' },
    });
    await ann.act({ type: 'join', metadata: 2 });
    expect(heard(bob)).toEqual([
      { type: 'endpointAdded', endpoint: { id: 'p1', type: 'webrtc', metadata: 2, tracks: [] } },
    ]);
  });
});

describe('the media plane', () => {
  test('opens a transport for each connection of a peer and closes it with the connection', async () => {
    const ann = await node.join('kitchen');
    await ann.detach();
    await node.connect(ann.token);
    await node.rooms.removePeer('kitchen', 'p1');

    expect(node.media.commands.filter((command) => command.includes('Transport'))).toEqual([
      'kitchen: openTransport p1',
      'kitchen: closeTransport p1',
      'kitchen: openTransport p1',
      'kitchen: closeTransport p1',
    ]);
  });

  test('answers a negotiation to the session that requested it', async () => {
    const ann = await node.join('kitchen');
    heard(ann);
    await ann.act({ type: 'negotiate', negotiation: negotiation(3) });

    expect(heard(ann)).toEqual([{ type: 'negotiated', generation: 3 }]);
  });

  test('ends only the peer whose negotiation was refused', async () => {
    const ann = await node.join('kitchen');
    const bob = await node.join('kitchen');
    node.media.rejectNegotiations = true;
    node.news();
    await ann.act({ type: 'negotiate', negotiation: negotiation(1) });

    expect(node.news()).toEqual(['peerDisconnected p1', 'peerCrashed p1 ""']);
    expect(bob.socket.closed).toBeUndefined();
  });

  test('ignores a failed negotiation on a transport that the client has left', async () => {
    const ann = await node.join('kitchen');
    node.media.rejectNegotiations = true;
    node.news();
    await ann.act({ type: 'negotiate', negotiation: negotiation(1) }, { type: 'leave' });

    expect(node.news().filter((line) => line.startsWith('peerCrashed'))).toEqual([]);
    expect(ann.socket.closed).toBeUndefined();
  });

  test('sends media events to the peer they concern, and voice activity to all others or to the new subscriber', async () => {
    const [ann, bob, carl] = [await node.join('kitchen'), await node.join('kitchen'), await node.join('kitchen')];
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    [ann, bob, carl].map(heard);
    const emit = node.media.emit.get('kitchen') ?? (() => {});
    emit({ type: 'iceConnected', peerId: 'p2', generation: 2 });
    emit({ type: 'dtlsConnected', peerId: 'p2' });
    emit({ type: 'encodingSwitched', peerId: 'p2', trackId: 't1', variant: 'l', reason: 'low_bandwidth' });
    emit({ type: 'bandwidthEstimation', peerId: 'p2', estimationBps: 5 });
    emit({ type: 'voiceActivity', trackId: 't1', status: 'speech' });
    emit({ type: 'voiceActivity', trackId: 't1', status: 'silence', peerId: 'p2' });
    emit({ type: 'transportSilent', peerId: 'p2' });
    emit({ type: 'dtlsConnected', peerId: 'nobody' });
    await node.system.idle();

    expect(heard(ann)).toEqual([]);
    expect(heard(bob)).toEqual([
      { type: 'iceConnected', peerId: 'p2', generation: 2 },
      { type: 'dtlsConnected', peerId: 'p2' },
      { type: 'encodingSwitched', peerId: 'p2', trackId: 't1', variant: 'l', reason: 'low_bandwidth' },
      { type: 'bandwidthEstimation', peerId: 'p2', estimationBps: 5 },
      { type: 'voiceActivity', trackId: 't1', status: 'speech' },
      { type: 'voiceActivity', peerId: 'p2', trackId: 't1', status: 'silence' },
    ]);
    expect(heard(carl)).toEqual([{ type: 'voiceActivity', trackId: 't1', status: 'speech' }]);
  });

  test('tells a new peer who is already speaking, newest speaker last', async () => {
    const [ann, bob] = [await node.join('kitchen'), await node.join('kitchen')];
    await ann.act({ type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });
    await bob.act({ type: 'publish', tracks: [videoTrack('t3'), videoTrack('t4')] });
    const emit = node.media.emit.get('kitchen') ?? (() => {});
    const speaking = async (): Promise<unknown> => heard(await node.join('kitchen'))[0];
    for (const trackId of ['t3', 't1', 't2', 't4', 'gone']) emit({ type: 'voiceActivity', trackId, status: 'speech' });
    emit({ type: 'voiceActivity', trackId: 't2', status: 'silence' });
    expect(await speaking()).toMatchObject({ type: 'joined', speaking: ['t3', 't1', 't4'] });

    emit({ type: 'voiceActivity', trackId: 't3', status: 'silence' });
    emit({ type: 'voiceActivity', trackId: 't3', status: 'speech' });
    await bob.act({ type: 'unpublish', trackIds: ['t4'] });
    expect(await speaking()).toMatchObject({ type: 'joined', speaking: ['t1', 't3'] });

    await ann.act({ type: 'leave' });
    await bob.act({ type: 'leave' });
    expect(await speaking()).not.toHaveProperty('speaking');
  });

  test('passes the requests of sessions to the media plane', async () => {
    const ann = await node.join('kitchen');
    await ann.act(
      { type: 'media', command: { type: 'setTargetVariant', peerId: 'p1', trackId: 't9', variant: 'l' } },
      { type: 'media', command: { type: 'setTrackBitrates', peerId: 'p1', trackId: 't9', bitratesBps: { h: 1 } } },
      { type: 'media', command: { type: 'setTrackMuted', peerId: 'p1', trackId: 't9', muted: true } },
      { type: 'warn', event: 'session.odd', detail: 'nothing' },
    );

    expect(node.media.commands.slice(-3)).toEqual([
      'kitchen: target p1 t9 l',
      'kitchen: bitrates t9',
      'kitchen: muted t9 true',
    ]);
  });
});

describe('session timers', () => {
  test('fires timers as inputs, clears them on request and ends them with the connection', async () => {
    const ann = await node.join('kitchen');
    heard(ann);
    await ann.act({ type: 'setTimer', name: 'offer', ms: 1_000 }, { type: 'setTimer', name: 'ice', ms: 2_000 });
    await ann.act({ type: 'clearTimer', name: 'ice' });
    await node.advance(3);
    expect(heard(ann)).toEqual([{ type: 'timer', name: 'offer' }]);

    await ann.act({ type: 'setTimer', name: 'retry', ms: 1_000 });
    await ann.detach();
    expect(node.clock.pending).toBe(0);
  });
});

describe('a second socket for a connected peer', () => {
  test('refuses a second socket while the first one answers a ping', async () => {
    const ann = await node.join('kitchen');

    expect(await node.rooms.attachPeer(ann.token, new TestSocket())).toBe('peer already connected');
    expect([ann.socket.pings, ann.socket.closed]).toEqual([1, undefined]);
    await ann.act({ type: 'setMetadata', metadata: 1 });
    expect((await node.rooms.getRoom('kitchen')).peers[0]?.metadata).toBe(1);
  });

  test('replaces a silent socket and starts the new connection after the end of the old one', async () => {
    const ann = await node.join('kitchen', { name: 'Ann' });
    const bob = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    node.news();
    heard(bob);
    ann.socket.alive = false;
    const again = await node.connect(ann.token);
    await node.system.idle();

    expect(node.news()).toEqual(['peerDisconnected p1', 'trackRemoved p1/t1', 'peerConnected p1']);
    expect(heard(bob)).toEqual([{ type: 'endpointRemoved', endpointId: 'p1' }]);
    expect(ann.socket.closed).toBe('1000 Replaced by a new connection');

    await ann.act({ type: 'join', metadata: 'ghost' });
    await ann.detach();
    await again.act({ type: 'join', metadata: 'real' });
    expect(node.news()).toEqual(['peerMetadataUpdated p1']);
    expect((await node.rooms.getRoom('kitchen')).peers[0]).toMatchObject({ status: 'connected', metadata: 'real' });
  });

  test('admits exactly one of several sockets that find a silent one', async () => {
    const ann = await node.join('kitchen');
    ann.socket.alive = false;
    node.news();
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, () => node.rooms.attachPeer(ann.token, new TestSocket())),
    );
    await node.system.idle();

    expect(outcomes.filter((outcome) => outcome === 'peer already connected')).toHaveLength(4);
    expect(node.news()).toEqual(['peerDisconnected p1', 'peerConnected p1']);
  });
});

test('limits the announcements of a peer that publishes and removes tracks endlessly', async () => {
  const [ann, bob] = [await node.join('kitchen'), await node.join('kitchen')];
  heard(bob);
  node.news();
  for (let i = 0; i < 1_000; i++) {
    const tracks = Array.from({ length: 8 }, (_, n) => videoTrack(`${i}/${n}`));
    const trackIds = tracks.map(({ trackId }) => trackId);
    await ann.act({ type: 'publish', tracks }, { type: 'unpublish', trackIds });
  }
  await ann.act({ type: 'publish', tracks: [videoTrack('last')] });
  expect(node.news().filter((event) => event.startsWith('trackAdded'))).toHaveLength(256);
  expect(heard(bob)).toHaveLength(64);

  await node.advance(1);
  expect(node.news()).toEqual(['trackAdded p1/last']);
  expect(heard(bob)).toMatchObject([{ type: 'tracksAdded', tracks: [{ trackId: 'last' }] }]);
});

describe('load', () => {
  test('counts one subscription for each track and each other joined peer', async () => {
    const load = (): number => node.host.load().forwardedTracks;
    const [ann, bob] = [await node.join('kitchen'), await node.join('kitchen')];
    await ann.act({ type: 'publish', tracks: [videoTrack('t1'), videoTrack('t2')] });
    expect(load()).toBe(2);
    await bob.act({ type: 'publish', tracks: [videoTrack('t3')] });
    expect(load()).toBe(3);
    await node.join('kitchen');
    expect(load()).toBe(6);
    await ann.act({ type: 'leave' });
    expect(load()).toBe(1);
    await node.rooms.createRoom({ ...defaultRoomConfig });
    expect(node.host.load()).toEqual({ forwardedTracks: 1, rooms: 2 });
    await node.rooms.deleteRoom('kitchen');
    expect(node.host.load()).toEqual({ forwardedTracks: 0, rooms: 1 });
  });
});

describe('joining and leaving at scale', () => {
  test('releases every actor, timer and room of 200 peers that join, publish and leave', async () => {
    const before = node.system.size;
    for (let i = 0; i < 200; i++) {
      const peer = await node.join('kitchen');
      await peer.act({ type: 'publish', tracks: [videoTrack(`t${i}`)] }, { type: 'setTimer', name: 'ice', ms: 5_000 });
      if (i % 3 === 0) await peer.detach();
    }
    await node.rooms.deleteRoom('kitchen');
    await node.system.idle();

    expect(node.system.size).toBe(before - 1);
    expect(node.clock.pending).toBe(0);
    expect(node.host.load()).toEqual({ forwardedTracks: 0, rooms: 0 });
  });
});
