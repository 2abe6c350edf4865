import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Metrics } from './metrics.js';

export interface MetricsServerOptions {
  metrics: Metrics;
  ip: string;
  /** 0 = any free port. */
  port: number;
}

export interface MetricsServer {
  /** The port bound. */
  readonly port: number;
  /** `http://<ip>:<port>` */
  readonly url: string;
  close(): Promise<void>;
}

/** The listener for `GET /metrics` cannot be opened. */
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
 * Serves `GET /metrics` in plain HTTP without authorization, and nothing else.
 * @throws MetricsListenError when the address or port is not available
 */
export async function startMetricsServer({ metrics, ip, port }: MetricsServerOptions): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0];
    const known = path === '/metrics' || path === '/metrics/';

    if (!known || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('Not Found\n');
      return;
    }

    metrics.expose().then(
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

function listen(server: Server, ip: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(new MetricsListenError(ip, port, cause)));
    server.listen({ host: ip, port }, () => resolve());
  });
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // Closing a server twice calls back with an error that only means that it is closed.
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
