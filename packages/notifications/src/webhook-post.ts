import { type IncomingMessage, type OutgoingHttpHeaders, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { openAgents, type Names, type RacingAgents } from '@bloom/discovery';
import type { Clock } from '@bloom/time';

/** A webhook was not accepted: the status was not 2xx, the connection failed, or no answer came in time. */
export class WebhookError extends Error {
  readonly code = 'WEBHOOK_FAILED';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'WebhookError';
  }
}

/**
 * Posts one event.
 * @throws WebhookError, or the abort reason of the signal
 */
export type PostWebhook = (url: string, body: Uint8Array, signal: AbortSignal) => Promise<void>;

export interface WebhookPoster {
  readonly post: PostWebhook;
  close(): void;
}

export interface WebhookPosterOptions {
  /** Milliseconds from sending the request to receiving the status. */
  timeoutMs: number;
  /** Returns the headers of a request with this body. */
  headers: (body: Uint8Array) => OutgoingHttpHeaders | Promise<OutgoingHttpHeaders>;
  clock: Clock;
  /** Finds the receivers; default: as the system resolves names. */
  resolver?: Names;
}

/**
 * Returns a function that posts over keep-alive connections, without following redirects or reading response bodies.
 */
export function openWebhookPoster({ timeoutMs, headers, clock, resolver }: WebhookPosterOptions): WebhookPoster {
  const agents = openAgents({ keepAlive: true }, resolver);
  const fresh = openAgents({ keepAlive: false }, resolver);

  async function post(url: string, body: Uint8Array, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    // Not AbortSignal.any: each use leaks memory on a signal that lives as long as the server.
    const ended = new AbortController();
    let late = false;
    const overdue = clock.setTimeout(() => {
      late = true;
      ended.abort();
    }, timeoutMs);
    const end = (): void => ended.abort();
    signal.addEventListener('abort', end, { once: true });

    try {
      const sent = { ...(await headers(body)), 'content-length': body.byteLength };
      await attempt({ url: new URL(url), body, headers: sent, agents, fresh, signal: ended.signal, clock });
    } catch (error) {
      signal.throwIfAborted();
      if (late) throw new WebhookError(`no answer within ${timeoutMs} ms`);
      throw error;
    } finally {
      clock.clearTimeout(overdue);
      signal.removeEventListener('abort', end);
    }
  }

  return {
    post,
    close: () => {
      agents.destroy();
      fresh.destroy();
    },
  };
}

interface Attempt {
  url: URL;
  body: Uint8Array;
  headers: OutgoingHttpHeaders;
  agents: RacingAgents;
  /** Without a pool, whose other connections may be stale too. */
  fresh: RacingAgents;
  signal: AbortSignal;
  clock: Clock;
}

async function attempt(request: Attempt): Promise<void> {
  const first = await send(request);
  const outcome = first === 'stale connection' ? await send({ ...request, agents: request.fresh }) : first;

  if (outcome === 'stale connection') throw new WebhookError('the connection was reset');
  if (outcome < 200 || outcome > 299) throw new WebhookError(`status ${outcome}`);
}

/**
 * Returns the response status. If the receiver closed a keep-alive connection just as the request was sent, it has not
 * read the event, which is therefore sent again on a new connection.
 */
function send(request: Omit<Attempt, 'fresh'>): Promise<number | 'stale connection'> {
  const { url, body, headers, agents, signal, clock } = request;
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, signal, ended: signal };
    const outgoing =
      url.protocol === 'https:'
        ? httpsRequest(url, { ...options, agent: agents.https })
        : httpRequest(url, { ...options, agent: agents.http });

    // A request that waits for its connection, or for its receiver's name, reports an abort only afterwards.
    signal.addEventListener('abort', () => reject(new WebhookError('the request was aborted')), { once: true });
    outgoing.on('response', (response) => {
      drain(response, clock);
      resolve(response.statusCode ?? 0);
    });
    outgoing.on('error', (cause: NodeJS.ErrnoException) => {
      if (outgoing.reusedSocket && cause.code === 'ECONNRESET' && !signal.aborted) resolve('stale connection');
      else reject(new WebhookError(cause.message, { cause }));
    });
    // A response that switches protocols emits neither event.
    outgoing.on('close', () => reject(new WebhookError('the connection ended without a response')));
    outgoing.end(body);
  });
}

const MAX_RESPONSE_BYTES = 64 * 1024;
const DRAIN_TIMEOUT_MS = 1_000;

/** Reads a short response so that the connection can be reused. A long or slow one ends the connection. */
function drain(response: IncomingMessage, clock: Clock): void {
  const overdue = clock.setTimeout(() => response.destroy(), DRAIN_TIMEOUT_MS);
  let received = 0;

  response.on('error', () => undefined);
  response.on('close', () => clock.clearTimeout(overdue));
  response.on('data', (chunk: Buffer) => {
    received += chunk.byteLength;
    if (received > MAX_RESPONSE_BYTES) response.destroy();
  });
}
