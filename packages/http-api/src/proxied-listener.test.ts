import { once } from 'node:events';
import { connect as tcpConnect } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createLogger, silentLog } from '@bloom/log';
import { TrustedProxies } from '@bloom/net';
import { type HttpListener, type HttpListenerOptions, openHttpListener } from './listener.js';
import { CERT, KEY } from './testing/certificate.js';

const PATH = '/socket/peer/websocket';
const asked = `GET ${PATH} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
const proxyOptions = { trusted: new TrustedProxies(['127.0.0.1']), proxyProtocol: true };
let listener: HttpListener | undefined;
/** Client addresses, as passed to the websockets. */
const seen: string[] = [];

async function start(options: Partial<HttpListenerOptions>): Promise<void> {
  listener = await openHttpListener({
    handler: (request, response) => response.end(`hello ${request.url}`),
    upgrades: {
      [PATH]: ({ socket, address }) => {
        seen.push(address);
        socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n');
        return true;
      },
    },
    ip: '127.0.0.1',
    port: 0,
    tls: null,
    checkOrigin: { kind: 'any' },
    publicHost: 'example.com',
    log: silentLog,
    ...options,
  });
}

beforeEach(() => void seen.splice(0));
afterEach(async () => {
  await listener?.close();
  listener = undefined;
});

/** Sends bytes, and resolves with everything received until the connection ends. */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = tcpConnect(listener?.port ?? 0, '127.0.0.1');
    socket.on('data', (chunk: Buffer) => void (text += chunk.toString('latin1'))).on('error', () => undefined);
    socket.once('close', () => resolve(text));
    socket.write(bytes);
  });
}

describe('the address of a client', () => {
  test('uses the address that a trusted proxy saw', async () => {
    await start({ trusted: new TrustedProxies(['127.0.0.1']) });
    await raw(asked.replace('\r\n', '\r\nX-Forwarded-For: 198.51.100.1, 203.0.113.1\r\n'));
    expect(seen).toEqual(['203.0.113.1']);
  });

  test('uses the address of the connection if a stranger sends the header', async () => {
    await start({ trusted: new TrustedProxies(['10.0.0.0/8']) });
    await raw(asked.replace('\r\n', '\r\nX-Forwarded-For: 203.0.113.1\r\n'));
    expect(seen).toEqual(['127.0.0.1']);
  });

  test('uses the address in the PROXY header', async () => {
    await start(proxyOptions);
    await raw(`PROXY TCP4 203.0.113.1 192.0.2.1 4711 443\r\n${asked}`);
    expect(seen).toEqual(['203.0.113.1']);
  });

  test('reads the PROXY header byte by byte, even before TLS', async () => {
    await start({ ...proxyOptions, tls: { key: Buffer.from(KEY), cert: Buffer.from(CERT) } });
    const socket = tcpConnect({ port: listener?.port ?? 0, host: '127.0.0.1', noDelay: true });
    for (const byte of Buffer.from('PROXY TCP6 2001:db8::1 2001:db8::2 4711 443\r\n')) {
      socket.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    const tls = tlsConnect({ socket, ca: CERT, servername: 'localhost' });
    tls.resume().write(asked);
    await once(tls, 'close');
    expect(seen).toEqual(['2001:db8::1']);
  });

  test("still knows the client's address when a request is parsed a second time", async () => {
    await start(proxyOptions);
    const h2c = 'GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n';
    expect(await raw(`PROXY TCP4 203.0.113.1 192.0.2.1 4711 443\r\n${h2c}${asked}`)).toContain('hello /a');
    expect(seen).toEqual(['203.0.113.1']);
  });

  test.each([
    ['without the header', proxyOptions.trusted, asked],
    ['from an untrusted address', new TrustedProxies(['10.0.0.1']), `PROXY UNKNOWN\r\n${asked}`],
  ])('closes a connection %s with JF_PROXY_PROTOCOL, with one log line', async (_what, trusted, text) => {
    const log = createLogger({ sink: () => undefined });
    await start({ ...proxyOptions, trusted, log });
    for (let i = 0; i < 3; i++) expect(await raw(text)).toBe('');
    expect(seen).toEqual([]);
    expect(log.recent.last().map(({ event }) => event)).toEqual(['http.proxy_refused']);
  });

  test('treats the header as garbage without JF_PROXY_PROTOCOL', async () => {
    await start({ ...proxyOptions, proxyProtocol: false });
    expect(await raw(`PROXY TCP4 203.0.113.1 192.0.2.1 4711 443\r\n${asked}`)).toContain('400 Bad Request');
  });
});
