import { request as httpsRequest } from 'node:https';
import { once } from 'node:events';
import { connect as tcpConnect, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { createHash } from 'node:crypto';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { OriginRule } from '@bloom/config';
import { createLogger, silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { MAX_PIPELINED, MAX_UNSERVED_PER_NETWORK, UNSERVED_GRACE_MS } from './connections.js';
import { HttpListenError, type HttpListener, type HttpListenerOptions, openHttpListener } from './listener.js';
import { CERT, KEY } from './testing/certificate.js';

const PATH = '/socket/peer/websocket';
let listener: HttpListener | undefined;

async function start(options: Partial<HttpListenerOptions> = {}): Promise<HttpListener> {
  listener = await openHttpListener({
    handler: (request, response) => response.end(`hello ${request.url}`),
    upgrades: {
      [PATH]: ({ request, socket }) => {
        const key = createHash('sha1')
          .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
          .digest('base64');
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${key}\r\n\r\n`,
        );
        return true;
      },
    },
    ip: '127.0.0.1',
    port: 0,
    tls: null,
    checkOrigin: { kind: 'any' },
    publicHost: 'example.com:4000/media',
    log: silentLog,
    ...options,
  });

  return listener;
}

afterEach(async () => {
  await listener?.close();
  listener = undefined;
});

/** Resolves with the status line of the response to an upgrade. */
function upgrade(path: string, headers: Record<string, string> = {}, tls = false): Promise<string> {
  const all = {
    host: 'media.example',
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'sec-websocket-version': '13',
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);

  return new Promise((resolve, reject) => {
    const port = listener?.port ?? 0;
    const socket = tls
      ? tlsConnect({ port, host: '127.0.0.1', ca: CERT, servername: 'localhost' })
      : tcpConnect(port, '127.0.0.1');
    socket.on('error', reject);
    socket.once('data', (data: Buffer) => {
      resolve(data.toString().split('\r\n', 1)[0] ?? '');
      socket.destroy();
    });
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  });
}

const ACCEPTED = 'HTTP/1.1 101 Switching Protocols';

describe('websockets', () => {
  test('finds a websocket by its path, even with a trailing slash, a second slash before it or a query', async () => {
    await start();
    for (const path of [PATH, `${PATH}/`, `/${PATH}`, `${PATH}?token=x`]) expect(await upgrade(path)).toBe(ACCEPTED);
  });

  test('answers a websocket on another path with 404', async () => {
    await start();
    for (const path of ['/', '/socket/peer', '/room', '/constructor', '/__proto__', '//', '//room', `//${PATH}`]) {
      expect(await upgrade(path)).toBe('HTTP/1.1 404 Not Found');
    }
  });

  test('frees the place of a refused websocket, even if the client does not close', async () => {
    const { port } = await start({ maxConnections: 1 });
    const refused = tcpConnect({ port, host: '127.0.0.1', allowHalfOpen: true });
    refused.write('GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    refused.resume();
    await once(refused, 'end');
    const served = async (): Promise<boolean> => {
      const answer = await exchange('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n').catch(() => '');
      return answer.includes('hello /');
    };
    let isServed = false;
    for (let i = 0; i < 100 && !isServed; i++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      isServed = await served();
    }
    expect(isServed).toBe(true);
    refused.destroy();
  });

  test('finds a websocket when a proxy sends the whole URL', async () => {
    await start();
    expect(await upgrade(`http://media.example${PATH}`)).toBe(ACCEPTED);
    expect(await upgrade('http://media.example/other')).toBe('HTTP/1.1 404 Not Found');
  });

  test.each<[OriginRule, string, string]>([
    [{ kind: 'host' }, 'https://example.com', ACCEPTED],
    [{ kind: 'host' }, 'https://evil.example', 'HTTP/1.1 403 Forbidden'],
    [{ kind: 'connection' }, 'http://media.example', ACCEPTED],
    [{ kind: 'connection' }, 'https://media.example', 'HTTP/1.1 403 Forbidden'],
    [{ kind: 'list', origins: ['//app.example'] }, 'https://app.example', ACCEPTED],
    [{ kind: 'list', origins: ['//app.example'] }, 'https://example.com', 'HTTP/1.1 403 Forbidden'],
    [{ kind: 'any' }, 'https://evil.example', ACCEPTED],
  ])('applies rule %j to origin %s and answers %s', async (checkOrigin, origin, expected) => {
    await start({ checkOrigin });
    expect(await upgrade(PATH, { origin })).toBe(expected);
    expect(await upgrade(PATH)).toBe(ACCEPTED);
  });
});

test('logs one line for a foreign page that keeps trying', async () => {
  const log = createLogger({ sink: () => undefined });
  await start({ checkOrigin: { kind: 'host' }, log });
  for (let i = 0; i < 5; i++) expect(await upgrade(PATH, { origin: `https://${i}.example` })).toContain('403');
  expect(log.recent.last().map(({ event, fields }) => [event, fields['origin'], fields['address']])).toEqual([
    ['websocket.origin_refused', 'https://0.example', '127.0.0.1'],
  ]);
});

test('refuses a websocket beyond the limit with 503', async () => {
  await start({ upgrades: { [PATH]: () => false } });
  expect(await upgrade(PATH)).toBe('HTTP/1.1 503 Service Unavailable');
});

/**
 * Resolves with everything the server sends until it closes; each request is sent once the previous one is answered.
 */
function exchange(...requests: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = tcpConnect(listener?.port ?? 0, '127.0.0.1');
    const next = () => socket.write(Buffer.from(requests.shift() ?? '', 'latin1'));
    let answers = '';
    socket.on('data', (data: Buffer) => {
      answers += data.toString();
      next();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answers));
    next();
  });
}

describe('other requests', () => {
  test("ignores an offer of another protocol, and answers the request's body and later requests", async () => {
    const seen: unknown[] = [];
    await start({
      handler: (request, response) => {
        let body = '';
        request.on('data', (chunk: Buffer) => (body += chunk.toString()));
        request.on('end', () => {
          seen.push([request.method, body, request.headers['x-name']]);
          response.end();
        });
      },
    });
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
    const answer = await exchange(
      `POST /room HTTP/1.1\r\nHost: x\r\nX-Name: \xe9\r\n${offer}Content-Length: 5\r\n\r\nhello`,
      `GET /room HTTP/1.1\r\nHost: x\r\n${offer}\r\n`,
      'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n\r\n',
    );

    expect(seen).toEqual([
      ['POST', 'hello', 'é'],
      ['GET', '', undefined],
      ['GET', '', undefined],
    ]);
    expect(answer.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
  });

  test('answers all consecutive requests that offer another protocol, in order', async () => {
    let listeners = 0;
    await start({
      handler: (request, response) => {
        listeners = Math.max(listeners, request.socket.listenerCount('close'));
        request.resume().on('end', () => setImmediate(() => response.end(request.url)));
      },
    });
    const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
    const requests = Array.from({ length: 200 }, (_, i) => `GET /${i} HTTP/1.1\r\nHost: x\r\n${offer}\r\n`);
    const answer = await exchange(
      `POST /room HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello${requests.join('')}` +
        'GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    expect(answer.match(/^\/[a-z0-9]+(?=HTTP|$)/gm)).toEqual(['/room', ...requests.map((_, i) => `/${i}`), '/last']);
    expect(listeners).toBeLessThan(10);
  });

  test.each([
    ['GET /room/\xe9 HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'Bad Request'],
    ['nonsense\r\n\r\n', 400, 'Bad Request'],
    [`GET /${'a'.repeat(20_000)} HTTP/1.1\r\n\r\n`, 431, 'Request Header Fields Too Large'],
  ])('answers a request that is not HTTP in a form that SDKs can read: %.20s', async (text, status, errors) => {
    await start();
    const [head = '', body = ''] = (await exchange(text)).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} ${errors}\r\n`));
    expect(head).toContain('access-control-allow-origin: *');
    expect(JSON.parse(body)).toEqual({ errors });
  });

  test('answers pipelined requests one after another', async () => {
    const waiting: (() => void)[] = [];
    let started = 0;
    await start({
      handler: (request, response) => {
        started += 1;
        waiting.push(() => request.pipe(response));
      },
    });
    const answers = exchange(
      ['first', 'second', 'third!']
        .map((body) => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
        .join('') + 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );
    for (let count = 1; count <= 4; count += 1) {
      while (waiting.length === 0) await new Promise(setImmediate);
      expect(started).toBe(count);
      waiting.pop()?.();
    }
    expect(await answers).toMatch(/\r\nfirst\r\n.*\r\nsecond\r\n.*\r\nthird!\r\n/s);
  });

  test('does not start a pipelined request whose connection ends first', async () => {
    const started: (string | undefined)[] = [];
    let closed: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => (closed = resolve));
    await start({
      handler: ({ url }, response) => {
        started.push(url);
        response.once('close', closed);
      },
    });
    const socket = tcpConnect(listener?.port ?? 0, '127.0.0.1');
    socket.write(['/1', '/2', '/3'].map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
    while (started.length === 0) await new Promise(setImmediate);
    socket.destroy();
    await ended;
    await new Promise(setImmediate);
    expect(started).toEqual(['/1']);
  });

  test('lets requests with an offer wait for their turn on a connection that is reset', async () => {
    let started = 0;
    let closed: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => (closed = resolve));
    await start({
      handler: ({ socket }) => {
        started += 1;
        socket.once('close', closed);
      },
    });
    const socket = tcpConnect(listener?.port ?? 0, '127.0.0.1');
    const offer = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
    socket.write(`GET / HTTP/1.1\r\nHost: x\r\n\r\n${offer}`);
    while (started === 0) await new Promise(setImmediate);
    // An unhandled connection error would end the process.
    socket.resetAndDestroy();
    await ended;
    expect(started).toBe(1);
  });

  test('cuts off endless pipelined requests', async () => {
    let started = 0;
    await start({ handler: () => (started += 1) });
    await exchange('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(MAX_PIPELINED + 1)).catch(() => '');
    expect(started).toBe(1);
  });

  test('cuts off a connection that turns into garbage during an answer, without a second answer', async () => {
    await start({ handler: (_request, response) => response.write('the beginning') });
    const answer = await exchange('GET / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n');
    expect(answer).not.toContain('400');
  });
});

describe('connections without a request', () => {
  const open = (): Socket => tcpConnect(listener?.port ?? 0, '127.0.0.1');
  /** Resolves with the first of the connections that the server closes. */
  const firstClosed = (sockets: readonly Socket[]): Promise<Socket> =>
    Promise.race(sockets.map((socket) => once(socket, 'close').then(() => socket)));

  test('limits connections without a request per network, and does not count served ones', async () => {
    const clock = new ManualClock();
    await start({ clock });
    const served = tcpConnect(listener?.port ?? 0, '127.0.0.1');
    served.write('GET /a HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(served, 'data');
    const silent: Socket[] = [];
    // One after the other: a full backlog loses connections without a word to those that wait.
    while (silent.length < MAX_UNSERVED_PER_NETWORK) {
      const socket = open();
      await once(socket, 'connect');
      silent.push(socket);
    }
    // The server has counted all the others when it refuses this one.
    await once(open(), 'close');

    clock.advance(UNSERVED_GRACE_MS);
    const replaced = firstClosed(silent);
    const newcomer = open();
    await replaced;
    served.write('GET /b HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(String((await once(served, 'data'))[0])).toContain('hello /b');
    expect(newcomer.destroyed).toBe(false);
    expect(await exchange('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toContain('200');
    for (const socket of [...silent, newcomer, served]) socket.destroy();
  });
});

test('closes idle connections when almost all are taken', async () => {
  const { port } = await start({ maxConnections: 20 });
  const idle = await Promise.all(
    Array.from({ length: 18 }, async () => {
      const socket = tcpConnect(port, '127.0.0.1');
      socket.write('GET /a HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(socket, 'data');
      return socket;
    }),
  );
  const closed = idle.map((socket) => once(socket, 'close'));
  expect(await exchange('GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toContain('hello /b');
  await Promise.all(closed);
});

describe('a response that is written but still on its way to a slow client', () => {
  const size = 20_000_000;
  /** Starts reading, and resolves with a function that returns how many bytes arrived in total. */
  const slowly = async (port: number, next = ''): Promise<() => Promise<number>> => {
    const socket = tcpConnect(port, '127.0.0.1');
    let received = 0;
    // The server may reset the connection before the rest is read.
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => (received += data.length));
    socket.write(`GET /segment HTTP/1.1\r\nHost: x\r\n\r\n${next}`);
    await once(socket, 'data');
    socket.pause();

    return async () => {
      socket.resume();
      while (received < size && !socket.closed) await new Promise(setImmediate);
      socket.destroy();
      return received;
    };
  };
  const large: HttpListenerOptions['handler'] = (_request, response) => response.end(Buffer.alloc(size));

  test('does not cut off a slow response when connections are scarce', async () => {
    const { port } = await start({ handler: large, maxConnections: 2 });
    const rest = await slowly(port);
    const other = tcpConnect(port, '127.0.0.1');
    await once(other, 'connect');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await rest()).toBeGreaterThan(size);
    other.destroy();
  });

  test.each([
    ['', ''],
    [', and has offered another protocol', 'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
  ])('gives up a response when the client reads none of it%s', async (_what, next) => {
    let ended: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (ended = resolve));
    const { port } = await start({
      handler: (request, response) => {
        request.socket.once('close', ended);
        large(request, response);
      },
      stalledMs: 100,
    });
    const rest = await slowly(port, next);
    await closed;
    expect(await rest()).toBeLessThan(size);
  });

  test('continues a response while the client reads some of it now and then', async () => {
    const stalledMs = 2_000;
    const { port } = await start({ handler: large, stalledMs });
    const socket = tcpConnect(port, '127.0.0.1');
    let received = 0;
    // Half of it arrives in pieces of at most 64 KiB, which takes 2.3 s.
    socket.on('data', (data: Buffer) => {
      received += data.length;
      if (received < size / 2) socket.pause();
    });
    const begunAt = performance.now();
    socket.write('GET /segment HTTP/1.1\r\nHost: x\r\n\r\n');
    const reading = setInterval(() => socket.resume(), 15);
    while (received < size && !socket.closed) await new Promise((resolve) => setTimeout(resolve, 15));
    clearInterval(reading);
    expect(performance.now() - begunAt).toBeGreaterThan(stalledMs);
    expect(received).toBeGreaterThan(size);
    socket.destroy();
  });

  test('does not cut off a slow response when the listener closes', async () => {
    const { port, close } = await start({ handler: large });
    const rest = await slowly(port);
    const closed = close({ graceMs: 10_000 });
    expect(await rest()).toBeGreaterThan(size);
    await closed;
  });
});

test('serves only HTTPS and WSS on the port when given a key and a certificate', async () => {
  const { port, url } = await start({ tls: { key: Buffer.from(KEY), cert: Buffer.from(CERT) } });
  expect(url).toBe(`https://127.0.0.1:${port}`);

  const body = await new Promise<string>((resolve, reject) => {
    httpsRequest(`${url}/x`, { ca: CERT, servername: 'localhost' }, (answer) => {
      answer.on('data', (chunk: Buffer) => resolve(chunk.toString()));
    })
      .on('error', reject)
      .end();
  });
  expect(body).toBe('hello /x');
  expect(await upgrade(PATH, {}, true)).toBe(ACCEPTED);
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
});

test('reports a port in use with the names of the variables', async () => {
  const { port } = await start();
  const first = listener;

  await expect(start({ port })).rejects.toThrow(HttpListenError);
  await expect(start({ port })).rejects.toThrow(/127\.0\.0\.1:\d+ \(JF_IP, JF_PORT\).*EADDRINUSE/);
  listener = first;
});

describe('closing the listener', () => {
  test('lets a response in progress finish on close, and accepts nothing new', async () => {
    let finish: () => void = () => undefined;
    let started: () => void = () => undefined;
    const inProgress = new Promise<void>((resolve) => {
      started = resolve;
    });
    const { url, close } = await start({
      handler: (_request, response) => {
        finish = () => response.end('done');
        started();
      },
    });

    const answer = fetch(url, { headers: { connection: 'close' } }).then((one) => one.text());
    await inProgress;
    const closed = close({ graceMs: 10_000 });
    await expect(fetch(url)).rejects.toThrow();
    finish();

    expect(await answer).toBe('done');
    await closed;
    await close();
  });

  test('ends websockets and requests that hang on close', async () => {
    const { url, port, close } = await start({ handler: () => undefined });
    const hanging = fetch(url);
    hanging.catch(() => undefined);
    const socket = tcpConnect(port, '127.0.0.1');
    const upgraded = new Promise<void>((resolve) => socket.once('data', () => resolve()));
    const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.write(`GET ${PATH} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`);
    await upgraded;

    await close();
    await ended;
    await expect(hanging).rejects.toThrow();
  });

  test('ends connections that never finish their TLS handshake on close', async () => {
    const { port, close } = await start({ tls: { key: Buffer.from(KEY), cert: Buffer.from(CERT) } });
    const socket = tcpConnect(port, '127.0.0.1');
    const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.resume().on('error', () => undefined);
    await new Promise<void>((resolve) => socket.once('connect', () => resolve()));

    await close();
    await ended;
  });
});
