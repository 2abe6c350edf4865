import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger, silentLog } from '@bloom/log';
import { AwakeClock } from '@bloom/time';
import { ManualClock } from '@bloom/time/testing';
import { Metrics } from '@bloom/metrics';
import {
  type DataMessage,
  decodeServerMessage,
  encodeServerMessage,
  type ServerMessage,
  type SubscriptionType,
} from '@bloom/protocol';
import { WebSocket } from 'ws';
import { NotificationBus } from './bus.js';
import { BATCH_INTERVAL_MS, ServerSocket, type ServerSocketOptions } from './server-socket.js';

const TOKEN = 'the-token';

/** A client that decodes what it receives; `next()` waits for one message. */
class Client {
  readonly received: unknown[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #waiting: ((message: unknown) => void)[] = [];

  private constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer, isBinary) => {
      const message = isBinary ? decodeServerMessage(data) : 'text';
      const next = this.#waiting.shift();
      if (next === undefined) this.received.push(message);
      else next(message);
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
  }

  static async connect(port: number): Promise<Client> {
    const client = new Client(new WebSocket(`ws://127.0.0.1:${port}/socket/server/websocket`));
    await new Promise<void>((resolve, reject) => {
      client.socket.once('open', () => resolve());
      client.socket.once('error', reject);
    });
    return client;
  }

  static async subscribed(port: number, ...eventTypes: SubscriptionType[]): Promise<Client> {
    const client = await Client.connect(port);
    client.send({ type: 'authRequest', token: TOKEN });
    await client.next();
    for (const eventType of eventTypes) {
      client.send({ type: 'subscribeRequest', eventType });
      await client.next();
    }
    return client;
  }

  send(message: ServerMessage): void {
    this.socket.send(encodeServerMessage(message));
  }

  next(): Promise<unknown> {
    const message = this.received.shift();
    return message === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(message);
  }

  /** Resolves when everything sent so far has been handled. */
  async settled(): Promise<void> {
    const pong = new Promise<void>((resolve) => this.socket.once('pong', () => resolve()));
    this.socket.ping();
    await pong;
  }
}

let http: Server;
let bus: NotificationBus;
let socket: ServerSocket;
let port: number;
const clients: Client[] = [];
const raw: Socket[] = [];

async function start(options: Partial<ServerSocketOptions> = {}): Promise<void> {
  bus = new NotificationBus(silentLog);
  socket = new ServerSocket({ bus, token: TOKEN, log: silentLog, ...options });
  http = createServer();
  http.on('upgrade', (request, duplex, head) => {
    socket.handleUpgrade({ request, socket: duplex, head, address: '127.0.0.1' });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', () => resolve()));
  port = (http.address() as AddressInfo).port;
}

async function subscribed(...eventTypes: SubscriptionType[]): Promise<Client> {
  const client = await Client.subscribed(port, ...eventTypes);
  clients.push(client);
  return client;
}

async function connected(): Promise<Client> {
  const client = await Client.connect(port);
  clients.push(client);
  return client;
}

beforeEach(() => start());

afterEach(async () => {
  for (const client of clients.splice(0)) client.socket.terminate();
  for (const one of raw.splice(0)) one.destroy();
  await socket.close();
  http.closeAllConnections();
  await new Promise<void>((resolve) => http.close(() => resolve()));
});

test('sends a subscriber nothing before its subscription and everything after it, in order', async () => {
  const client = await connected();
  bus.publish({ type: 'roomCreated', roomId: 'unheard' });
  client.send({ type: 'authRequest', token: TOKEN });
  expect(await client.next()).toEqual({ type: 'authenticated' });
  bus.publish({ type: 'roomCreated', roomId: 'unheard' });

  client.send({ type: 'subscribeRequest', eventType: 'serverNotification' });
  expect(await client.next()).toEqual({ type: 'subscribeResponse', eventType: 'serverNotification' });
  for (let i = 0; i < 100; i += 1) bus.publish({ type: 'peerAdded', roomId: 'r', peerId: String(i) }, 'remote');
  bus.publishMetrics({});

  for (let i = 0; i < 100; i += 1) {
    expect(await client.next()).toEqual({ type: 'peerAdded', roomId: 'r', peerId: String(i) });
  }
  await client.settled();
  expect(client.received).toEqual([]);
});

test('does not send a subscriber earlier events, even those still waiting to be sent', async () => {
  const early = await subscribed('serverNotification');
  const late = await connected();
  late.send({ type: 'authRequest', token: TOKEN });
  await late.next();
  expect(socket.wants('metrics')).toBe(false);

  // The second event waits for the batch that follows the first one.
  const unheard = { type: 'roomCreated', roomId: 'unheard' } as const;
  bus.publish({ type: 'roomCreated', roomId: 'first' });
  await early.next();
  bus.publish(unheard);
  late.send({ type: 'subscribeRequest', eventType: 'serverNotification' });
  await late.next();
  bus.publish({ type: 'roomDeleted', roomId: 'r' });

  expect(await early.next()).toEqual(unheard);
  expect(await early.next()).toEqual({ type: 'roomDeleted', roomId: 'r' });
  expect(await late.next()).toEqual({ type: 'roomDeleted', roomId: 'r' });
});

test('sends metrics reports to metrics subscribers, and each message once to a subscriber to both kinds', async () => {
  const both = await subscribed('metrics', 'serverNotification', 'metrics', 'serverNotification');
  const metrics = await subscribed('metrics');

  bus.publishMetrics({ 'room_id=r': {} });
  bus.publish({ type: 'roomDeleted', roomId: 'r' });
  bus.publishMetrics({}, 'remote');
  await both.settled();
  await metrics.settled();

  const reports = [
    { type: 'metricsReport', metrics: { 'room_id=r': {} } },
    { type: 'metricsReport', metrics: {} },
  ];
  expect(both.received).toEqual([reports[0], { type: 'roomDeleted', roomId: 'r' }, reports[1]]);
  expect(metrics.received).toEqual(reports);
});

const said = (data: string): DataMessage => ({
  type: 'dataMessage',
  roomId: 'r',
  peerId: 'p',
  label: 'chat',
  to: [],
  data,
});

test('sends data channel messages only to their subscribers, in order with other events', async () => {
  const both = await subscribed('data', 'serverNotification');
  const notifications = await subscribed('serverNotification');
  expect(socket.wants('data')).toBe(true);
  expect(socket.wants('metrics')).toBe(false);

  const events = [{ type: 'roomCreated', roomId: 'r' }, said('hi'), { type: 'roomDeleted', roomId: 'r' }] as const;
  for (const event of events) bus.publish(event);
  await both.settled();
  await notifications.settled();

  expect(both.received).toEqual(events);
  expect(notifications.received).toEqual([events[0], events[2]]);
});

test('sends the news of recordings only to their subscribers', async () => {
  const both = await subscribed('recording', 'serverNotification');
  const notifications = await subscribed('serverNotification', 'data');
  expect(socket.wants('recording')).toBe(true);

  const part = { roomId: 'r', componentId: 'c', prefix: 'p', files: ['a.ogg'] };
  const events = [
    { type: 'roomCreated', roomId: 'r' },
    { type: 'recordingUploaded', ...part },
    { type: 'recordingFailed', ...part, reason: 'down' },
  ] as const;
  for (const event of events) bus.publish(event);
  await both.settled();
  await notifications.settled();
  expect(both.received).toEqual(events);
  expect(notifications.received).toEqual([events[0]]);
});

test('drops only data channel messages for a subscriber that does not read, and keeps its connection', async () => {
  await socket.close();
  http.close();
  const clock = new ManualClock();
  const metrics = new Metrics({ tickSeconds: 10 });
  await start({ clock, metrics });
  const sleeper = await subscribed('serverNotification', 'data');
  const underlying = Reflect.get(sleeper.socket, '_socket') as Socket;
  underlying.pause();

  // 32 MiB, four times what may be queued for a subscriber.
  for (let n = 0; n < 512; n += 1) {
    bus.publish(said('x'.repeat(64 * 1024)));
    clock.advance(BATCH_INTERVAL_MS);
    await new Promise(setImmediate);
  }
  bus.publish({ type: 'roomDeleted', roomId: 'r' });
  clock.advance(BATCH_INTERVAL_MS);
  underlying.resume();
  let messages = 0;
  let last: unknown;
  for (;;) {
    last = await sleeper.next();
    if ((last as ServerMessage).type !== 'dataMessage') break;
    messages += 1;
  }
  expect(last).toEqual({ type: 'roomDeleted', roomId: 'r' });
  expect(messages).toBeLessThan(512);
  expect(await metrics.expose()).toContain(`bloom_data_events_dropped_total ${512 - messages}\n`);
});

describe('close codes', () => {
  test('closes with 1000 invalid token on a wrong token', async () => {
    const client = await connected();
    client.send({ type: 'authRequest', token: 'wrong' });
    expect(await client.closed).toEqual({ code: 1000, reason: 'invalid token' });
  });

  test('logs one line for any number of wrong tokens', async () => {
    const log = createLogger({ sink: () => undefined });
    const strangers = new ServerSocket({ bus, token: TOKEN, log });
    http.removeAllListeners('upgrade').on('upgrade', (request, duplex, head) => {
      strangers.handleUpgrade({ request, socket: duplex, head, address: '127.0.0.1' });
    });
    for (let i = 0; i < 5; i++) {
      const client = await connected();
      client.send({ type: 'authRequest', token: `wrong ${i}` });
      await client.closed;
    }
    await strangers.close();
    expect(log.recent.last().map(({ event, fields }) => [event, fields['address'], fields['reason']])).toEqual([
      ['server_socket.refused', '127.0.0.1', 'invalid token'],
    ]);
  });

  test('closes with 1003 on text, and with 1000 on an undecodable first message', async () => {
    const text = await connected();
    text.socket.send('hello');
    expect(await text.closed).toEqual({ code: 1003, reason: 'operation not allowed' });

    const garbage = await connected();
    garbage.socket.send(Buffer.from([255]));
    expect(await garbage.closed).toEqual({ code: 1000, reason: 'invalid auth request' });
  });

  test('closes only the connection that sends a frame above the limit, with 1009', async () => {
    const other = await subscribed('serverNotification');
    const client = await connected();
    client.socket.send(Buffer.alloc(1024 * 1024));
    expect((await client.closed).code).toBe(1009);

    bus.publish({ type: 'roomCreated', roomId: 'r' });
    expect(await other.next()).toEqual({ type: 'roomCreated', roomId: 'r' });
  });

  test('closes connections with 1001 when the server stops', async () => {
    const client = await subscribed('metrics');
    await socket.close();
    expect(await client.closed).toEqual({ code: 1001, reason: 'server stops' });
    expect(socket.connections).toBe(0);
  });
});

test('runs no timer without connections, so a node that fails to start leaves none behind', async () => {
  await socket.close();
  http.close();
  const clock = new ManualClock();
  await start({ clock });
  expect(clock.pending).toBe(0);
  const [first, second] = [await subscribed('serverNotification'), await subscribed('metrics')];
  expect(clock.pending).toBe(1);
  first.socket.close();
  await first.closed;
  expect(clock.pending).toBe(1);
  second.socket.close();
  await second.closed;
  while (socket.connections > 0) await new Promise(setImmediate);
  expect(clock.pending).toBe(0);
});

test('pings an authenticated socket, and ends it if it stays silent', async () => {
  await socket.close();
  http.close();
  const clock = new ManualClock();
  await start({ clock });

  const client = await subscribed('serverNotification');
  const pinged = new Promise<void>((resolve) => client.socket.once('ping', () => resolve()));
  clock.advance(30_000);
  await pinged;
  await client.settled();

  clock.advance(59_999);
  expect(socket.connections).toBe(1);

  clock.advance(60_001);
  expect((await client.closed).code).toBe(1006);
});

test('keeps an authenticated socket over a pause of the process that is longer than its time limit', async () => {
  await socket.close();
  http.close();
  const clock = new ManualClock();
  await start({ clock: new AwakeClock(clock) });
  const client = await subscribed('serverNotification');
  await client.settled();

  clock.leap(90_000);
  clock.advance(28_000);
  expect(socket.connections).toBe(1);

  const pinged = new Promise<void>((resolve) => client.socket.once('ping', () => resolve()));
  clock.advance(2_000);
  await pinged;
});

test('sends an event larger than the buffer to a subscriber that has read everything before it', async () => {
  await socket.close();
  http.close();
  await start({ maxBufferedBytes: 1_000 });
  const client = await subscribed('serverNotification');
  const event = { type: 'peerMetadataUpdated', roomId: 'r', peerId: 'p', metadata: 'x'.repeat(100_000) } as const;
  bus.publish(event);
  expect(await client.next()).toEqual(event);
});

test('closes a subscriber that does not read when its buffer is full, while the others get everything', async () => {
  await socket.close();
  http.close();
  const clock = new ManualClock();
  const metrics = new Metrics({ tickSeconds: 10 });
  await start({ maxBufferedBytes: 256 * 1024, clock, metrics });

  const reader = await subscribed('serverNotification');
  const sleeper = await subscribed('serverNotification');
  const underlying: unknown = Reflect.get(sleeper.socket, '_socket');
  (underlying as Socket).pause();

  const metadata = 'x'.repeat(100_000);
  let published = 0;
  while (!(await metrics.expose()).includes('bloom_slow_subscribers_total 1\n')) {
    bus.publish({ type: 'peerMetadataUpdated', roomId: 'r', peerId: String(published), metadata });
    published += 1;
    clock.advance(BATCH_INTERVAL_MS);
    await reader.next();
    expect(published).toBeLessThan(1_000);
  }
  bus.publish({ type: 'roomDeleted', roomId: 'r' });
  clock.advance(BATCH_INTERVAL_MS);
  expect(await reader.next()).toEqual({ type: 'roomDeleted', roomId: 'r' });

  // The client does not take part in the closing handshake either; its connection is ended anyway.
  clock.advance(6_000);
  (underlying as Socket).resume();
  await sleeper.closed;
  expect(socket.connections).toBe(1);
});

test('forgets a connection that breaks in the middle of a frame', async () => {
  const client = connect(port, '127.0.0.1');
  raw.push(client);
  client.write(
    'GET /socket/server/websocket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n',
  );
  await new Promise<void>((resolve) => client.once('data', () => resolve()));
  expect(socket.connections).toBe(1);

  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
  client.write(Buffer.from([0x82, 0xfe, 0x00]));
  client.resetAndDestroy();
  await closed;
  await subscribed('metrics');
  expect(socket.connections).toBe(1);
});
