import { once } from 'node:events';
import { request } from 'node:https';
import { connect as tcpConnect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as tlsConnect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { type Endpoint, TrustedProxies } from '@bloom/net';
import { MAX_UNSERVED_PER_NETWORK } from './connections.js';
import { type HttpListener, type HttpListenerOptions, openHttpListener } from './listener.js';
import { CERT, KEY } from './testing/certificate.js';

const PATH = '/socket/peer/websocket';
/** Header of an Allocate request without attributes. */
const ALLOCATE = Buffer.from('000300002112a442000000000000000000000001', 'hex');
const tls = { key: Buffer.from(KEY), cert: Buffer.from(CERT) };

let listener: HttpListener;
/** Clients that were handed to the relay, with the bytes they sent. */
let relayed: { client: Endpoint; received: Buffer; socket: Socket }[];
const clients: Socket[] = [];

async function start(options: Partial<HttpListenerOptions> = {}): Promise<void> {
  listener = await openHttpListener({
    handler: (incoming, response) => response.end(`hello ${incoming.url}`),
    upgrades: {
      [PATH]: ({ socket }) => {
        socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
        return true;
      },
    },
    ip: '127.0.0.1',
    port: 0,
    tls,
    checkOrigin: { kind: 'any' },
    publicHost: 'example.com',
    log: silentLog,
    relay: (socket, client) => {
      const found = { client, received: Buffer.alloc(0), socket };
      relayed.push(found);
      socket
        .on('error', () => undefined)
        .on('data', (chunk: Buffer) => {
          found.received = Buffer.concat([found.received, chunk]);
          // As the challenge does.
          socket.write(chunk);
        });
    },
    ...options,
  });
}

beforeEach(() => void (relayed = []));
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await listener.close();
});

async function client(options: ConnectionOptions & { localAddress?: string } = {}): Promise<TLSSocket> {
  const at = { host: '127.0.0.1', port: listener.port, localAddress: '127.0.0.1' };
  const socket = tlsConnect({ ...at, ca: CERT, servername: 'localhost', ...options });
  clients.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  return socket;
}

/** Sends the bytes, and resolves with everything received until the connection ends. */
async function answerTo(...bytes: (string | Buffer)[]): Promise<string> {
  const socket = await client();
  let text = '';
  socket.on('data', (chunk: Buffer) => void (text += chunk.toString('latin1')));
  for (const part of bytes) {
    socket.write(part);
    await new Promise(setImmediate);
  }
  await once(socket, 'close');
  return text;
}

/** Sends an Allocate request, and resolves once the relay's echo is back. */
async function turnClient(options: Parameters<typeof client>[0] = {}): Promise<TLSSocket> {
  const socket = await client(options);
  socket.write(ALLOCATE);
  await once(socket, 'data');
  return socket;
}

function get(path: string): Promise<number | undefined> {
  const { port } = listener;
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, ca: CERT, servername: 'localhost', agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    })
      .on('error', reject)
      .end();
  });
}

describe('HTTP and TURN on one port', () => {
  test('serves requests, websockets and relay clients side by side', async () => {
    await start();
    const turn = await turnClient();
    expect(await get('/a')).toBe(200);
    const upgrade = `GET ${PATH} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    expect(await answerTo(upgrade)).toContain('101 Switching Protocols');
    expect(turn.destroyed).toBe(false);
    expect(relayed.map(({ received }) => received)).toEqual([ALLOCATE]);
    expect(relayed[0]?.client).toEqual({ address: '127.0.0.1', port: turn.localPort });
  });

  test('accepts the first bytes one by one', async () => {
    await start();
    const turn = await client();
    for (const byte of ALLOCATE) {
      turn.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    let echoed = 0;
    while (echoed < ALLOCATE.length) echoed += ((await once(turn, 'data')) as [Buffer])[0].length;
    expect(relayed[0]?.received).toEqual(ALLOCATE);
    expect(await answerTo(...'GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toContain('hello /b');
  });

  test('passes the relay everything that came with the first bytes, however much', async () => {
    await start();
    const all = Buffer.concat([ALLOCATE, Buffer.alloc(200_000, 7)]);
    const turn = await client();
    turn.write(all);
    let echoed = 0;
    while (echoed < all.length) echoed += ((await once(turn, 'data')) as [Buffer])[0].length;
    expect(relayed[0]?.received.equals(all)).toBe(true);
  });

  test('keeps a request that is parsed again without its upgrade as HTTP', async () => {
    await start();
    const h2c = 'GET /c HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n';
    expect(await answerTo(h2c)).toContain('hello /c');
  });

  test.each([
    ['zeros', Buffer.alloc(64)],
    ['STUN without the magic cookie', Buffer.concat([ALLOCATE.subarray(0, 4), Buffer.alloc(16, 1)])],
  ])('closes a connection that begins with %s silently', async (_what, bytes) => {
    await start();
    expect(await answerTo(bytes)).toBe('');
    expect(relayed).toEqual([]);
  });

  test.each([
    ['ChannelData', Buffer.from('4001000461626364', 'hex')],
    ['TLS within TLS', Buffer.from('1603010200', 'hex')],
  ])('treats a connection that begins with %s as a malformed request', async (_what, bytes) => {
    await start();
    expect(await answerTo(bytes)).toContain('400 Bad Request');
    expect(relayed).toEqual([]);
  });

  test("keeps a connection's protocol, whatever follows", async () => {
    await start();
    const http = await client();
    http.write('GET /d HTTP/1.1\r\nHost: x\r\n\r\n');
    // Node answers the next request with 400 only if this one has ended.
    let first = '';
    while (!first.includes('hello /d')) first += String(((await once(http, 'data')) as [Buffer])[0]);
    http.write(ALLOCATE);
    expect(String(((await once(http, 'data')) as [Buffer])[0])).toContain('400 Bad Request');
    expect(relayed).toEqual([]);
    const turn = await turnClient();
    turn.write('GET / HTTP/1.1\r\n\r\n');
    await once(turn, 'data');
    expect(relayed[0]?.received.toString('latin1')).toContain('GET / HTTP/1.1');
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['half a header', ALLOCATE.subarray(0, 7)],
  ])('closes a connection that sends %s after the time limit', async (_what, bytes) => {
    await start({ firstBytesMs: 50 });
    expect(await answerTo(bytes)).toBe('');
    expect(relayed).toEqual([]);
  });

  test('forgets a client that leaves before its first byte', async () => {
    await start();
    (await client()).end();
    const tcp = tcpConnect(listener.port, '127.0.0.1');
    const reset = await client({ socket: tcp });
    reset.write(ALLOCATE.subarray(0, 4));
    tcp.resetAndDestroy();
    const plain = tcpConnect(listener.port, '127.0.0.1');
    await once(plain, 'connect');
    plain.resetAndDestroy();
    expect(await get('/e')).toBe(200);
    expect(relayed).toEqual([]);
  });

  test("keeps out neither other networks nor, for long, its own when silent connections fill one network's share", async () => {
    await start();
    const silent = Array.from({ length: MAX_UNSERVED_PER_NETWORK }, () => {
      const socket = tcpConnect({ host: '127.0.0.1', port: listener.port, localAddress: '127.0.0.2' });
      socket.on('error', () => undefined);
      clients.push(socket);
      return once(socket, 'connect');
    });
    await Promise.all(silent);
    await turnClient();
    expect(await get('/f')).toBe(200);
    expect(relayed).toHaveLength(1);
  });

  test.each([['stun.turn'], ['http/1.1'], ['webrtc']])('a client may offer %s by ALPN', async (protocol) => {
    await start();
    const turn = await turnClient({ ALPNProtocols: [protocol] });
    expect(turn.alpnProtocol).toBe(protocol);
  });

  test('gives a client that offers HTTP/2 as well HTTP/1.1', async () => {
    await start();
    expect((await client({ ALPNProtocols: ['h2', 'http/1.1'] })).alpnProtocol).toBe('http/1.1');
  });

  test('lets no client renegotiate TLS', async () => {
    await start();
    const turn = await turnClient({ maxVersion: 'TLSv1.2' });
    const error = await new Promise((resolve) => {
      turn.once('error', resolve);
      turn.renegotiate({ rejectUnauthorized: false }, (failure) => resolve(failure ?? 'repeated'));
    });
    expect(error).toMatchObject({ code: 'ERR_SSL_NO_RENEGOTIATION' });
  });

  test("gives the relay the client's address from the PROXY header", async () => {
    await start({ trusted: new TrustedProxies(['127.0.0.1']), proxyProtocol: true });
    const socket = tcpConnect(listener.port, '127.0.0.1');
    clients.push(socket);
    socket.write('PROXY TCP4 203.0.113.1 192.0.2.1 4711 443\r\n');
    await turnClient({ socket });
    expect(relayed[0]?.client).toEqual({ address: '203.0.113.1', port: 4711 });
  });

  test('serves HTTP alone on the port without a relay', async () => {
    listener = await openHttpListener({
      handler: (_, response) => response.end('hello'),
      upgrades: {},
      ip: '127.0.0.1',
      port: 0,
      tls,
      checkOrigin: { kind: 'any' },
      publicHost: 'example.com',
      log: silentLog,
    });
    expect(await answerTo(ALLOCATE)).toContain('400 Bad Request');
  });
});
