import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { decodeServerMessage, encodeServerMessage, type ServerMessage } from '@bloom/protocol';
import { BloomClient, BloomConnectionError, parseWebhook, type Notification } from '@bloom/server-sdk';
import WebSocket from 'ws';
import { CheckedApi } from './support/checked-api.js';
import { PeerConnection } from './support/peer-socket.js';
import { type Node, startProgram } from './support/program.js';
import { receiveWebhooks, type WebhookReceiver } from './support/webhook-receiver.js';

jest.setTimeout(30_000);

const secret = 'webhook-signing-secret';

let node: Node;
let api: CheckedApi;
let sdk: BloomClient;
let receiver: WebhookReceiver;
/** Receiver paths that fail, and paths that answer only when a promise resolves. */
const failing = new Set<string>();
const slow = new Map<string, Promise<void>>();

beforeAll(async () => {
  node = await startProgram({ JF_WEBHOOK_SECRET: secret, JF_WEBRTC_METRICS_INTERVAL_MS: '100' });
  api = new CheckedApi(node.url);
  sdk = new BloomClient({ url: node.url, token: 'development' });
  receiver = await receiveWebhooks(async ({ path }) => {
    await slow.get(path);
    return { status: failing.has(path) ? 500 : 200 };
  });
});
afterAll(async () => {
  await node.dispose();
  await receiver.close();
});

/** Collects the frames of one server websocket. */
class RawSubscriber {
  readonly frames: Buffer[] = [];
  readonly closed: Promise<string>;
  #wake: () => void = () => undefined;

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer, isBinary) => {
      expect(isBinary).toBe(true);
      this.frames.push(data);
      this.#wake();
    });
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve(`${code} ${reason.toString()}`));
    });
  }

  static async open(): Promise<RawSubscriber> {
    const socket = new WebSocket(`${node.url.replace('http', 'ws')}/socket/server/websocket`);
    const subscriber = new RawSubscriber(socket);
    await once(socket, 'open');
    return subscriber;
  }

  send(...messages: (ServerMessage | Buffer | string)[]): this {
    for (const message of messages) {
      if (typeof message === 'string') this.socket.send(message);
      else this.socket.send(Buffer.isBuffer(message) ? message : encodeServerMessage(message));
    }
    return this;
  }

  async frame(at: number): Promise<Buffer> {
    for (;;) {
      const frame = this.frames[at];
      if (frame !== undefined) return frame;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

const auth: ServerMessage = { type: 'authRequest', token: 'development' };
const notifications: ServerMessage = { type: 'subscribeRequest', eventType: 'serverNotification' };

describe('the server websocket', () => {
  test('answers the handshake byte for byte, confirms each subscription before its events, and repeats no event', async () => {
    const subscriber = await RawSubscriber.open();
    subscriber.send(auth, notifications, notifications);
    expect(await subscriber.frame(0)).toEqual(Buffer.from([0x32, 0x00]));
    expect(await subscriber.frame(1)).toEqual(Buffer.from([0x4a, 0x02, 0x08, 0x01]));
    expect(await subscriber.frame(2)).toEqual(Buffer.from([0x4a, 0x02, 0x08, 0x01]));
    const room = await api.room();
    await api.call('DELETE', `/room/${room}`);
    await subscriber.frame(4);
    expect(subscriber.frames.slice(3).map((frame) => decodeServerMessage(frame))).toEqual([
      { type: 'roomCreated', roomId: room },
      { type: 'roomDeleted', roomId: room },
    ]);
    subscriber.send({ type: 'subscribeRequest', eventType: 'metrics' });
    expect(await subscriber.frame(5)).toEqual(Buffer.from([0x4a, 0x02, 0x08, 0x02]));
    expect(decodeServerMessage(await subscriber.frame(6))).toEqual({ type: 'metricsReport', metrics: {} });
    subscriber.socket.terminate();
  });

  test('sends no events without a subscription', async () => {
    const [unknown, idle] = [await RawSubscriber.open(), await RawSubscriber.open()];
    idle.send(auth);
    await idle.frame(0);
    await api.call('DELETE', `/room/${await api.room()}`);
    idle.send(notifications);
    await idle.frame(1);
    expect(unknown.frames.length).toBe(0);
    expect(idle.frames.length).toBe(2);
    for (const { socket } of [unknown, idle]) socket.terminate();
  });

  test.each<[string, (ServerMessage | Buffer | string)[], string]>([
    ['a wrong token', [{ type: 'authRequest', token: 'wrong' }], '1000 invalid token'],
    ['an empty token', [{ type: 'authRequest', token: '' }], '1000 invalid token'],
    ['a subscription without authentication', [notifications], '1000 invalid auth request'],
    ['an event without authentication', [{ type: 'roomCreated', roomId: 'x' }], '1000 invalid auth request'],
    ['garbage', [Buffer.from([0xff, 0xff, 0xff])], '1000 invalid auth request'],
    ['an empty message', [Buffer.alloc(0)], '1000 invalid auth request'],
    ['text', ['hello'], '1003 operation not allowed'],
    ['text after authentication', [auth, 'hello'], '1003 operation not allowed'],
    ['a second authentication', [auth, auth], '1003 operation not allowed'],
    ['an event after authentication', [auth, { type: 'roomCreated', roomId: 'x' }], '1003 operation not allowed'],
    ['garbage after authentication', [auth, Buffer.from([0xff])], '1003 operation not allowed'],
    ['an unspecified subscription', [auth, Buffer.from([0x42, 0x00])], '1003 operation not allowed'],
    ['an unknown subscription', [auth, Buffer.from([0x42, 0x02, 0x08, 0x07])], '1003 operation not allowed'],
  ])('closes for %s', async (_what, messages, expected) => {
    const subscriber = await RawSubscriber.open();
    subscriber.send(...messages);
    expect(await subscriber.closed).toBe(expected);
  });

  test('closes for a subscriber that does not read, with a bounded buffer and no effect on others', async () => {
    const [slow, quick] = [await RawSubscriber.open(), await RawSubscriber.open()];
    for (const subscriber of [slow, quick]) {
      subscriber.send(auth, notifications);
      await subscriber.frame(1);
    }
    slow.socket.pause();
    const before = quick.frames.length;
    const closedForSlowness = async () =>
      (await (await fetch(`${node.metricsUrl}/metrics`)).text()).includes('bloom_slow_subscribers_total 1\n');
    const rooms: string[] = [];
    let sent = 0;
    // One peer may not send this much metadata at once, so there are many peers, each in a separate room.
    while (!(await closedForSlowness())) {
      expect(rooms.length).toBeLessThan(300);
      const room = await api.room();
      rooms.push(room);
      const client = await PeerConnection.joined(node.url, (await api.peer(room)).token, 0);
      for (let burst = 0; burst < 4; burst += 1) {
        sent += 1;
        const metadata = { sent, filler: 'x'.repeat(50_000) };
        client.send({ type: 'updateEndpointMetadata', data: { metadata } });
        // The other subscriber's frames show that the node has got this far.
        await quick.frame(before + sent - 1);
      }
    }
    slow.socket.resume();
    expect(await slow.closed).toBe('1013 subscriber too slow');
    expect(slow.frames.length).toBeLessThan(quick.frames.length);
    expect(quick.socket.readyState).toBe(WebSocket.OPEN);
    quick.socket.terminate();
    for (const room of rooms) await api.call('DELETE', `/room/${room}`);
  });

  test('does not exist under other paths', async () => {
    for (const path of ['/socket/server', '/socket', '/room', '/']) {
      const socket = new WebSocket(`${node.url.replace('http', 'ws')}${path}`);
      const [error] = (await once(socket, 'error')) as [Error];
      expect(error.message).toContain('404');
    }
  });
});

describe('the peer websocket', () => {
  test('closes with the reasons that clients treat as final', async () => {
    const room = await api.room();
    const ann = await api.peer(room);
    const refusal = async (token: string) => {
      const client = await PeerConnection.open(node.url);
      client.token(token);
      return client.closed;
    };
    expect(await refusal('')).toBe('1000 invalid token');
    expect(await refusal('a.b.c')).toBe('1000 invalid token');
    expect(await refusal(`${ann.token}x`)).toBe('1000 invalid token');
    expect(await refusal('development')).toBe('1000 invalid token');
    const connected = await PeerConnection.authenticated(node.url, ann.token);
    expect(await refusal(ann.token)).toBe('1000 peer already connected');
    expect(connected.socket.readyState).toBe(WebSocket.OPEN);
    await api.call('DELETE', `/room/${room}/peer/${ann.id}`);
    expect(await connected.closed).toBe('1000 Peer removed');
    expect(await refusal(ann.token)).toBe('1000 peer not found');
    await api.call('DELETE', `/room/${room}`);
    expect(await refusal(ann.token)).toBe('1000 room not found');

    const early = await PeerConnection.open(node.url);
    early.send({ type: 'connect', data: {} });
    expect(await early.closed).toBe('1000 unauthenticated');
    const garbage = await PeerConnection.open(node.url);
    garbage.socket.send(Buffer.from([0xff]));
    expect(await garbage.closed).toBe('1000 unauthenticated');
  });

  test('ignores text, garbage and repeated tokens of an authenticated client', async () => {
    const room = await api.room();
    const { token } = await api.peer(room);
    const client = await PeerConnection.open(node.url);
    client.socket.send('text before');
    client.token(token);
    await client.next('authenticated');
    client.socket.send('text after');
    client.token(token);
    client.send({ type: 'no such event' });
    client.socket.send(Buffer.from([0x1a, 0x03, 0x0a, 0x01, 0x7b]));
    client.send({ type: 'connect', data: { metadata: 1 } });
    await client.next('connected');
    expect(client.received.map(({ type }) => type)).toEqual(['authenticated', 'connected']);
    await api.call('DELETE', `/room/${room}`);
    expect(await client.closed).toBe('1000 Room stopped');
  });
});

/** Subscribes, and resolves with the events when the room has ended. */
function recordRoom(roomId: string): { subscribed: Promise<void>; events: Promise<Notification[]> } {
  let onSubscribed: () => void = () => undefined;
  const subscribed = new Promise<void>((resolve) => {
    onSubscribed = resolve;
  });
  const read = async (): Promise<Notification[]> => {
    const events: Notification[] = [];
    for await (const event of sdk.notifications({ onSubscribed })) {
      if (event.roomId !== roomId) continue;
      events.push(event);
      if (event.type === 'roomDeleted' || event.type === 'roomCrashed') break;
    }
    return events;
  };
  return { subscribed, events: read() };
}

describe('the life of a room', () => {
  test('reaches the server SDK and the webhook in the same order, with one PeerDisconnected per connection', async () => {
    const room = 'life';
    const record = recordRoom(room);
    await record.subscribed;
    await sdk.createRoom({ roomId: room, webhookUrl: `${receiver.url}/life` });
    const [ann, bob, carl] = [await sdk.addPeer(room), await sdk.addPeer(room), await sdk.addPeer(room)];

    const first = await PeerConnection.joined(node.url, ann.token, { name: 'Ann' });
    first.send({ type: 'updateEndpointMetadata', data: { metadata: { name: 'Ann', hand: true } } });
    first.send({ type: 'updateEndpointMetadata', data: { metadata: { name: 'Ann', hand: true } } });
    const second = await PeerConnection.authenticated(node.url, bob.token);
    second.socket.terminate();
    await receiver.until('peerDisconnected');
    const third = await PeerConnection.authenticated(node.url, bob.token);
    await sdk.deletePeer(room, bob.peer.id);
    expect(await third.closed).toBe('1000 Peer removed');
    await sdk.deleteRoom(room);
    expect(await first.closed).toBe('1000 Room stopped');

    const events = await record.events;
    const of = (peer: { peer: { id: string } }) => ({ roomId: room, peerId: peer.peer.id });
    expect(events).toEqual([
      { type: 'roomCreated', roomId: room },
      { type: 'peerAdded', ...of(ann) },
      { type: 'peerAdded', ...of(bob) },
      { type: 'peerAdded', ...of(carl) },
      { type: 'peerConnected', ...of(ann) },
      { type: 'peerMetadataUpdated', ...of(ann), metadata: { name: 'Ann' } },
      { type: 'peerMetadataUpdated', ...of(ann), metadata: { name: 'Ann', hand: true } },
      { type: 'peerConnected', ...of(bob) },
      { type: 'peerDisconnected', ...of(bob) },
      { type: 'peerConnected', ...of(bob) },
      { type: 'peerDisconnected', ...of(bob) },
      { type: 'peerDeleted', ...of(bob) },
      { type: 'peerDisconnected', ...of(ann) },
      { type: 'peerDeleted', ...of(ann) },
      { type: 'peerDeleted', ...of(carl) },
      { type: 'roomDeleted', roomId: room },
    ]);
    await receiver.until('roomDeleted');
    expect(receiver.types('/life')).toEqual(events.map(({ type }) => type));
  });

  test('continues without a peer that crashes', async () => {
    const room = 'crash';
    const record = recordRoom(room);
    await record.subscribed;
    await sdk.createRoom({ roomId: room });
    const ann = await sdk.addPeer(room);
    const client = await PeerConnection.joined(node.url, ann.token, null);
    client.send({ type: 'custom', data: { type: 'renegotiateTracks' } });
    await client.next('custom');
    const sdpOffer = { type: 'offer', sdp: 'garbage' };
    client.send({
      type: 'custom',
      data: { type: 'sdpOffer', data: { sdpOffer, trackIdToTrackMetadata: {}, midToTrackId: {} } },
    });
    expect(await client.closed).toMatch(/^1011 /);
    expect((await sdk.getRoom(room)).peers).toEqual([]);
    await sdk.deleteRoom(room);
    expect((await record.events).map(({ type }) => type)).toEqual([
      'roomCreated',
      'peerAdded',
      'peerConnected',
      'peerMetadataUpdated',
      'peerDisconnected',
      'peerCrashed',
      'roomDeleted',
    ]);
  });
});

describe('webhooks', () => {
  test('sends webhooks as signed raw messages with their type', async () => {
    const room = await api.room({ webhookUrl: `${receiver.url}/signed?x=1` });
    await api.call('DELETE', `/room/${room}`);
    while (receiver.types('/signed?x=1').length < 2) await receiver.until('roomDeleted').then(() => pause(20));
    for (const { headers, body, type } of receiver.received.filter(({ path }) => path === '/signed?x=1')) {
      expect(headers['content-type']).toBe('application/x-protobuf');
      expect(headers['content-length']).toBe(String(body.byteLength));
      expect(headers['authorization']).toBeUndefined();
      const signature = createHmac('sha256', secret).update(body).digest('hex');
      expect(headers['x-bloom-signature']).toBe(`sha256=${signature}`);
      const timedSignature = headers['x-bloom-timed-signature'];
      expect(parseWebhook(body, { secret, timedSignature })).toEqual({ type, roomId: room });
      expect(decodeServerMessage(body)).toEqual({ type, roomId: room });
    }
  });

  test('loses only the webhooks that fail, and delays only the room of a slow receiver', async () => {
    failing.add('/failing');
    let answer = (): void => undefined;
    slow.set('/slow', new Promise((resolve) => (answer = resolve)));
    const rooms = [
      await api.room({ webhookUrl: `${receiver.url}/failing` }),
      await api.room({ webhookUrl: `${receiver.url}/slow` }),
      await api.room({ webhookUrl: `${receiver.url}/quick` }),
      await api.room({ webhookUrl: 'http://127.0.0.1:9/nobody' }),
    ];
    for (const room of rooms) await api.peer(room);
    for (const room of rooms) expect((await api.call('DELETE', `/room/${room}`)).status).toBe(204);
    const all = ['roomCreated', 'peerAdded', 'peerDeleted', 'roomDeleted'];
    while (receiver.types('/quick').length < 4 || receiver.types('/failing').length < 4) await pause(20);
    expect(receiver.types('/quick')).toEqual(all);
    expect(receiver.types('/failing')).toEqual(all);
    while (receiver.types('/slow').length < 1) await pause(20);
    // Each waits for the response to the previous one.
    expect(receiver.types('/slow')).toEqual(['roomCreated']);
    answer();
    while (receiver.types('/slow').length < 4) await pause(50);
    expect(receiver.types('/slow')).toEqual(all);
  });

  test('webhooks do not follow redirects', async () => {
    const target = await receiveWebhooks();
    const redirecting = await receiveWebhooks(() => ({ status: 307 }));
    const room = await api.room({ webhookUrl: `${redirecting.url}/there` });
    await api.call('DELETE', `/room/${room}`);
    await redirecting.until('roomDeleted');
    expect(redirecting.received.length).toBe(2);
    expect(target.received.length).toBe(0);
    await Promise.all([target.close(), redirecting.close()]);
  });
});

describe('the metrics report', () => {
  test('shows a peer within an interval of its connection, and nothing after it left', async () => {
    const { room } = await sdk.createRoom();
    const ann = await sdk.addPeer(room.id);
    const client = await PeerConnection.joined(node.url, ann.token, { name: 'Ann' });
    const reports = sdk.metrics();
    const first = await reports.next();
    expect(first.value).toEqual({
      [`room_id=${room.id}`]: {
        [`endpoint_id=${ann.peer.id}`]: expect.objectContaining({ 'endpoint.metadata': { name: 'Ann' } }),
      },
    });
    client.socket.terminate();
    for (let report = await reports.next(); ; report = await reports.next()) {
      if (Object.keys(report.value).length === 0) break;
    }
    await reports.return?.();
    await sdk.deleteRoom(room.id);
  });
});

describe('the server SDK', () => {
  test('distinguishes a wrong token from a lost server', async () => {
    const wrong = new BloomClient({ url: node.url, token: 'wrong' });
    await expect(wrong.listRooms()).rejects.toMatchObject({
      code: 'API_ERROR',
      status: 401,
      message: expect.stringMatching(/invalid/i),
    });
    await expect(wrong.notifications().next()).rejects.toMatchObject({
      code: 'API_ERROR',
      status: 401,
      message: 'invalid token',
    });
    const nobody = new BloomClient({ url: 'http://127.0.0.1:9', token: 'x' });
    await expect(nobody.health()).rejects.toThrow(BloomConnectionError);
    await expect(nobody.notifications().next()).rejects.toThrow(BloomConnectionError);
  });

  test('throws refusals with their message, status and request id', async () => {
    const { room } = await sdk.createRoom({ maxPeers: 0 });
    await expect(sdk.addPeer(room.id)).rejects.toMatchObject({
      status: 503,
      message: `Reached peer limit in room ${room.id}`,
      requestId: expect.stringMatching(/^.{20,}$/),
    });
    await expect(sdk.createRoom({ roomId: room.id })).rejects.toMatchObject({
      status: 400,
      message: `Cannot add room with id "${room.id}" - room already exists`,
    });
    expect(await sdk.listRooms()).toContainEqual(room);
    expect(await sdk.health()).toMatchObject({ status: 'UP' });
    expect(await sdk.listRecordings()).toEqual([]);
    await sdk.deleteRoom(room.id);
    await expect(sdk.deleteRoom(room.id)).rejects.toMatchObject({ status: 404 });
  });
});

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
