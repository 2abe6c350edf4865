import { constants } from 'node:crypto';
import { createServer as createHttpServer, type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Server as TlsServer } from 'node:tls';
import { originAllowed, type OriginRule } from '@bloom/config';
import type { Log } from '@bloom/log';
import { acceptProxied, networkOf, TrustedProxies, type Upgrade } from '@bloom/net';
import { type Clock, LogThrottle } from '@bloom/time';
import type { HttpApi } from './app.js';
import { Connections } from './connections.js';
import { foreignCaller } from './public-token.js';
import { type RelayHandler, sharePort } from './shared-port.js';

/** Longer than load balancers and SDKs keep idle connections, so that the server does not close first. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/** Limit for a request's whole header, or the TLS handshake before it. */
const HEADERS_TIMEOUT_MS = 10_000;
/** Limit for a request with its body. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Limit for a client that reads nothing of its response, longer than any request has to wait for one. */
const STALLED_MS = 60_000;
/** Time for a client to close a refused connection. */
const LINGER_MS = 1_000;
const DEFAULT_HEADER_SIZE = 16 * 1024;
const TIME_LIMITS = {
  keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
  headersTimeout: HEADERS_TIMEOUT_MS,
  requestTimeout: REQUEST_TIMEOUT_MS,
  connectionsCheckingInterval: 1_000,
} as const;

/** A client that disappears is not a fault. */
const ignore = (): void => undefined;

/** Takes over a websocket. Returns false to have it refused with 503. */
export type UpgradeHandler = (upgrade: Upgrade) => boolean;

export interface HttpListenerOptions {
  handler: HttpApi;
  /** Websocket handlers by path, e.g. `/socket/peer/websocket`. */
  upgrades: Readonly<Record<string, UpgradeHandler>>;
  ip: string;
  /** 0 = any free port. */
  port: number;
  /** PEM; null = plain HTTP. */
  tls: { key: Buffer; cert: Buffer } | null;
  checkOrigin: OriginRule;
  /** `JF_HOST` */
  publicHost: string;
  /** Websocket paths that accept the public token and are therefore, like the API, closed to foreign pages. */
  publicToken?: ReadonlySet<string>;
  /** Websocket paths that pages of any origin may open, since they authenticate with their own token. */
  anyOrigin?: ReadonlySet<string>;
  /** Limit for the header of a request, bytes. Default: 16 KiB. */
  maxHeaderSize?: number;
  log: Log;
  /** `JF_TRUSTED_PROXIES`. Default: none. */
  trusted?: TrustedProxies;
  /** `JF_PROXY_PROTOCOL`. Default: false. */
  proxyProtocol?: boolean;
  /** Serves clients of TURN over TLS that share the HTTPS port. Absent: the port is for HTTP alone. */
  relay?: RelayHandler;
  /** Connections of all kinds. */
  maxConnections?: number;
  /** Tells the age of connections. Default: the system's clock. */
  clock?: Clock;
  /** Time after which a connection with a request is closed if no bytes move on it. */
  stalledMs?: number;
  /** Time for a client of a shared port to send the first bytes after the TLS handshake. */
  firstBytesMs?: number;
}

export interface HttpListener {
  /** The bound port. */
  readonly port: number;
  /** `http(s)://<ip>:<port>` */
  readonly url: string;
  /** Changes the certificate for new connections. No effect on a plain listener. */
  setTls(tls: { key: Buffer; cert: Buffer }): void;
  /** Gives responses in progress `graceMs` to finish, then ends every connection, including websockets. Idempotent. */
  close(options?: { graceMs?: number }): Promise<void>;
}

/** The HTTP listener cannot be opened. */
export class HttpListenError extends Error {
  readonly code = 'HTTP_LISTEN_FAILED';

  constructor(ip: string, port: number, cause: Error) {
    super(`the HTTP listener cannot bind ${ip}:${port} (JF_IP, JF_PORT): ${cause.message}`, { cause });
    this.name = 'HttpListenError';
  }
}

/**
 * Serves the API and the websockets on one port, HTTP or HTTPS.
 * @throws HttpListenError when the address or port is not available
 */
export async function openHttpListener(options: HttpListenerOptions): Promise<HttpListener> {
  const { handler, tls, ip, port, maxHeaderSize = DEFAULT_HEADER_SIZE } = options;
  const limits = { ...TIME_LIMITS, maxHeaderSize };
  const server =
    tls === null
      ? createHttpServer(limits)
      : createHttpsServer({ ...secureOptions(options, tls), ...limits, handshakeTimeout: HEADERS_TIMEOUT_MS });
  server.timeout = options.stalledMs ?? STALLED_MS;
  const connections = new Connections(server, options.log, {
    limit: options.maxConnections,
    clock: options.clock,
    trusted: options.trusted,
  });
  acceptConnections(server, connections, options);
  if (options.relay !== undefined && tls !== null) {
    sharePort(server, { connections, relay: options.relay, firstBytesMs: options.firstBytesMs });
  }
  server.on('request', (request, response) => {
    const client = {
      authenticated: () => connections.authenticated(request),
      admit: () => connections.admitStranger(request),
      network: () => networkOf(connections.clientOf(request)),
    };
    const begin = (): void => {
      if (!request.socket.destroyed) handler(request, response, client);
    };
    // A pipelined request waits for its turn and holds no resources until then. If the connection is lost, Node ends
    // only the response in progress; files of later ones would stay open.
    if (response.socket === null) response.once('socket', begin);
    else begin();
  });
  answerBrokenRequests(server, connections);
  const originsRefused = new LogThrottle();
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    connections.served(request.socket);
    // Node no longer handles errors of the socket. Remove the handler first, because a connection may repeat its offer
    // with each request.
    socket.off('error', ignore).on('error', ignore);
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
      // Node no longer notices when a client does not read an earlier response.
      const stalled = (): void => void socket.destroy();
      socket.once('timeout', stalled);
      // A second parser on the connection must not interleave its responses with those of the first.
      connections.whenAnswered(socket, () => {
        socket.off('timeout', stalled);
        if (!socket.destroyed) serveWithoutUpgrade(server, { request, socket, head, secure: tls !== null });
      });
      return;
    }
    upgrade({ ...options, originsRefused }, { request, socket, head, address: connections.clientOf(request) });
  });
  await listen(server, ip, port);

  const bound = server.address() as AddressInfo;
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  let closed: Promise<void> | undefined;

  return {
    port: bound.port,
    url: `${tls === null ? 'http' : 'https'}://${host}:${bound.port}`,
    setTls: (changed) => {
      if (server instanceof TlsServer) server.setSecureContext(secureOptions(options, changed));
    },
    close: ({ graceMs = 0 } = {}) => {
      closed ??= close(server, connections, graceMs);
      return closed;
    },
  };
}

/** Protocols that a client may name in its TLS hello (ALPN): RFC 9112, and RFC 7443 and RFC 8833 for TURN. */
const HTTP_ALPN = ['http/1.1'];
const SHARED_ALPN = [...HTTP_ALPN, 'stun.turn', 'webrtc', 'c-webrtc'];

/** Refuses renegotiation (TLS 1.2), which costs this thread a signature each time. */
function secureOptions({ relay }: HttpListenerOptions, { key, cert }: { key: Buffer; cert: Buffer }) {
  const ALPNProtocols = relay === undefined ? HTTP_ALPN : SHARED_ALPN;

  return { key, cert, ALPNProtocols, secureOptions: constants.SSL_OP_NO_RENEGOTIATION };
}

/** Counts new connections. If a PROXY header is required, reads it before anything else. */
function acceptConnections(server: Server, connections: Connections, options: HttpListenerOptions): void {
  const { trusted = new TrustedProxies(), proxyProtocol = false, log } = options;
  if (!proxyProtocol) {
    server.prependListener('connection', (socket: Socket) => connections.add(socket));
    return;
  }
  const throttle = new LogThrottle();
  const serve = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  const accepted = new WeakSet<Socket>();
  const proceed = (socket: Socket): void => {
    for (const listener of serve) listener.call(server, socket);
  };
  server.on('connection', (socket: Socket) => {
    // A request that is parsed again.
    if (accepted.has(socket)) {
      proceed(socket);
      return;
    }
    acceptProxied(socket, {
      trusted,
      accept: (_socket, client) => {
        accepted.add(socket);
        connections.add(socket, client);
        if (!socket.destroyed) proceed(socket);
      },
      onRefused: (address, reason) => {
        if (throttle.allows(networkOf(address))) log.warn('http.proxy_refused', { address, reason });
      },
    });
  });
}

function upgrade(options: HttpListenerOptions & { originsRefused: LogThrottle }, upgraded: Upgrade): void {
  const { request, socket, address } = upgraded;
  // A proxy may send the whole URL (RFC 9112, section 3.2.2).
  const target = (request.url ?? '').replace(/^https?:\/\/[^/?]*/i, '');
  // Fishjam's JavaScript SDK appends the path to an address that ends in a slash.
  const path =
    target
      .split('?', 1)[0]
      ?.replace(/^\/\//, '/')
      .replace(/(?<=.)\/$/, '') ?? '';
  const handler = Object.hasOwn(options.upgrades, path) ? options.upgrades[path] : undefined;
  if (handler === undefined) {
    refuse(socket, 404);
    return;
  }

  const { origin, host } = request.headers;
  const secure = options.tls !== null;
  const isAny = options.anyOrigin?.has(path) === true;
  const isForeign = options.publicToken?.has(path) === true && foreignCaller(request, options) !== undefined;
  const isAllowed =
    isAny || originAllowed(options.checkOrigin, { origin, host, secure, publicHost: options.publicHost });
  if (isForeign || !isAllowed) {
    if (options.originsRefused.allows(networkOf(address))) {
      options.log.warn('websocket.origin_refused', { path, origin, address, checkOrigin: options.checkOrigin.kind });
    }
    refuse(socket, 403);
    return;
  }

  if (!handler(upgraded)) refuse(socket, 503);
}

/**
 * Ignores an offer of another protocol (RFC 9110, section 7.8), such as the `h2c` of some clients. Node has detached
 * its parser by now, so the request is parsed again, without the offer.
 */
function serveWithoutUpgrade(
  server: Server,
  { request, socket, head, secure }: { request: IncomingMessage; socket: Duplex; head: Buffer; secure: boolean },
): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at], rawHeaders[at + 1]];
    if (!/^(upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${value}`);
  }
  if (/\bclose\b/i.test(request.headers.connection ?? '')) lines.push('connection: close');

  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit(secure ? 'secureConnection' : 'connection', socket);
}

/** Answers requests that are not HTTP in a form that SDKs can read. */
function answerBrokenRequests(server: Server, connections: Connections): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // A response in the middle of another one would be read as part of it.
    if (!socket.writable || error.code === 'ECONNRESET' || connections.isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const status = BROKEN_REQUESTS.get(error.code ?? '') ?? 400;
    answerAndClose(socket, status, { errors: STATUS_CODES[status] });
  });
}

const BROKEN_REQUESTS: ReadonlyMap<string, number> = new Map([
  ['HPE_HEADER_OVERFLOW', 431],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 413],
  ['ERR_HTTP_REQUEST_TIMEOUT', 408],
]);

function refuse(socket: Duplex, status: 403 | 404 | 503): void {
  answerAndClose(socket, status, { errors: { detail: STATUS_CODES[status] } });
}

function answerAndClose(socket: Duplex, status: number, answer: unknown): void {
  const body = JSON.stringify(answer);

  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `access-control-allow-origin: *\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  );
  // Node leaves the other half open for as long as the client likes. Do not close it immediately: unread bytes would
  // cost the answer.
  const overdue = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(overdue)).resume();
}

function listen(server: Server, ip: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: Error) => reject(new HttpListenError(ip, port, cause));

    server.once('error', failed);
    server.listen({ host: ip, port }, () => {
      server.off('error', failed);
      resolve();
    });
  });
}

function close(server: Server, connections: Connections, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const overdue = setTimeout(() => connections.destroy(), graceMs);

    server.close(() => {
      clearTimeout(overdue);
      resolve();
    });
    server.closeIdleConnections();
  });
}
