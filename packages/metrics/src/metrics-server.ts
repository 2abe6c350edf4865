import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { ConnectionShares } from '@bloom/net';
import { type Clock, systemClock } from '@bloom/time';
import type { Metrics } from './metrics.js';
import { Scrapes } from './scrapes.js';

/** Prometheus needs one connection; idle ones cost little. */
const MAX_CONNECTIONS = 1_024;
const MAX_PER_NETWORK = 512;
/**
 * Age from which a newer connection may replace one: a scrape takes milliseconds and a few round trips. Even a flood of
 * 512 connections per second from the same network locks no scraper out.
 */
const GRACE_MS = 1_000;
/** Time limit for a whole request. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Time limit for a client that stops reading its response; longer than any scrape has to wait for its turn. */
const STALLED_MS = 60_000;

export interface MetricsServerOptions {
  metrics: Metrics;
  ip: string;
  /** 0 for any free port. */
  port: number;
  clock?: Clock;
}

export interface MetricsServer {
  /** The bound port. */
  readonly port: number;
  /** `http://<ip>:<port>` */
  readonly url: string;
  close(): Promise<void>;
}

/** The listener for `GET /metrics` could not be opened. */
export class MetricsListenError extends Error {
  readonly code = 'METRICS_LISTEN_FAILED';

  constructor(ip: string, port: number, cause: Error) {
    super(`the metrics listener cannot bind ${ip}:${port} (JF_METRICS_IP, JF_METRICS_PORT): ${cause.message}`, {
      cause,
    });
    this.name = 'MetricsListenError';
  }
}

/**
 * Serves `GET /metrics` over plain HTTP without authorization, and nothing else.
 * @throws MetricsListenError when the address or port is not available
 */
export async function openMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const { metrics, ip, port, clock = systemClock } = options;
  const scrapes = new Scrapes(() => metrics.expose());
  const server = createServer({ headersTimeout: REQUEST_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS });
  server.timeout = STALLED_MS;
  boundConnections(server, clock);
  const answering = new WeakSet<Socket>();
  server.on('request', (request, response) => {
    const { socket } = request;
    // Only an attacker pipelines requests: a single read of 64 KiB can contain thousands of them.
    if (answering.has(socket)) socket.destroy();
    if (socket.destroyed) return;
    answering.add(socket);
    response.once('close', () => answering.delete(socket));
    const path = request.url?.split('?', 1)[0];
    const known = path === '/metrics' || path === '/metrics/';

    if (!known || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('Not Found\n');
      return;
    }

    scrapes.take().then(
      (text) => response.writeHead(200, { 'content-type': metrics.contentType }).end(text),
      () => response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end('Internal Server Error\n'),
    );
  });

  await listen(server, ip, port);
  const bound = server.address() as AddressInfo;
  const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;

  return {
    port: bound.port,
    url: `http://${host}:${bound.port}`,
    close: () => closeServer(server),
  };
}

function boundConnections(server: Server, clock: Clock): void {
  const shares = new ConnectionShares<Socket>({
    max: MAX_CONNECTIONS,
    maxPerNetwork: MAX_PER_NETWORK,
    graceMs: GRACE_MS,
    now: () => clock.now(),
    drop: (socket) => socket.destroy(),
  });
  server.on('connection', (socket: Socket) => {
    if (!shares.add(socket, socket.remoteAddress ?? '')) {
      socket.destroy();
      return;
    }
    socket.once('close', () => shares.delete(socket));
  });
}

function listen(server: Server, ip: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(new MetricsListenError(ip, port, cause)));
    server.listen({ host: ip, port }, () => resolve());
  });
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // Closing a server twice calls back with an error that only means it is already closed.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
