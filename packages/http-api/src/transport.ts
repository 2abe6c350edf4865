import { randomFillSync } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Log } from '@bloom/log';
import type { Metrics } from '@bloom/metrics';
import type { RequestHandler } from 'express';
import { withoutTokens } from './path-token.js';

const CORS_METHODS = 'GET, POST, PUT, PATCH, DELETE, OPTIONS';
const CORS_HEADERS =
  'Authorization, Content-Type, Accept, Origin, User-Agent, Cache-Control, Range, X-Requested-With, X-Request-Id, If-Modified-Since, Keep-Alive, DNT';
/** WHIP and WHEP. */
const SESSION_PATH = /^\/wh[ie]p(?:\/|$)/;
/** Seconds that a browser may cache the answer to a preflight. */
const CORS_MAX_AGE = '1728000';

/** Returns the id of a request: the client's if it has 20 to 200 characters, else a new one. */
function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];

  return typeof given === 'string' && given.length >= 20 && given.length <= 200 ? given : newId();
}

const ID_BYTES = 10;
/** Random bytes for many ids, because fetching them per id would cost more than the rest of a small response. */
const entropy = Buffer.alloc(ID_BYTES * 128);
let entropyAt = entropy.length;

function newId(): string {
  if (entropyAt === entropy.length) {
    randomFillSync(entropy);
    entropyAt = 0;
  }
  entropyAt += ID_BYTES;

  // Not base64url: an id that starts with a dash would be an option to `bloomctl path`.
  return entropy.toString('hex', entropyAt - ID_BYTES, entropyAt);
}

/** Lets any page call the API with the token: CORS on every response, and responses to OPTIONS on any path. */
export const cors: RequestHandler = (request, response, next) => {
  response.setHeader('access-control-allow-origin', '*');
  if (request.method !== 'OPTIONS') {
    next();
    return;
  }

  response.setHeader('access-control-allow-methods', CORS_METHODS);
  const isSession = SESSION_PATH.test(pathOf(request));
  response.setHeader('access-control-allow-headers', isSession ? `${CORS_HEADERS}, If-Match` : CORS_HEADERS);
  if (isSession) response.setHeader('accept-post', 'application/sdp');
  response.setHeader('access-control-max-age', CORS_MAX_AGE);
  response.writeHead(204).end();
};

/** Gives each request an id and logs it at debug level. */
export function requestLog(log: Log): RequestHandler {
  return (request, response, next) => {
    const requestId = requestIdOf(request);
    const startedAt = performance.now();

    response.setHeader('x-request-id', requestId);
    response.locals['log'] = log.child({ requestId });
    response.once('close', () => {
      log.debug('http.request', {
        requestId,
        method: request.method,
        // Omit the query, where clients put tokens.
        path: pathOf(request),
        status: response.statusCode,
        ms: Math.round(performance.now() - startedAt),
      });
    });
    next();
  };
}

/** Returns the path without the query and without tokens, for the log. */
export function pathOf(request: IncomingMessage): string {
  return withoutTokens((request.url ?? '').split('?', 1)[0] ?? '');
}

/** Counts the socket's bytes since its last response, including headers. */
export function trafficCount(metrics: Pick<Metrics, 'httpReceived' | 'httpSent'>): RequestHandler {
  const counted = new WeakMap<Socket, { received: number; sent: number }>();

  return (request, response, next) => {
    const { socket } = request;

    response.once('close', () => {
      const before = counted.get(socket) ?? { received: 0, sent: 0 };
      const now = { received: socket.bytesRead, sent: socket.bytesWritten };

      counted.set(socket, now);
      metrics.httpReceived(Math.max(0, now.received - before.received));
      metrics.httpSent(Math.max(0, now.sent - before.sent));
    });
    next();
  };
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));

  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.byteLength,
  });
  response.end(body);
}
