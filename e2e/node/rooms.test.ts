import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { CheckedApi } from './support/checked-api.js';
import { PeerConnection } from './support/peer-socket.js';
import { type Node, startProgram } from './support/program.js';

jest.setTimeout(30_000);

let node: Node;
let api: CheckedApi;

beforeAll(async () => {
  node = await startProgram({ JF_HOST: 'media.example:4443/some/path/' });
  api = new CheckedApi(node.url);
});
afterAll(() => node.dispose());

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const unset = {
  roomId: null,
  maxPeers: null,
  videoCodec: null,
  webhookUrl: null,
  peerlessPurgeTimeout: null,
  peerDisconnectedTimeout: null,
};
/** Headers that the published Python SDK sends with every request. */
const python = { headers: { accept: 'Application/json; Charset=utf-8' } };

const errorOf = async (method: string, path: string, body?: unknown): Promise<[number, string]> => {
  const answer = await api.call(method, path, body);

  return [answer.status, answer.body.errors];
};

describe('rooms', () => {
  test('creates rooms with six explicit nulls and exactly the keys that SDKs compare', async () => {
    const { status, body } = await api.with(python).call('POST', '/room', unset);
    const { room, ...addresses } = body.data;
    expect(status).toBe(201);
    expect(room.id).toMatch(uuid);
    expect(room).toEqual({ id: room.id, config: { ...unset, roomId: room.id }, components: [], peers: [] });
    const address = 'media.example:4443/some/path';
    expect(addresses).toEqual({ service_address: address, jellyfish_address: address, fishjam_address: address });
    expect((await api.with(python).call('GET', `/room/${room.id}`)).body).toEqual({ data: room });
    expect((await api.with(python).call('GET', '/room')).body.data).toContainEqual(room);
    expect((await api.with(python).call('DELETE', `/room/${room.id}`)).text).toBe('');
    expect(await errorOf('GET', `/room/${room.id}`)).toEqual([404, `Room ${room.id} does not exist`]);
    expect(await errorOf('DELETE', `/room/${room.id}`)).toEqual([404, `Room ${room.id} does not exist`]);
  });

  test('keeps the options that rooms were created with', async () => {
    const config = {
      roomId: 'Room-1',
      maxPeers: 10,
      videoCodec: 'h264',
      webhookUrl: 'http://127.0.0.1:9/',
      peerlessPurgeTimeout: 3_600,
      peerDisconnectedTimeout: 60,
    };
    const { body } = await api.call('POST', '/room', { ...config, somethingNew: true });
    expect(body.data.room.config).toEqual(config);
    expect(await errorOf('POST', '/room', { roomId: 'Room-1' })).toEqual([
      400,
      'Cannot add room with id "Room-1" - room already exists',
    ]);
    await api.call('DELETE', '/room/Room-1');
  });

  test.each([
    [
      { roomId: 'test_room' },
      'Cannot add room with id "test_room" - roomId may contain only alphanumeric characters and hyphens',
    ],
    [{ roomId: '' }, 'Cannot add room with id "" - roomId may contain only alphanumeric characters and hyphens'],
    [{ roomId: 'a\n' }, 'Cannot add room with id "a\n" - roomId may contain only alphanumeric characters and hyphens'],
    [{ maxPeers: '10' }, 'Expected maxPeers to be a number, got: 10'],
    [{ maxPeers: -1 }, 'Expected maxPeers to be a number, got: -1'],
    [{ videoCodec: 'H264' }, "Expected videoCodec to be 'h264' or 'vp8', got: H264"],
    [{ webhookUrl: 'nonsense' }, 'Expected webhookUrl to be valid URL, got: nonsense'],
    [{ webhookUrl: 'ftp://h/' }, 'Expected webhookUrl to be valid URL, got: ftp://h/'],
    [{ peerlessPurgeTimeout: 0 }, 'Expected peerlessPurgeTimeout to be a positive integer, got: 0'],
    [{ peerDisconnectedTimeout: 1.5 }, 'Expected peerDisconnectedTimeout to be a positive integer, got: 1.5'],
    [{ roomId: 'a b', maxPeers: 'x' }, expect.stringContaining('roomId')],
    [{ maxPeers: 'x', videoCodec: 'y' }, expect.stringContaining('maxPeers')],
    [{ videoCodec: 'y', webhookUrl: 'z' }, expect.stringContaining('videoCodec')],
    [{ webhookUrl: 'z', peerlessPurgeTimeout: 0 }, expect.stringContaining('webhookUrl')],
    [{ peerlessPurgeTimeout: 0, peerDisconnectedTimeout: 0 }, expect.stringContaining('peerlessPurgeTimeout')],
  ])('refuses a room for %j', async (body, message) => {
    expect(await errorOf('POST', '/room', body)).toEqual([400, message]);
  });

  test('rejects a value of the wrong type in any field without crashing', async () => {
    for (const field of Object.keys(unset)) {
      for (const value of [true, [], {}, [null], { a: 1 }, -0.5, 'x y']) {
        const [status, text] = await errorOf('POST', '/room', { [field]: value });
        expect([field, value, status, typeof text]).toEqual([field, value, 400, 'string']);
      }
    }
    for (const { id } of (await api.call('GET', '/room')).body.data) await api.call('DELETE', `/room/${id}`);
  });

  test('creates a room once when requested with the same id at the same moment', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => api.call('POST', '/room', { roomId: 'once' })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array.from({ length: 9 }, () => 400)]);
    await api.call('DELETE', '/room/once');
  });

  test('survives timeouts longer than timers can count', async () => {
    const timeouts = [2_147_484, 1e12, Number.MAX_SAFE_INTEGER];
    const ids = await Promise.all(
      timeouts.map((seconds) => api.room({ peerlessPurgeTimeout: seconds, peerDisconnectedTimeout: seconds })),
    );
    const peers = await Promise.all(ids.map((id) => api.peer(id)));
    await delay(100);
    for (const [at, id] of ids.entries()) {
      expect((await api.call('GET', `/room/${id}`)).body.data.peers).toMatchObject([{ id: peers[at]?.id }]);
      await api.call('DELETE', `/room/${id}`);
    }
  });
});

describe('timers', () => {
  test('purges a room without a connected peer, and spares an occupied one', async () => {
    const [empty, lively] = [await api.room({ peerlessPurgeTimeout: 1 }), await api.room({ peerlessPurgeTimeout: 1 })];
    const never = await api.peer(empty);
    const ann = await PeerConnection.authenticated(node.url, (await api.peer(lively)).token);
    expect(never.id).toMatch(uuid);
    await until('the empty room ends', async () => (await api.call('GET', `/room/${empty}`)).status === 404);
    await delay(500);
    expect((await api.call('GET', `/room/${lively}`)).status).toBe(200);
    await api.call('DELETE', `/room/${lively}`);
    expect(await ann.closed).toBe('1000 Room stopped');
  });

  test('removes a peer that does not connect, and then restarts the timer of the room', async () => {
    const from = performance.now();
    const room = await api.room({ peerDisconnectedTimeout: 1, peerlessPurgeTimeout: 2 });
    await api.peer(room);
    const shown = () => api.call('GET', `/room/${room}`);
    await until('the peer is removed', async () => (await shown()).body.data.peers.length === 0);
    await until('the room ends', async () => (await shown()).status === 404);
    // 2 s after its last peer left, not after its creation.
    expect(performance.now() - from).toBeGreaterThan(2_900);
  });
});

describe('peers', () => {
  test('returns peers in the form that SDKs read', async () => {
    const room = await api.room();
    for (const options of [{ enableSimulcast: true }, { enableSimulcast: false }, {}, null, undefined]) {
      const { status, body } = await api.with(python).call('POST', `/room/${room}/peer`, { type: 'webrtc', options });
      expect(status).toBe(201);
      expect(body.data).toEqual({
        peer: { id: expect.stringMatching(uuid), type: 'webrtc', status: 'disconnected', tracks: [], metadata: null },
        token: expect.any(String),
        peer_websocket_url: 'media.example:4443/some/path/socket/peer/websocket',
        whip_url: 'http://media.example:4443/some/path/whip',
        whep_url: 'http://media.example:4443/some/path/whep',
      });
    }
    await api.call('DELETE', `/room/${room}`);
  });

  test('refuses peers in the order of the checks', async () => {
    const full = await api.room({ maxPeers: 1 });
    await api.peer(full);
    const add = (body: unknown, room = full) => errorOf('POST', `/room/${room}/peer`, body);
    expect(await add({}, 'nobody')).toEqual([400, 'Invalid request body structure']);
    expect(await add({ options: {} })).toEqual([400, 'Invalid request body structure']);
    for (const type of ['sip', 5, [], {}, true, null]) {
      expect((await add({ type }, 'nobody'))[0]).toBe(400);
      if (type !== null) expect(await add({ type }, 'nobody')).toEqual([400, 'Invalid peer type']);
    }
    expect(await add({ type: 'webrtc', options: 5 }, 'nobody')).toEqual([404, 'Room nobody does not exist']);
    expect(await add({ type: 'webrtc', options: 5 })).toEqual([503, `Reached peer limit in room ${full}`]);
    const open = await api.room();
    for (const options of [5, 'x', [], true, { enableSimulcast: 'yes' }, { enableSimulcast: 1 }]) {
      expect(await add({ type: 'webrtc', options }, open)).toEqual([400, 'Invalid request body structure']);
    }
    const closed = await api.room({ maxPeers: 0 });
    expect(await add({ type: 'webrtc' }, closed)).toEqual([503, `Reached peer limit in room ${closed}`]);
    for (const id of [full, open, closed]) expect((await api.call('DELETE', `/room/${id}`)).status).toBe(204);
  });

  test('frees the place of a deleted peer, and no longer finds it', async () => {
    const room = await api.room({ maxPeers: 1 });
    const { id } = await api.peer(room);
    expect((await api.call('DELETE', `/room/${room}/peer/${id}`)).status).toBe(204);
    expect(await errorOf('DELETE', `/room/${room}/peer/${id}`)).toEqual([404, `Peer ${id} does not exist`]);
    expect(await errorOf('DELETE', `/room/nobody/peer/${id}`)).toEqual([404, 'Room nobody does not exist']);
    expect((await api.peer(room)).id).not.toBe(id);
    await api.call('DELETE', `/room/${room}`);
  });

  test("shows the metadata of a peer's client, and keeps it after the client leaves", async () => {
    const room = await api.room();
    const peer = await api.peer(room);
    const client = await PeerConnection.joined(node.url, peer.token, { name: 'Ann', tags: [1, null] });
    const shown = async () => (await api.call('GET', `/room/${room}`)).body.data.peers[0];
    expect(await shown()).toMatchObject({ status: 'connected', metadata: { name: 'Ann', tags: [1, null] } });
    client.socket.close();
    await client.closed;
    for (let round = 0; round < 50 && (await shown()).status === 'connected'; round += 1) await delay(20);
    expect(await shown()).toEqual({
      id: peer.id,
      type: 'webrtc',
      status: 'disconnected',
      tracks: [],
      metadata: { name: 'Ann', tags: [1, null] },
    });
    await (await PeerConnection.authenticated(node.url, peer.token)).socket.terminate();
    await api.call('DELETE', `/room/${room}`);
  });

  test('refuses peers on a node without WebRTC, and keeps the room', async () => {
    const without = await startProgram({ JF_WEBRTC_USED: 'false', JF_WEBRTC_TURN_PORT_RANGE: 'garbage' });
    try {
      const other = new CheckedApi(without.url);
      const room = await other.room();
      const { status, body } = await other.call('POST', `/room/${room}/peer`, { type: 'webrtc' });
      expect(status).toBe(400);
      expect(body.errors).toContain('disabled');
      expect((await other.call('GET', `/room/${room}`)).status).toBe(200);
    } finally {
      await without.dispose();
    }
  });
});

describe('components', () => {
  test('refuses components in the order of the checks, whatever is enabled', async () => {
    const room = await api.room();
    const add = (body: unknown, id = room) => errorOf('POST', `/room/${id}/component`, body);
    expect(await add({}, 'nobody')).toEqual([400, 'Invalid request body structure']);
    expect(await add({ type: 'unknown' }, 'nobody')).toEqual([400, 'Invalid component type']);
    expect(await add({ type: 'hls' }, 'nobody')).toEqual([404, 'Room nobody does not exist']);
    for (const options of [{}, { sourceUri: 'rtsp://127.0.0.1/' }, 5]) {
      expect(await add({ type: 'rtsp', options })).toEqual([
        400,
        expect.stringMatching(/disabled|Incompatible video codec/),
      ]);
    }
    expect(await add({ type: 'sip' })).toEqual([400, expect.stringContaining('disabled')]);
    expect((await api.call('GET', `/room/${room}`)).body.data.components).toEqual([]);
    expect(await errorOf('DELETE', `/room/${room}/component/nobody`)).toEqual([404, 'Component nobody does not exist']);
    expect(await errorOf('DELETE', '/room/nobody/component/x')).toEqual([404, 'Room nobody does not exist']);
    await api.call('DELETE', `/room/${room}`);
  });

  test('neither subscribes nor dials for components that do not exist', async () => {
    const room = await api.room();
    const invalid = [400, 'Invalid request body structure'];
    const missing = [400, 'Component nobody does not exist'];
    const noRoom = [404, 'Room nobody does not exist'];
    const subscribe = (id: string, body: unknown) => errorOf('POST', `/room/${id}/component/nobody/subscribe`, body);
    for (const body of [{}, { origins: 'x' }, { origins: [1] }, { origins: null }]) {
      expect(await subscribe('nobody', body)).toEqual(invalid);
    }
    expect(await subscribe('nobody', { origins: ['a'] })).toEqual(noRoom);
    expect(await subscribe(room, { origins: ['a'] })).toEqual(missing);

    const dial = (id: string, body: unknown) => errorOf('POST', `/sip/${id}/nobody/call`, body);
    expect(await dial('nobody', {})).toEqual(invalid);
    expect(await dial('nobody', { phoneNumber: 5 })).toEqual(invalid);
    expect(await dial('nobody', { phoneNumber: '1' })).toEqual(noRoom);
    expect(await dial(room, { phoneNumber: '1' })).toEqual(missing);
    expect(await errorOf('DELETE', '/sip/nobody/nobody/call')).toEqual(noRoom);
    expect(await errorOf('DELETE', `/sip/${room}/nobody/call`)).toEqual(missing);
    await api.call('DELETE', `/room/${room}`);
  });
});

describe('files and health', () => {
  test('starts a new node without recordings and streams', async () => {
    expect((await api.call('GET', '/recording')).body).toEqual({ data: [] });
    for (const [method, path] of [
      ['DELETE', '/recording/nobody'],
      ['GET', '/recording/nobody/index.m3u8'],
      ['GET', '/hls/nobody/index.m3u8'],
    ] as const) {
      expect((await api.call(method, path)).status).toBe(404);
    }
  });

  test('returns the health report of a node without a cluster', async () => {
    const { body } = await api.with(python).call('GET', '/health');
    expect(body.data).toEqual({
      status: 'UP',
      uptime: expect.any(Number),
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      gitCommit: 'dev',
      distribution: { enabled: false, nodeStatus: 'DOWN', nodesInCluster: 0 },
    });
    expect(Number.isInteger(body.data.uptime)).toBe(true);
  });
});
