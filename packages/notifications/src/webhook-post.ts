import { createHmac } from 'node:crypto';
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
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

export interface WebhookPosterOptions {
  /** Milliseconds from sending the request to receiving the status. */
  timeoutMs: number;
  /** Signs each body unless null. */
  secret: string | null;
  clock: Pick<Clock, 'wall'>;
}

/**
 * Returns the signatures of a request sent at `wallMs`: one of the body alone, and one of `<Unix seconds>.<body>`,
 * which lets a receiver recognise a replayed request.
 */
function signatures(secret: string, body: Uint8Array, wallMs: number): Record<string, string> {
  const seconds = Math.floor(wallMs / 1_000);
  const plain = createHmac('sha256', secret).update(body).digest('hex');
  const timed = createHmac('sha256', secret).update(`${seconds}.`).update(body).digest('hex');

  return { 'x-bloom-signature': `sha256=${plain}`, 'x-bloom-timed-signature': `t=${seconds},sha256=${timed}` };
}

/**
 * Returns a function that posts over keep-alive connections, without following redirects or reading response bodies.
 */
export function createWebhookPoster({ timeoutMs, secret, clock }: WebhookPosterOptions): {
  post: PostWebhook;
  close: () => void;
} {
  const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };

  async function post(url: string, body: Uint8Array, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    // Not AbortSignal.any: each use leaks memory on a signal that lives as long as the server.
    const ended = new AbortController();
    let late = false;
    const overdue = setTimeout(() => {
      late = true;
      ended.abort();
    }, timeoutMs);
    const end = (): void => ended.abort();
    signal.addEventListener('abort', end, { once: true });
    const headers = {
      'content-type': 'application/x-protobuf',
      'content-length': body.byteLength,
      ...(secret === null ? {} : signatures(secret, body, clock.wall())),
    };

    try {
      await attempt({ url: new URL(url), body, headers, agents, signal: ended.signal });
    } catch (error) {
      signal.throwIfAborted();
      if (late) throw new WebhookError(`no answer within ${timeoutMs} ms`);
      throw error;
    } finally {
      clearTimeout(overdue);
      signal.removeEventListener('abort', end);
    }
  }

  return {
    post,
    close: () => {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

interface Attempt {
  url: URL;
  body: Uint8Array;
  headers: Record<string, string | number>;
  agents: { http: HttpAgent; https: HttpsAgent };
  signal: AbortSignal;
}

async function attempt(request: Attempt): Promise<void> {
  const first = await send(request);
  const outcome = first === 'stale connection' ? await send(request) : first;

  if (outcome === 'stale connection') throw new WebhookError('the connection was reset');
  if (outcome < 200 || outcome > 299) throw new WebhookError(`status ${outcome}`);
}

/**
 * Returns the response status. If the receiver closed a keep-alive connection just as the request was sent, it has not
 * read the event, which is therefore sent again on a new connection.
 */
function send({ url, body, headers, agents, signal }: Attempt): Promise<number | 'stale connection'> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, signal };
    const outgoing =
      url.protocol === 'https:'
        ? httpsRequest(url, { ...options, agent: agents.https })
        : httpRequest(url, { ...options, agent: agents.http });

    outgoing.on('response', (answer) => {
      drain(answer);
      resolve(answer.statusCode ?? 0);
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

const MAX_ANSWER_BYTES = 64 * 1024;
const DRAIN_TIMEOUT_MS = 1_000;

/** Reads a short response so that the connection can be reused. A long or slow one ends the connection. */
function drain(answer: IncomingMessage): void {
  const overdue = setTimeout(() => answer.destroy(), DRAIN_TIMEOUT_MS);
  let received = 0;

  overdue.unref();
  answer.on('error', () => undefined);
  answer.on('close', () => clearTimeout(overdue));
  answer.on('data', (chunk: Buffer) => {
    received += chunk.byteLength;
    if (received > MAX_ANSWER_BYTES) answer.destroy();
  });
}
