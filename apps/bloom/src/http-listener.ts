/** One listener for everything over HTTP: the API, the page and the upgrades to websockets. */
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { HttpSettings } from '@bloom/config';
import { originAllowed } from '@bloom/config';
import type { Log } from '@bloom/log';

export class ListenError extends Error {
  override readonly name = 'ListenError';
  readonly code = 'HTTP_LISTEN_FAILED';
  constructor(ip: string, port: number, cause: Error) {
    super(`the HTTP listener cannot bind ${ip}:${port} (JF_IP, JF_PORT): ${cause.message}`, { cause });
  }
}

/** Takes over an upgraded connection. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

export interface HttpListenerOptions {
  settings: HttpSettings;
  app: RequestListener;
  /** By path, without a trailing slash. */
  upgrades: Readonly<Record<string, UpgradeHandler>>;
  log: Log;
}

export interface HttpListener {
  readonly port: number;
  readonly url: string;
  /** No new connections; resolves when the last one has ended or `graceMs` have passed. */
  close(graceMs?: number): Promise<void>;
}

/** @throws ListenError when the address or port is not to be had. */
export async function startHttpListener({ settings, app, upgrades, log }: HttpListenerOptions): Promise<HttpListener> {
  const server: Server = settings.tls ? createHttpsServer({ ...settings.tls }, app) : createHttpServer(app);
  // Longer than the usual load balancer's, so that it is never we who close a connection under a request.
  server.keepAliveTimeout = 75_000;
  server.headersTimeout = 80_000;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Until somebody takes the connection over, a reset must not end the process.
    socket.on('error', () => socket.destroy());
    const path = (request.url ?? '').split('?', 1)[0]?.replace(/\/$/, '') ?? '';
    const handler = Object.hasOwn(upgrades, path) ? upgrades[path] : undefined;
    if (!handler) return refuse(socket, '404 Not Found');
    const origin = request.headers.origin;
    const allowed = originAllowed(settings.checkOrigin, {
      origin,
      host: request.headers.host,
      secure: settings.tls !== null,
      publicHost: settings.host,
    });
    if (!allowed) {
      log.warn('http.origin_refused', { origin, path, hint: 'JF_CHECK_ORIGIN says which pages may connect' });
      return refuse(socket, '403 Forbidden');
    }
    handler(request, socket, head);
  });
  await new Promise<void>((done, failed) => {
    server.once('error', (cause) => failed(new ListenError(settings.ip, settings.port, cause)));
    server.listen(settings.port, settings.ip, done);
  });
  const { port } = server.address() as AddressInfo;
  const host = settings.ip.includes(':') ? `[${settings.ip}]` : settings.ip;

  return {
    port,
    url: `${settings.tls ? 'https' : 'http'}://${host}:${port}`,
    async close(graceMs = 1000) {
      const closed = new Promise<void>((done) => server.close(() => done()));
      server.closeIdleConnections();
      const force = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await closed;
      clearTimeout(force);
      // Upgraded connections are no longer the server's.
      for (const socket of sockets) socket.destroy();
    },
  };
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
