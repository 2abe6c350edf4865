import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { createLogger } from '@bloom/log';
import { decodeServerMessage } from '@bloom/protocol';
import { startTestNode, type TestNode } from './testing/test-node.js';

// Real sockets, on a machine that other tests keep busy.
jest.setTimeout(30_000);

let node: TestNode;

afterEach(() => node.dispose());

describe('a node', () => {
  test('handles a peer from its creation to the end of its room, and reports each step in order', async () => {
    node = await startTestNode();
    const server = await node.serverSocket();
    const roomId = await node.createRoom({ roomId: 'kitchen', maxPeers: 2 });
    const ann = await node.addPeer(roomId);
    const client = await node.peerSocket();
    await client.authenticate(ann.token);
    client.send({ type: 'connect', data: { metadata: { name: 'Ann' } } });
    expect((await client.next('connected')).data).toEqual({ id: ann.id, otherEndpoints: [] });

    const { body } = await node.request('GET', '/room/kitchen');
    expect(body.data.peers).toEqual([
      { id: ann.id, type: 'webrtc', status: 'connected', tracks: [], metadata: { name: 'Ann' } },
    ]);
    expect((await node.request('DELETE', '/room/kitchen')).status).toBe(204);
    expect(await client.closed).toBe('1000 Room stopped');
    expect(await server.untilNews('roomDeleted')).toEqual([
      'roomCreated',
      'peerAdded',
      'peerConnected',
      'peerMetadataUpdated',
      'peerDisconnected',
      'peerDeleted',
      'roomDeleted',
    ]);
    expect((await node.request('GET', '/room/kitchen')).status).toBe(404);
  });

  test('shows peers in one room to each other, but not to peers in another room', async () => {
    node = await startTestNode();
    const [kitchen, garden] = [await node.createRoom(), await node.createRoom()];
    const join = async (roomId: string, name: string) => {
      const peer = await node.addPeer(roomId);
      const client = await node.peerSocket();
      await client.authenticate(peer.token);
      client.send({ type: 'connect', data: { metadata: name } });
      return { ...peer, client, connected: (await client.next('connected')).data };
    };
    const ann = await join(kitchen, 'Ann');
    const carl = await join(garden, 'Carl');
    const bob = await join(kitchen, 'Bob');

    expect(bob.connected.otherEndpoints.map(({ metadata }: { metadata: string }) => metadata)).toEqual(['Ann']);
    expect(carl.connected.otherEndpoints).toEqual([]);
    expect((await ann.client.next('endpointAdded')).data).toEqual({ id: bob.id, type: 'webrtc', metadata: 'Bob' });

    bob.client.send({ type: 'custom', data: { type: 'renegotiateTracks' } });
    const offerData = await bob.client.next('custom');
    expect(offerData.data).toMatchObject({
      type: 'offerData',
      data: {
        tracksTypes: { audio: 0, video: 0 },
        integratedTurnServers: [
          { serverAddr: '127.0.0.1', transport: 'udp', username: expect.stringContaining(bob.id) },
        ],
      },
    });
    bob.client.socket.terminate();
    expect((await ann.client.next('endpointRemoved')).data).toEqual({ id: bob.id });
  });

  test('removes only the client that sends an irreparable offer', async () => {
    node = await startTestNode();
    const server = await node.serverSocket();
    const roomId = await node.createRoom();
    const ann = await node.addPeer(roomId);
    const client = await node.peerSocket();
    await client.authenticate(ann.token);
    client.send({ type: 'connect', data: { metadata: null } });
    await client.next('connected');
    client.send({ type: 'custom', data: { type: 'renegotiateTracks' } });
    await client.next('custom');
    client.send({
      type: 'custom',
      data: {
        type: 'sdpOffer',
        data: {
          sdpOffer: { type: 'offer', sdp: 'garbage' },
          trackIdToTrackMetadata: {},
          midToTrackId: {},
        },
      },
    });

    expect(await client.closed).toBe('1011 Invalid SDP offer');
    expect((await server.untilNews('peerCrashed')).slice(-2)).toEqual(['peerDisconnected', 'peerCrashed']);
    expect((await node.request('GET', `/room/${roomId}`)).body.data.peers).toEqual([]);
  });

  test('refuses sockets for the reasons that clients know', async () => {
    node = await startTestNode();
    const roomId = await node.createRoom();
    const ann = await node.addPeer(roomId);
    const live = await node.peerSocket();
    await live.authenticate(ann.token);
    const attempt = async (token: string): Promise<string> => {
      const client = await node.peerSocket();
      void client.authenticate(token);
      return client.closed;
    };

    expect(await attempt('garbage')).toBe('1000 invalid token');
    expect(await attempt(ann.token)).toBe('1000 peer already connected');
    await node.request('DELETE', `/room/${roomId}/peer/${ann.id}`);
    expect(await live.closed).toBe('1000 Peer removed');
    expect(await attempt(ann.token)).toBe('1000 peer not found');
    await node.request('DELETE', `/room/${roomId}`);
    expect(await attempt(ann.token)).toBe('1000 room not found');
  });

  test('answers as a node without a cluster: health, metrics with its load, unknown paths', async () => {
    node = await startTestNode({ JF_GIT_COMMIT: 'abc1234' });
    await node.createRoom({ roomId: 'kitchen' });
    await node.addPeer('kitchen');
    const health = await node.request('GET', '/health');
    const metrics = await (await fetch(`${node.metricsUrl}/metrics`)).text();

    expect(health.body.data).toMatchObject({
      status: 'UP',
      gitCommit: 'abc1234',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      distribution: { enabled: false, nodeStatus: 'DOWN', nodesInCluster: 0 },
    });
    expect(metrics).toContain('bloom_room_peers{room_id="kitchen"} 1\n');
    expect(metrics).toContain('bloom_load_rooms 1\n');
    expect((await node.request('GET', '/')).status).toBe(404);
  });

  test('reports a connected peer without media within the interval', async () => {
    node = await startTestNode();
    const server = await node.serverSocket();
    const roomId = await node.createRoom();
    const ann = await node.addPeer(roomId);
    const client = await node.peerSocket();
    await client.authenticate(ann.token);
    server.send({ type: 'subscribeRequest', eventType: 'metrics' });
    const seen = (message: object): boolean =>
      'metrics' in message && JSON.stringify(message.metrics).includes(`"endpoint_id=${ann.id}"`);

    expect(await server.until(seen)).toMatchObject({ metrics: { [`room_id=${roomId}`]: {} } });
  });

  test('refuses websockets from pages of other hosts if configured to', async () => {
    node = await startTestNode({ JF_CHECK_ORIGIN: 'true', JF_HOST: 'sfu.example' });

    await expect(node.peerSocket({ origin: 'https://evil.example' })).rejects.toThrow('403');
    const client = await node.peerSocket({ origin: 'https://sfu.example' });
    expect(client.socket.readyState).toBe(client.socket.OPEN);
  });

  test('has rooms but no peers without WebRTC', async () => {
    node = await startTestNode({ JF_WEBRTC_USED: 'false' });
    const roomId = await node.createRoom();

    expect((await node.request('POST', `/room/${roomId}/peer`, { type: 'webrtc' })).status).toBe(400);
    expect((await node.request('GET', `/room/${roomId}`)).status).toBe(200);
  });
});

describe('webhooks', () => {
  test('webhooks get every event of their room from first to last, including the last ones of a closing node', async () => {
    const events: string[] = [];
    const receiver = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        events.push(decodeServerMessage(Buffer.concat(chunks)).type);
        response.end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    node = await startTestNode();
    const webhookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const roomId = await node.createRoom({ webhookUrl });
    const ann = await node.addPeer(roomId);
    await (await node.peerSocket()).authenticate(ann.token);
    await node.close();
    receiver.closeAllConnections();
    await new Promise((resolve) => receiver.close(resolve));

    expect(events).toEqual([
      'roomCreated',
      'peerAdded',
      'peerConnected',
      'peerDisconnected',
      'peerDeleted',
      'roomDeleted',
    ]);
  });
});

describe('closing', () => {
  test("ends rooms as DELETE does, then every connection, and frees the node's ports", async () => {
    node = await startTestNode();
    const server = await node.serverSocket();
    const ann = await node.addPeer(await node.createRoom());
    const client = await node.peerSocket();
    await client.authenticate(ann.token);
    await Promise.all([node.close(), node.close()]);

    expect(await client.closed).toBe('1000 Room stopped');
    expect(await server.closed).toBe(1001);
    expect(server.news.slice(-3)).toEqual(['peerDisconnected', 'peerDeleted', 'roomDeleted']);
    await expect(fetch(node.url)).rejects.toThrow();
    await expect(fetch(node.metricsUrl)).rejects.toThrow();
  });

  test('leaves running rooms alone until they end during the drain timeout, and accepts no new ones', async () => {
    node = await startTestNode({ JF_DRAIN_TIMEOUT: '60' });
    const roomId = await node.createRoom();
    const ann = await node.addPeer(roomId);
    const client = await node.peerSocket();
    await client.authenticate(ann.token);
    const closed = node.close();
    await new Promise((resolve) => setImmediate(resolve));

    expect((await node.request('POST', '/room')).status).toBe(503);
    client.send({ type: 'connect', data: { metadata: 1 } });
    await client.next('connected');
    expect((await node.request('DELETE', `/room/${roomId}`)).status).toBe(204);
    await closed;
    expect(await client.closed).toBe('1000 Room stopped');
  });

  test('releases everything it opened when it fails to start', async () => {
    node = await startTestNode();
    const { port } = node.settings.http;
    const metricsPort = node.settings.metrics.port;
    await expect(startTestNode({ JF_PORT: String(port) })).rejects.toMatchObject({ code: 'HTTP_LISTEN_FAILED' });
    await expect(startTestNode({ JF_METRICS_PORT: String(metricsPort) })).rejects.toMatchObject({
      code: 'METRICS_LISTEN_FAILED',
    });
  });

  test('leaves no socket behind after 100 peers come and go', async () => {
    node = await startTestNode();
    const handles = (): number => process.getActiveResourcesInfo().filter((kind) => /TCP|UDP/.test(kind)).length;
    const roomId = await node.createRoom();
    const round = async (): Promise<void> => {
      const peers = await Promise.all(Array.from({ length: 50 }, () => node.addPeer(roomId)));
      const clients = await Promise.all(peers.map(() => node.peerSocket()));
      await Promise.all(clients.map((client, i) => client.authenticate(peers[i]?.token ?? '')));
      for (const client of clients) client.send({ type: 'connect', data: { metadata: null } });
      await Promise.all(clients.map((client) => client.next('connected')));
      await Promise.all(peers.map(({ id }) => node.request('DELETE', `/room/${roomId}/peer/${id}`)));
      await Promise.all(clients.map((client) => client.closed));
    };
    await round();
    const before = handles();
    await round();

    expect(handles()).toBeLessThanOrEqual(before);
    expect((await node.request('GET', `/room/${roomId}`)).body.data.peers).toEqual([]);
  });
});

describe('secrets', () => {
  test('never appear in the log during a whole run', async () => {
    const lines: string[] = [];
    const log = createLogger({ level: 'debug', sink: (line) => lines.push(line) });
    node = await startTestNode(
      { JF_SERVER_API_TOKEN: 'api-token-to-hide', JF_SECRET_KEY_BASE: 'key-base-to-hide' },
      { log },
    );
    const ann = await node.addPeer(await node.createRoom());
    const client = await node.peerSocket();
    await client.authenticate(ann.token);
    client.send({ type: 'nonsense' });
    client.socket.terminate();
    await node.close();

    const text = lines.join('\n');
    expect(lines.length).toBeGreaterThan(1);
    for (const secret of ['api-token-to-hide', 'key-base-to-hide', ann.token]) expect(text).not.toContain(secret);
  });
});
