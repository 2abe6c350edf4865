// LiveKit's webhooks of a node, read with LiveKit's own receiver.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createLogger, silentLog } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { LeaveRequest } from '@livekit/protocol';
import { type WebhookEvent, WebhookReceiver } from 'livekit-server-sdk';
import { WebSocket } from 'ws';
import { Client, joinRequest, KEY, SECRET, tokenFor } from './testing/livekit-client.js';
import { startTestNode, type TestNode } from './testing/test-node.js';

const SIGNING_SECRET = 'another-secret-of-more-than-thirty-two-characters';
const receiver = new WebhookReceiver('APIhooks', SIGNING_SECRET);
const lines: string[] = [];
let server: Server;
let node: TestNode;
let env: Record<string, string>;
let rooms = 0;
let room = '';
/** Bodies and tokens as they arrived. */
const posts: { body: string; token: string; type: string | undefined }[] = [];
/** Number of next posts that are answered with 500. */
let refusals = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { authorization: token = '', 'content-type': type } = request.headers;
      posts.push({ body: Buffer.concat(chunks).toString(), token, type });
      response.writeHead(refusals > 0 ? 500 : 200).end();
      refusals = Math.max(0, refusals - 1);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const log = createLogger({ level: 'debug', structured: true, sink: (line: string) => void lines.push(line) });
  env = {
    JF_LIVEKIT_KEYS: `${KEY}: ${SECRET}, APIhooks: ${SIGNING_SECRET}`,
    JF_LIVEKIT_WEBHOOK_URLS: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    JF_LIVEKIT_WEBHOOK_KEY: 'APIhooks',
  };
  node = await startTestNode(env, { log });
});
beforeEach(() => void (room = `hooks-${++rooms}`));
afterEach(() => void (posts.length = 0));
afterAll(async () => {
  await node.dispose();
  server.closeAllConnections();
  server.close();
});

/** Waits for this many events and returns them as LiveKit's receiver reads them. */
async function received(count: number): Promise<WebhookEvent[]> {
  await until(() => posts.length >= count);

  return Promise.all(posts.map(({ body, token }) => receiver.receive(body, token)));
}

test("posts what happens in a room in order, as events that LiveKit's receiver verifies", async () => {
  const token = await tokenFor({ sub: 'ann', name: 'Ann', video: { room } });
  const url = `${node.url.replace('http', 'ws')}/rtc/v1?access_token=${token}&join_request=${joinRequest()}`;
  const ann = new Client(new WebSocket(url));
  await ann.heard('join');
  const peer = await node.addPeer(room);
  const socket = await node.peerSocket();
  await socket.authenticate(peer.token);
  socket.send({ type: 'connect', data: { metadata: null } });
  await until(() => posts.length >= 2);
  ann.send({ case: 'leave', value: new LeaveRequest() });
  await until(() => posts.length >= 3);
  await node.request('DELETE', `/room/${room}`);

  const events = await received(5);
  expect(events.map(({ event, participant }) => `${event} ${participant?.identity ?? ''}`)).toEqual([
    'room_started ',
    `participant_joined ${peer.id}`,
    'participant_connection_aborted ann',
    `participant_left ${peer.id}`,
    'room_finished ',
  ]);
  expect(new Set(events.map(({ id }) => id)).size).toBe(5);
  expect(events.every((each) => each.room?.name === room)).toBe(true);
  expect(posts.every(({ type }) => type === 'application/webhook+json')).toBe(true);
  expect(Number(events[0]?.createdAt)).toBeGreaterThan(1_700_000_000);
});

test('posts a refused event again with the same id, and the next one after it', async () => {
  refusals = 1;
  await node.createRoom({ roomId: room });
  await node.request('DELETE', `/room/${room}`);
  const events = await received(3);
  expect(events.map(({ event }) => event)).toEqual(['room_started', 'room_started', 'room_finished']);
  expect(events[1]?.id).toBe(events[0]?.id);
});

test('posts nothing that a receiver with another secret, or another body, accepts', async () => {
  await node.createRoom({ roomId: room });
  await until(() => posts.length > 0);
  const { body, token } = posts[0]!;
  await expect(new WebhookReceiver('APIhooks', SECRET).receive(body, token)).rejects.toThrow();
  await expect(receiver.receive(body.replace(room, 'other'), token)).rejects.toThrow();
});

test('posts what happens in a room at the node to which it has moved', async () => {
  const mapper = await PortMapperServer.open({ port: 0, log: silentLog });
  const start = (name: string): Promise<TestNode> =>
    startTestNode({
      ...env,
      JF_SECRET_KEY_BASE: 'the-same-on-all-nodes-of-a-cluster',
      JF_DIST_ENABLED: 'true',
      JF_DIST_MODE: 'name',
      JF_DIST_NODE_NAME: `${name}@127.0.0.1`,
      JF_DIST_NODES: 'from@127.0.0.1',
      JF_DIST_COOKIE: 'a_cookie_for_the_tests_of_clusters',
      JF_DIST_IP: '127.0.0.1',
      ERL_EPMD_PORT: String(mapper.port),
    });
  const from = await start('from');
  await from.createRoom({ roomId: room });
  const to = await start('to');
  await until(() => to.cluster?.node.nodes().length === 1);
  await received(1);
  await from.request('POST', '/node/drain', { move: true });
  await until(() => to.rooms.view(room) !== undefined);
  await to.request('DELETE', `/room/${room}`);
  const events = await received(2);
  expect(events.map(({ event }) => event)).toEqual(['room_started', 'room_finished']);
  expect(events[1]?.room?.sid).toBe(events[0]?.room?.sid);
  await to.dispose();
  await from.dispose();
  await mapper.close();
});

test('logs neither the secret nor a token of a webhook', () => {
  expect(lines.filter((line) => line.includes(SIGNING_SECRET) || line.includes('eyJ'))).toEqual([]);
});
