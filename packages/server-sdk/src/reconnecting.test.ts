import { afterEach, expect, test } from '@jest/globals';
import { encodeServerMessage } from '@bloom/protocol';
import type { WebSocket } from 'ws';
import { BloomClient } from './client.js';
import { serve, subscribing, type TestServer } from './testing/server.js';
import type { Notification, RoomSnapshot } from './types.js';

const servers: TestServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

/** A node that gives every request this answer. */
async function serving(answer: object, onSocket: (socket: WebSocket) => void, status = 200): Promise<TestServer> {
  const server = await serve((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer));
  }, onSocket);
  servers.push(server);

  return server;
}

/** A node whose only room has its name. */
function node(name: string, onSocket: (socket: WebSocket) => void, status = 200): Promise<TestServer> {
  const room = { id: name, config: {}, components: [], peers: [] };
  return serving(status === 200 ? { data: [room] } : { errors: 'busy' }, onSocket, status);
}

const created = (roomId: string) => encodeServerMessage({ type: 'roomCreated', roomId });

function label(item: Notification | RoomSnapshot): string {
  return item.type === 'snapshot' ? `snapshot ${item.rooms.map(({ id }) => id).join()}` : `${item.type} ${item.roomId}`;
}

async function until(done: () => boolean): Promise<void> {
  for (let i = 0; i < 100 && !done(); i++) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(done()).toBe(true);
}

async function take(client: BloomClient, count: number): Promise<string[]> {
  const taken: string[] = [];
  for await (const item of client.notifications({ reconnect: true })) if (taken.push(label(item)) === count) break;

  return taken;
}

test('restores a lost connection, and begins each connection with all rooms', async () => {
  let connections = 0;
  const { url } = await node(
    'a',
    subscribing((socket) => {
      connections += 1;
      socket.send(created(`${connections}`));
      if (connections === 1) socket.close(1001, 'Server stopped');
    }),
  );
  expect(await take(new BloomClient({ url, token: 't' }), 4)).toEqual([
    'snapshot a',
    'roomCreated 1',
    'snapshot a',
    'roomCreated 2',
  ]);
});

test('names in a snapshot the nodes whose rooms are missing', async () => {
  for (const unreachable of [undefined, ['app@c']]) {
    const { url } = await serving(
      { data: [], unreachable },
      subscribing(() => undefined),
    );
    const items = new BloomClient({ url, token: 't' }).notifications({ reconnect: true });
    const snapshot = { type: 'snapshot', rooms: [], unreachable: unreachable ?? [] };
    expect((await items.next()).value).toEqual(snapshot);
    await items.return?.();
  }
});

test('tries the next node if one is lost', async () => {
  const first = await node(
    'a',
    subscribing(() => undefined),
  );
  const second = await node(
    'b',
    subscribing((socket) => socket.send(created('y'))),
  );
  const client = new BloomClient({ url: [first.url, second.url], token: 't' });
  const items = client.notifications({ reconnect: true });
  expect((await items.next()).value).toMatchObject({ rooms: [{ id: 'a' }] });
  servers.splice(servers.indexOf(first), 1);
  await first.close();
  expect((await items.next()).value).toMatchObject({ rooms: [{ id: 'b' }] });
  expect((await items.next()).value).toEqual({ type: 'roomCreated', roomId: 'y' });
  await items.return?.();
});

test('ends the stream immediately on a wrong token or a refused list of rooms', async () => {
  const wrong = await node('a', (socket) => socket.close(1000, 'invalid token'));
  await expect(take(new BloomClient({ url: wrong.url, token: 't' }), 1)).rejects.toMatchObject({ status: 401 });
  const refusing = await node(
    'a',
    subscribing(() => undefined),
    403,
  );
  await expect(take(new BloomClient({ url: refusing.url, token: 't' }), 1)).rejects.toMatchObject({ status: 403 });
});

test('leaving the loop, or a failed list of rooms, closes the connection', async () => {
  let open = 0;
  const counting = subscribing((socket) => {
    open += 1;
    socket.once('close', () => (open -= 1));
    socket.send(created('x'));
  });
  const { url } = await node('a', counting);
  expect(await take(new BloomClient({ url, token: 't' }), 2)).toEqual(['snapshot a', 'roomCreated x']);
  await until(() => open === 0);

  const refusing = await node('a', counting, 403);
  await expect(take(new BloomClient({ url: refusing.url, token: 't' }), 1)).rejects.toMatchObject({ status: 403 });
  await until(() => open === 0);
});

test('retries a busy node', async () => {
  let subscriptions = 0;
  const busy = await node(
    'a',
    subscribing(() => (subscriptions += 1)),
    503,
  );
  const other = await node(
    'b',
    subscribing(() => (subscriptions += 1)),
  );
  expect(await take(new BloomClient({ url: [busy.url, other.url], token: 't' }), 1)).toEqual(['snapshot b']);
  expect(subscriptions).toBe(2);
});

test('ends the stream without an error on the signal, both while connected and between attempts', async () => {
  const { url } = await node(
    'a',
    subscribing(() => undefined),
  );
  for (const target of [url, 'http://127.0.0.1:9']) {
    const abort = new AbortController();
    const client = new BloomClient({ url: target, token: 't' });
    const items = client.notifications({ reconnect: true, signal: abort.signal });
    if (target === url) expect((await items.next()).value).toMatchObject({ type: 'snapshot' });
    const waiting = items.next();
    abort.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
  }
});

test('reports each loss with its reason before the next attempt', async () => {
  let connections = 0;
  const { url } = await node(
    'a',
    subscribing((socket) => {
      connections += 1;
      if (connections < 3) socket.close(1001, 'Server stopped');
    }),
  );
  const reports: string[] = [];
  const items = new BloomClient({ url, token: 't' }).notifications({
    reconnect: true,
    maxDelayMs: 1,
    onLost: ({ message }) => reports.push(message),
  });
  for (let snapshots = 0; snapshots < 3; snapshots += 1) await items.next();
  await items.return?.();
  expect(reports).toHaveLength(2);
  expect(reports[0]).toMatch(/closed the connection: Server stopped$/);
});

test('ends a stream aborted while its rooms are being listed without them', async () => {
  const abort = new AbortController();
  const server = await serve(
    (_request, response) => {
      abort.abort();
      response.end(JSON.stringify({ data: [] }));
    },
    subscribing(() => undefined),
  );
  servers.push(server);
  const items = new BloomClient({ url: server.url, token: 't' }).notifications({
    reconnect: true,
    signal: abort.signal,
  });
  expect(await items.next()).toEqual({ done: true, value: undefined });
});
