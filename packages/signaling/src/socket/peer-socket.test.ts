import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger, silentLog } from '@bloom/log';
import { encodePeerMessage, MAX_MEDIA_EVENT_BYTES } from '@bloom/protocol';
import { RoomError, type AttachedPeer, type AttachRefusal, type PeerSocket } from '@bloom/rooms';
import { ManualClock } from '@bloom/time/testing';
import { WebSocket } from 'ws';
import { AUTH_TIMEOUT_MS, MAX_BUFFERED_BYTES, PING_PERIOD_MS, type PeerSocketOptions } from './peer-socket.js';
import { openPeerSocketServer, type PeerSocketServer, PEER_SOCKET_PATH } from './peer-socket-server.js';

/** The rooms as the peer socket sees them: accepts one token and records everything that happens. */
class Rooms {
  readonly received: string[] = [];
  readonly sockets: PeerSocket[] = [];
  attached = 0;
  detached = 0;
  /** Answer to tokens other than `good`. */
  refusal: AttachRefusal = 'invalid token';
  /** Replaced by tests that delay the answer. */
  hold: Promise<void> = Promise.resolve();

  readToken(token: string): { roomId: string; peerId: string } | 'invalid token' {
    return token === 'good' ? { roomId: 'kitchen', peerId: 'ann' } : 'invalid token';
  }

  async attachPeer(token: string, socket: PeerSocket): Promise<AttachedPeer | AttachRefusal> {
    await this.hold;
    if (token === 'broken') throw new Error('the room is gone');
    if (token === 'silent') throw new RoomError('OWNER_UNREACHABLE', 'Room r is on b, which is currently unreachable');
    if (token !== 'good') return this.refusal;
    this.attached += 1;
    this.sockets.push(socket);
    return {
      receive: (text) => this.received.push(text),
      detach: () => {
        this.detached += 1;
      },
    };
  }
}

let http: Server;
let server: PeerSocketServer;
let rooms: Rooms;
let clock: ManualClock;
const clients: Client[] = [];

/** Resolves when the server has seen the last connection end. */
let closedAtServer: () => Promise<void>;

/** Returns the connection underneath a client's websocket. */
function rawSocket(client: Client): Duplex {
  return (client.socket as unknown as { _socket: Duplex })._socket;
}

async function listen(options: Partial<PeerSocketOptions> = {}): Promise<void> {
  http = createServer();
  server = openPeerSocketServer({ rooms, log: silentLog, clock, ...options });
  http.on('upgrade', (request, socket, head) => {
    const closed = new Promise<void>((resolve) => socket.once('close', () => setImmediate(resolve)));
    closedAtServer = () => closed;
    server.handleUpgrade({ request, socket, head, address: '127.0.0.1' });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
}

class Client {
  readonly frames: string[] = [];
  pings = 0;
  readonly closed: Promise<string>;
  readonly socket: WebSocket;
  #waiting: (() => void)[] = [];

  constructor(options: { autoPong?: boolean } = {}) {
    const { port } = http.address() as AddressInfo;
    this.socket = new WebSocket(`ws://127.0.0.1:${port}${PEER_SOCKET_PATH}`, options);
    this.socket.on('message', (data: Buffer, isBinary) => {
      this.frames.push(`${isBinary ? '' : 'text '}${data.toString('latin1')}`);
      this.#wake();
    });
    this.socket.on('ping', () => {
      this.pings += 1;
      this.#wake();
    });
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => resolve(`${code} ${reason.toString()}`.trim()));
    });
    clients.push(this);
  }

  async open(): Promise<this> {
    await new Promise((resolve) => this.socket.once('open', resolve));
    return this;
  }

  async authenticate(): Promise<this> {
    await this.open();
    this.token('good');
    await this.until(() => this.frames.length > 0);
    return this;
  }

  token(token: string): void {
    this.socket.send(encodePeerMessage({ type: 'authRequest', token }));
  }

  event(data: string): void {
    this.socket.send(encodePeerMessage({ type: 'mediaEvent', data }));
  }

  /** Resolves when the server has seen and answered everything sent so far. */
  async settled(): Promise<void> {
    const pong = new Promise((resolve) => this.socket.once('pong', resolve));
    this.socket.ping();
    await pong;
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

beforeEach(async () => {
  rooms = new Rooms();
  clock = new ManualClock();
  await listen();
});

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.terminate();
  server.close();
  await new Promise((resolve) => http.close(resolve));
});

describe('authentication', () => {
  test('answers a valid token with authenticated in a binary frame', async () => {
    const client = await new Client().authenticate();
    expect(client.frames).toEqual(['\n\0']);
    expect(rooms.attached).toBe(1);
  });

  test.each<AttachRefusal>([
    'invalid token',
    'expired token',
    'room not found',
    'peer not found',
    'peer already connected',
  ])('closes a refused client with 1000 and the reason %s', async (refusal) => {
    rooms.refusal = refusal;
    const client = await new Client().open();
    client.token('bad');
    expect(await client.closed).toBe(`1000 ${refusal}`);
    expect(client.frames).toEqual([]);
  });

  test('tells a peer that connects too often to try again', async () => {
    rooms.refusal = 'too many connections';
    const client = await new Client().open();
    client.token('bad');
    expect(await client.closed).toBe('1013 too many connections');
  });

  test('passes an empty token to the rooms like any other', async () => {
    const client = await new Client().open();
    client.socket.send(Buffer.from([0x12, 0x00]));
    expect(await client.closed).toBe('1000 invalid token');
  });

  test.each([
    ['a media event', encodePeerMessage({ type: 'mediaEvent', data: '{}' })],
    ['authenticated', encodePeerMessage({ type: 'authenticated' })],
    ['an empty message', Buffer.alloc(0)],
    ['garbage', Buffer.from([0xff, 0xff, 0xff])],
  ])('closes with 1000 unauthenticated when the first message is %s', async (_what, frame) => {
    const client = await new Client().open();
    client.socket.send(frame);
    expect(await client.closed).toBe('1000 unauthenticated');
  });

  test('closes with 1000 unauthenticated when no token arrives within 10 seconds', async () => {
    const client = await new Client().open();
    await client.settled();
    clock.advance(AUTH_TIMEOUT_MS);
    expect(await client.closed).toBe('1000 unauthenticated');
  });

  test('ignores a text frame and leaves the socket open', async () => {
    const client = await new Client().open();
    client.socket.send('hello');
    await client.settled();
    client.token('good');
    await client.until(() => client.frames.length > 0);
    expect(client.frames).toEqual(['\n\0']);
  });

  test('closes with 1013 when the node of the room cannot be reached', async () => {
    const client = await new Client().open();
    client.token('silent');
    expect(await client.closed).toBe('1013 try again');
  });

  test('closes with 1011 when the room fails to answer', async () => {
    const client = await new Client().open();
    client.token('broken');
    expect(await client.closed).toBe('1011 Internal server error');
  });

  test('detaches a client that disconnected before the room answered', async () => {
    let answer: () => void = () => undefined;
    rooms.hold = new Promise((resolve) => {
      answer = resolve;
    });
    const client = await new Client().open();
    client.token('good');
    await client.settled();
    client.socket.terminate();
    await client.closed;
    await closedAtServer();
    answer();
    await eventually(() => rooms.detached === 1);
    expect(rooms.attached).toBe(1);
  });

  test('drops a connection that sends more than 16 KiB without authentication, before a frame is complete', async () => {
    const client = await new Client().open();
    rawSocket(client).write(
      Buffer.concat([Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0]), Buffer.alloc(16_384)]),
    );
    expect(await client.closed).toBe('1006');
  });

  test('disconnects a stranger that does not answer the close frame after a second', async () => {
    const client = await new Client().open();
    await client.settled();
    client.socket.pause();
    const gone = closedAtServer();
    clock.advance(AUTH_TIMEOUT_MS);
    clock.advance(1_000);
    await gone;
    client.socket.resume();
    expect(await client.closed).toBe('1000 unauthenticated');
  });

  test('writes few log lines for strangers that connect again and again', async () => {
    const log = createLogger({ sink: () => undefined });
    server.close();
    await new Promise((resolve) => http.close(resolve));
    await listen({ log });
    for (let i = 0; i < 5; i++) {
      const client = await new Client().open();
      for (let n = 0; n < 4; n++) client.socket.send('hello');
      await client.settled();
      // A frame with a reserved opcode.
      rawSocket(client).write(Buffer.from([0x83, 0x80, 0, 0, 0, 0]));
      await client.closed;
    }
    expect(log.recent.last().map(({ event, fields }) => [event, fields['ignored']])).toEqual([
      ['peer_socket.ignored', 1],
      ['peer_socket.ignored', 2],
      ['peer_socket.ignored', 4],
      ['peer_socket.error', undefined],
    ]);
  });

  test('ignores a second authRequest without a reply', async () => {
    const client = await new Client().authenticate();
    client.token('good');
    client.token('bad');
    await client.settled();
    expect(client.frames).toHaveLength(1);
    expect(rooms.attached).toBe(1);
  });
});

describe('authenticated sockets', () => {
  test('carries media events in both directions', async () => {
    const client = await new Client().authenticate();
    client.event('{"type":"connect"}');
    await client.settled();
    expect(rooms.received).toEqual(['{"type":"connect"}']);
    rooms.sockets[0]?.send('{"type":"connected"}');
    await client.until(() => client.frames.length === 2);
    expect(client.frames[1]).toBe('\x1a\x16\n\x14{"type":"connected"}');
  });

  test('delivers events of every length that the header of a frame distinguishes, between pings', async () => {
    const client = await new Client().authenticate();
    const events = Array.from({ length: 12 }, (_, i) => 'x'.repeat(116 + i)).concat(
      'y'.repeat(65_520),
      'z'.repeat(65_540),
    );
    const pinged: Promise<boolean>[] = [];
    for (const event of events) {
      rooms.sockets[0]?.send(event);
      pinged.push(rooms.sockets[0]!.ping(1_000));
    }
    await client.until(() => client.frames.length === 1 + events.length);
    expect(client.frames.slice(1)).toEqual(
      events.map((data) => Buffer.from(encodePeerMessage({ type: 'mediaEvent', data })).toString('latin1')),
    );
    expect(await Promise.all(pinged)).toEqual(events.map(() => true));
  });

  test('ignores text frames and frames without a media event', async () => {
    const client = await new Client().authenticate();
    client.socket.send('{"type":"connect"}');
    client.socket.send(encodePeerMessage({ type: 'authenticated' }));
    client.socket.send(Buffer.alloc(0));
    client.event('{}');
    await client.settled();
    expect(rooms.received).toEqual(['{}']);
  });

  test('tolerates 19 consecutive undecodable frames, again and again', async () => {
    const client = await new Client().authenticate();
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 19; n++) client.socket.send(Buffer.from([0xff]));
      client.event(String(round));
    }
    await client.settled();
    expect(rooms.received).toEqual(['0', '1', '2']);
  });

  test('closes with 1011 after 20 consecutive undecodable frames', async () => {
    const client = await new Client().authenticate();
    for (let n = 0; n < 20; n++) client.socket.send(Buffer.from([0xff]));
    expect(await client.closed).toBe('1011 Internal server error');
    expect(rooms.detached).toBe(1);
  });

  test('accepts an event of 1 MiB and closes with 1009 on a longer one', async () => {
    const client = await new Client().authenticate();
    client.event('x'.repeat(MAX_MEDIA_EVENT_BYTES));
    await client.settled();
    expect(rooms.received[0]).toHaveLength(MAX_MEDIA_EVENT_BYTES);
    client.event('x'.repeat(MAX_MEDIA_EVENT_BYTES + 1));
    expect(await client.closed).toBe('1009');
    expect(rooms.detached).toBe(1);
  });

  test('closes with 1009 on the announced length of a frame, before reading it', async () => {
    const client = await new Client().authenticate();
    client.socket.send(Buffer.alloc(MAX_MEDIA_EVENT_BYTES * 2));
    expect(await client.closed).toBe('1009');
    expect(rooms.received).toEqual([]);
  });

  test('delivers a single event above the limit for waiting data', async () => {
    server.close();
    await new Promise((resolve) => http.close(resolve));
    await listen({ maxBufferedBytes: 1_000 });
    const client = await new Client().authenticate();
    rooms.sockets[0]?.send('x'.repeat(1_000_000));
    await client.until(() => client.frames.length === 2);
    await client.settled();
    expect(client.frames[1]?.length).toBe(1_000_008);
    expect(rooms.detached).toBe(0);
  });

  test('reads a client that floods no faster than its rate, and loses nothing', async () => {
    const client = await new Client().authenticate();
    for (let i = 0; i < 4_000; i++) client.event(`${i}`.padEnd(100));
    await eventually(() => rooms.received.length > 1_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const first = rooms.received.length;
    expect(first).toBeLessThan(3_000);
    while (rooms.received.length < 4_000) {
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
    expect(rooms.received.map(Number)).toEqual(Array.from({ length: 4_000 }, (_, i) => i));
    expect(rooms.detached).toBe(0);
  });

  test('keeps reading when a client disables the same encodings thousands of times, as published SDKs do', async () => {
    const client = await new Client().authenticate();
    const events = ['l', 'h'].map((encoding) =>
      JSON.stringify({ type: 'disableTrackEncoding', data: { trackId: 'me:1', encoding } }),
    );
    for (let i = 0; i < 8_192; i++) client.event(events[i % 2] ?? '');
    client.event('offer');
    await client.settled();
    expect(rooms.received).toEqual([...events, 'offer']);
  });

  test('closes a flooding client at once', async () => {
    const client = await new Client().authenticate();
    for (let i = 0; i < 4_000; i++) client.event(`${i}`.padEnd(100));
    await eventually(() => rooms.received.length > 1_000);
    rooms.sockets[0]?.close(1000, 'Peer removed');
    expect(await client.closed).toBe('1000 Peer removed');
  });

  test('detaches once when the client disconnects', async () => {
    const client = await new Client().authenticate();
    client.socket.close();
    await client.closed;
    await eventually(() => rooms.detached === 1);
    expect(clock.pending).toBe(0);
  });

  test('sends nothing more after the room has closed the socket with its code and reason', async () => {
    const client = await new Client().authenticate();
    const [socket] = rooms.sockets;
    socket?.close(1000, 'Peer removed');
    socket?.close(1011, 'too late');
    socket?.send('{}');
    expect(await client.closed).toBe('1000 Peer removed');
    expect(client.frames).toHaveLength(1);
    expect(rooms.detached).toBe(1);
  });

  test('ends a socket without a close frame when too much data waits for a slow client', async () => {
    const client = await new Client().authenticate();
    client.socket.pause();
    const text = 'x'.repeat(1024 * 1024);
    // More than our buffers and the system buffers of both ends hold.
    for (let n = 0; n < 64 && rooms.detached === 0; n++) {
      rooms.sockets[0]?.send(text);
      await new Promise(setImmediate);
    }
    expect(rooms.detached).toBe(1);
    expect(MAX_BUFFERED_BYTES).toBeLessThan(64 * text.length);
    client.socket.resume();
    expect(await client.closed).toBe('1006');
  });
});

describe('keep-alive', () => {
  test('pings every 30 seconds after authentication, not before', async () => {
    const client = await new Client().open();
    await client.settled();
    clock.advance(AUTH_TIMEOUT_MS - 1);
    client.token('good');
    await client.until(() => client.frames.length > 0);
    clock.advance(PING_PERIOD_MS - 1);
    await client.settled();
    expect(client.pings).toBe(0);
    clock.advance(1);
    await client.until(() => client.pings === 1);
  });

  test('keeps a socket that answers pings or sends anything', async () => {
    const client = await new Client().authenticate();
    for (let period = 1; period <= 5; period++) {
      clock.advance(PING_PERIOD_MS);
      await client.until(() => client.pings === period);
      await client.settled();
    }
    expect(rooms.detached).toBe(0);
  });

  test('drops a socket that was silent for two periods', async () => {
    const client = await new Client({ autoPong: false }).authenticate();
    clock.advance(PING_PERIOD_MS);
    await client.until(() => client.pings === 1);
    expect(rooms.detached).toBe(0);
    clock.advance(PING_PERIOD_MS);
    expect(rooms.detached).toBe(1);
    expect(await client.closed).toBe('1006');
  });

  test('tells the room whether the other end is alive', async () => {
    const client = await new Client().authenticate();
    expect(await rooms.sockets[0]?.ping(2000)).toBe(true);
    const dead = await new Client({ autoPong: false }).authenticate();
    const answer = rooms.sockets[1]?.ping(2000);
    await dead.until(() => dead.pings === 1);
    clock.advance(2000);
    expect(await answer).toBe(false);
    expect(client.pings).toBe(1);
  });

  test('reports at once that a closed socket is dead when it is pinged', async () => {
    const client = await new Client({ autoPong: false }).authenticate();
    const waiting = rooms.sockets[0]?.ping(2000);
    client.socket.terminate();
    expect(await waiting).toBe(false);
    expect(await rooms.sockets[0]?.ping(2000)).toBe(false);
    expect(clock.pending).toBe(0);
  });
});

/** Waits for an effect on the server that the client cannot see. */
async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}
