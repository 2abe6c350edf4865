import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger, type Logger } from '@bloom/log';
import type { MediaReport, TransportStats } from '@bloom/sfu';
import type { ComponentHost, ComponentKind } from './room/component-kind.js';
import type { RoomMeasure } from './room/room-journal.js';
import { defaultRoomConfig, type RoomConfig } from './room-service.js';
import { testNode, videoTrack, type TestNode } from './testing/index.js';

const AT_END: TransportStats = {
  peerId: 'p1',
  iceState: 'connected',
  dtlsState: 'connected',
  media: { state: 'connected', path: 'udp' },
  protocol: 'udp',
  bytesReceived: 7,
  bytesSent: 11,
  packetsReceived: 1,
  packetsSent: 1,
  bindingRequestsReceived: 1,
  bindingResponsesSent: 1,
  inbound: [],
  outbound: [],
};

let host: ComponentHost;
const film: ComponentKind = {
  type: 'hls',
  limitPerRoom: null,
  prepare: async () => ({
    properties: {},
    subscribeMode: null,
    start: (given) => {
      host = given;
      return { close: async () => {} };
    },
  }),
};

let log: Logger;
let node: TestNode;
let measures: RoomMeasure[];

beforeEach(() => {
  log = createLogger({ sink: () => undefined });
  measures = [];
  node = testNode({ log, componentKinds: [film], measure: (measure) => measures.push(measure) });
});
afterEach(() => node.close());

const room = (config: Partial<RoomConfig> = {}) =>
  node.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen', ...config });

/** Returns the lines so far as text, without room, actor and request. */
async function lines(): Promise<string[]> {
  await node.system.idle();

  return log.recent.last().map(({ event, fields }) => {
    const own = Object.entries(fields).filter(([key]) => !['room_id', 'actor', 'request_id'].includes(key));
    return [event, ...own.map(([key, value]) => `${key}=${String(value)}`)].join(' ');
  });
}

const media = (peerId: string, report: MediaReport): void =>
  node.media.emit.get('kitchen')?.({ type: 'mediaState', peerId, media: report });

describe('logs of media connections', () => {
  test('logs how a client is connected and how long that took', async () => {
    await room();
    await node.join('kitchen', { name: 'Ann' });
    media('p1', { state: 'connecting' });
    media('p1', { state: 'connected', path: 'relay-tcp', ms: 312 });
    expect((await lines()).at(-1)).toBe('peer.media_connected peer_id=p1 name=Ann path=relay-tcp ms=312');
    expect(measures.at(-1)).toMatchObject({ type: 'media', outcome: 'connected', path: 'relay-tcp', seconds: 0.312 });
  });

  test('logs once per failure what to do, with address and port', async () => {
    await room();
    await node.join('kitchen', { name: 'Ann' });
    const failed = { state: 'failed', problem: 'NO_CHECKS' } as const;
    // The client reconnects its websocket, and its media fails again.
    for (const report of [{ state: 'connecting' }, failed, { state: 'connecting' }, failed] as const)
      media('p1', report);
    const warnings = (await lines()).filter((line) => line.startsWith('peer.media_failed'));
    expect(warnings).toEqual([
      'peer.media_failed peer_id=p1 name=Ann problem=NO_CHECKS ' +
        'reason=nothing arrives from this client at 127.0.0.1:5000/udp ' +
        'fix=set JF_WEBRTC_TURN_IP to an address that clients reach, and open UDP port 5000 in every firewall',
    ]);
    expect(measures.filter(({ type }) => type === 'media')).toHaveLength(1);
  });

  test('logs again when a client fails after it was connected', async () => {
    await room();
    await node.join('kitchen');
    const connected = { state: 'connected', path: 'udp', ms: 9 } as const;
    const failed = { state: 'failed', problem: 'NO_CHECKS' } as const;
    for (const report of [connected, failed, connected, failed]) media('p1', report);
    const events = (await lines()).flatMap((line) => /^peer.media_\w+/.exec(line) ?? []);
    expect(events).toEqual(['peer.media_connected', 'peer.media_failed', 'peer.media_connected', 'peer.media_failed']);
  });

  test('does not log interruptions that end by themselves', async () => {
    await room();
    await node.join('kitchen');
    media('p1', { state: 'connected', path: 'udp', ms: 9 });
    media('p1', { state: 'interrupted' });
    media('p1', { state: 'connected', path: 'udp', ms: 9_000 });
    expect((await lines()).filter((line) => line.startsWith('peer.media'))).toHaveLength(1);
  });
});

/** An outbound slot, for a transport that had a reason to connect. */
const SLOT = { trackId: 't1' } as unknown as TransportStats['outbound'][number];

describe('room logs', () => {
  test('logs who joined, who left, how long they stayed and how much they sent', async () => {
    await room();
    const ann = await node.join('kitchen', { name: 'Ann', role: 'cook' });
    await node.advance(90);
    node.media.lastStats = AT_END;
    await ann.detach();
    await node.rooms.deleteRoom('kitchen');

    expect(await lines()).toEqual([
      'room.created',
      'peer.connected peer_id=p1',
      'peer.joined peer_id=p1 name=Ann',
      'peer.left peer_id=p1 name=Ann why=closed_by_client seconds=90 bytes_received=7 bytes_sent=11',
      'room.ended why=deleted seconds=90 people=1',
    ]);
  });

  test("writes the participants' lines before the room's line", async () => {
    await room({ maxPeers: 2 });
    await node.join('kitchen', { displayName: 'Ann' });
    await node.join('kitchen', { name: 7 });
    await expect(node.rooms.addPeer('kitchen', {})).rejects.toThrow('peer limit');
    await node.rooms.deleteRoom('kitchen');

    expect((await lines()).slice(5)).toEqual([
      'peer.refused reason=Reached peer limit in room kitchen',
      'peer.left peer_id=p1 name=Ann why=room_ended seconds=0 bytes_received=0 bytes_sent=0',
      'peer.left peer_id=p2 why=room_ended seconds=0 bytes_received=0 bytes_sent=0',
      'room.ended why=deleted seconds=0 people=2',
    ]);
  });

  test.each(['connection_lost', 'silent', 'too_slow', 'closed_by_server'] as const)(
    'distinguishes a lost participant (%s) from one that left',
    async (end) => {
      await room();
      const ann = await node.join('kitchen');
      await ann.detach(end);
      expect((await lines()).at(-1)).toBe(`peer.lost peer_id=p1 why=${end} seconds=0 bytes_received=0 bytes_sent=0`);
    },
  );

  test('logs the name of a participant that was removed, crashed, or stayed away too long', async () => {
    await room({ peerDisconnectedTimeout: 10, peerlessPurgeTimeout: 20 });
    await node.join('kitchen', { name: 'Ann' });
    const ben = await node.join('kitchen', { name: 'Ben' });
    await node.rooms.removePeer('kitchen', 'p1');
    await ben.receive('crash');
    await node.rooms.addPeer('kitchen', {});
    await node.advance(30);

    expect((await lines()).filter((line) => /^(?:room.ended|peer.removed|peer.crashed)/.test(line))).toEqual([
      'peer.removed peer_id=p1 name=Ann why=removed seconds=0 bytes_received=0 bytes_sent=0',
      'peer.crashed peer_id=p2 name=Ben why=crashed reason= seconds=0 bytes_received=0 bytes_sent=0',
      'peer.removed peer_id=p3 why=disconnected_too_long',
      'room.ended why=no_peers seconds=30 people=2',
    ]);
  });

  test('logs a client that leaves and rejoins on one websocket', async () => {
    await room();
    const ann = await node.join('kitchen', { name: 'Ann' });
    node.media.lastStats = AT_END;
    await ann.act({ type: 'leave' });
    await ann.act({ type: 'join', metadata: { name: 'Ann' } });
    expect((await lines()).slice(1)).toEqual([
      'peer.connected peer_id=p1',
      'peer.joined peer_id=p1 name=Ann',
      'peer.left peer_id=p1 name=Ann why=closed_by_client seconds=0 bytes_received=7 bytes_sent=11',
      'peer.joined peer_id=p1 name=Ann',
    ]);
  });

  test('logs a client that leaves and then closes its websocket once', async () => {
    await room();
    const ann = await node.join('kitchen', { name: 'Ann' });
    await ann.act({ type: 'leave' });
    await ann.detach();
    expect((await lines()).slice(3)).toEqual([
      'peer.left peer_id=p1 name=Ann why=closed_by_client seconds=0 bytes_received=0 bytes_sent=0',
    ]);
  });

  test('names a client whose backend has set metadata, by the name that the backend gave it', async () => {
    await room();
    for (const server of [{ identity: 'ann', name: 'Ann' }, { colour: 'red' }]) {
      const { token } = await node.rooms.addPeer('kitchen', { metadata: server });
      await (await node.connect(token)).act({ type: 'join', metadata: { name: 'Bob' } });
    }
    expect((await lines()).filter((line) => line.startsWith('peer.joined'))).toEqual([
      'peer.joined peer_id=p1 name=Ann',
      'peer.joined peer_id=p2 name=Bob',
    ]);
  });

  test('logs a component from its start to its end', async () => {
    await room();
    await node.rooms.addComponent('kitchen', 'hls', {});
    await node.advance(3);
    host.report({ do: 'playable', properties: {} });
    await node.system.idle();
    await node.advance(1);
    host.report({ do: 'finished' });
    await node.system.idle();
    await node.rooms.addComponent('kitchen', 'hls', {});
    host.report({ do: 'crashed', reason: 'disk full' });

    expect((await lines()).slice(1)).toEqual([
      'component.added component_id=p1 kind=hls',
      'component.playable component_id=p1 kind=hls seconds=3',
      'component.ended component_id=p1 kind=hls why=finished seconds=4',
      'component.added component_id=p2 kind=hls',
      'component.crashed component_id=p2 kind=hls reason=disk full seconds=0',
    ]);
    expect(measures).toEqual([{ type: 'componentCrashed', kind: 'hls' }]);
  });

  test('warns of B-frames and names the setting', async () => {
    await room();
    const ann = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    node.media.emit.get('kitchen')?.({ type: 'bFrames', trackId: 't1' });
    expect((await lines()).at(-1)).toMatch(/^room\.track_b_frames peer_id=p1 track_id=t1 fix=.*bframes=0/);
    for (let i = 2; i <= 100; i++) node.media.emit.get('kitchen')?.({ type: 'bFrames', trackId: `t${i}` });
    expect((await lines()).filter((line) => line.startsWith('room.track_b_frames'))).toHaveLength(7);
  });

  test('warns of key pictures without parameter sets and names the setting', async () => {
    await room();
    const ann = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    node.media.emit.get('kitchen')?.({ type: 'bareKeyframes', trackId: 't1' });
    expect((await lines()).at(-1)).toMatch(
      /^room\.track_bare_keyframes peer_id=p1 track_id=t1 fix=.*config-interval=-1/,
    );
  });

  test('logs why the packets of a publisher are dropped, and the remedy', async () => {
    await room();
    const { emit } = node.media;
    await node.join('kitchen');
    emit.get('kitchen')?.({ type: 'mediaDropped', peerId: 'p1', cause: 'unknown_rid', trackId: 't1', packets: 20 });
    expect((await lines()).at(-1)).toMatch(
      /^room\.media_dropped peer_id=p1 track_id=t1 cause=unknown_rid packets=20 fix=.*a=simulcast:recv/,
    );
  });

  test('logs individual tracks only at level debug', async () => {
    await room();
    const ann = await node.join('kitchen');
    await ann.act({ type: 'publish', tracks: [videoTrack('t1')] });
    expect((await lines()).filter((line) => line.startsWith('room.track'))).toEqual([]);
    log.setLevel('debug');
    await ann.act({ type: 'unpublish', trackIds: ['t1'] });
    expect((await lines()).filter((line) => line.startsWith('room.track'))).toEqual([
      'room.track_removed peer_id=p1 track_id=t1 kind=video',
    ]);
  });
});

describe('join measurements', () => {
  test('measures a join once, with the time until its media can flow', async () => {
    await room();
    await node.join('kitchen');
    await node.advance(2);
    node.media.emit.get('kitchen')?.({ type: 'dtlsConnected', peerId: 'p1' });
    node.media.emit.get('kitchen')?.({ type: 'dtlsConnected', peerId: 'p1' });
    await node.system.idle();
    await node.rooms.removePeer('kitchen', 'p1');
    await node.system.idle();
    expect(measures).toEqual([{ type: 'join', peerId: 'p1', outcome: 'media', seconds: 2 }]);
  });

  test.each([
    ['no_checks', { iceState: 'new', bindingRequestsReceived: 0 }],
    ['not_nominated', { iceState: 'new', bindingRequestsReceived: 3 }],
    ['dtls', { iceState: 'connected', dtlsState: 'connecting' }],
  ] as const)('measures a join as failed when its media never came (%s)', async (cause, state) => {
    await room();
    const ann = await node.join('kitchen');
    node.media.lastStats = { ...AT_END, outbound: [SLOT], ...state };
    await ann.detach();
    await node.system.idle();
    expect(measures).toEqual([
      { type: 'connectFailure', cause },
      { type: 'join', peerId: 'p1', outcome: 'failed', seconds: 0 },
    ]);
  });

  test('measures a join as left when the client closed its peer connection before its websocket', async () => {
    await room();
    const ann = await node.join('kitchen');
    node.media.lastStats = { ...AT_END, outbound: [SLOT], iceState: 'connected', dtlsState: 'closed' };
    await ann.detach();
    await node.system.idle();
    expect(measures).toEqual([{ type: 'join', peerId: 'p1', outcome: 'left', seconds: 0 }]);
  });

  test('measures a join as left when there was nothing to send or receive', async () => {
    await room();
    const ann = await node.join('kitchen');
    node.media.lastStats = { ...AT_END, iceState: 'new' };
    await ann.detach();
    await node.system.idle();
    expect(measures).toEqual([{ type: 'join', peerId: 'p1', outcome: 'left', seconds: 0 }]);
  });
});
