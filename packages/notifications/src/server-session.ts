import { createHash, timingSafeEqual } from 'node:crypto';
import { decodeServerMessage, encodeServerMessage, ProtocolError, type SubscriptionType } from '@bloom/protocol';

/** Milliseconds between pings after authentication. */
const PING_INTERVAL_MS = 30_000;
/** Milliseconds of silence after which the connection is closed. */
const IDLE_TIMEOUT_MS = 60_000;
/** Maximum request size. The websocket closes with 1009 as soon as a frame announces more. */
export const MAX_REQUEST_BYTES = 64 * 1024;

export type SessionAction =
  | { type: 'send'; bytes: Uint8Array }
  | { type: 'subscribe'; eventType: SubscriptionType }
  | { type: 'ping' }
  | { type: 'close'; code: number; reason: string }
  /** The client is silent, so skip the closing handshake. */
  | { type: 'terminate' };

const AUTHENTICATED = encodeServerMessage({ type: 'authenticated' });
const NOT_ALLOWED: SessionAction = { type: 'close', code: 1003, reason: 'operation not allowed' };

/** Compares two tokens in constant time. */
function sameToken(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();

  return timingSafeEqual(digest(given), digest(expected));
}

/**
 * One server websocket, sans-IO (docs/reference/notifications.md, "Server websocket"): frames in, actions out, in
 * order. `now` is monotonic time in milliseconds.
 */
export class ServerSession {
  readonly #token: string;
  #authenticated = false;
  #closed = false;
  #heardAt: number;
  #pingedAt: number;

  constructor(token: string, now: number) {
    this.#token = token;
    this.#heardAt = now;
    this.#pingedAt = now;
  }

  get isAuthenticated(): boolean {
    return this.#authenticated;
  }

  text(now: number): SessionAction[] {
    this.#heardAt = now;

    return this.#close(NOT_ALLOWED);
  }

  binary(bytes: Uint8Array, now: number): SessionAction[] {
    if (this.#closed) return [];

    this.#heardAt = now;

    return this.#authenticated ? this.#request(bytes) : this.#authenticate(bytes, now);
  }

  pong(now: number): void {
    this.#heardAt = now;
  }

  /** Must be called about once a second. */
  tick(now: number): SessionAction[] {
    if (this.#closed) return [];
    if (now - this.#heardAt >= IDLE_TIMEOUT_MS) {
      this.#closed = true;
      return [{ type: 'terminate' }];
    }
    if (this.#authenticated && now - this.#pingedAt >= PING_INTERVAL_MS) {
      this.#pingedAt = now;
      return [{ type: 'ping' }];
    }

    return [];
  }

  #authenticate(bytes: Uint8Array, now: number): SessionAction[] {
    const message = decode(bytes);
    if (message?.type !== 'authRequest')
      return this.#close({ type: 'close', code: 1000, reason: 'invalid auth request' });
    if (!sameToken(message.token, this.#token))
      return this.#close({ type: 'close', code: 1000, reason: 'invalid token' });

    this.#authenticated = true;
    this.#pingedAt = now;

    return [{ type: 'send', bytes: AUTHENTICATED }];
  }

  #request(bytes: Uint8Array): SessionAction[] {
    const message = decode(bytes);
    if (message?.type !== 'subscribeRequest' || message.eventType === null) return this.#close(NOT_ALLOWED);

    // Respond first: clients treat the first frame after their request as the response.
    return [
      { type: 'send', bytes: encodeServerMessage({ type: 'subscribeResponse', eventType: message.eventType }) },
      { type: 'subscribe', eventType: message.eventType },
    ];
  }

  #close(action: SessionAction): SessionAction[] {
    if (this.#closed) return [];
    this.#closed = true;

    return [action];
  }
}

function decode(bytes: Uint8Array): ReturnType<typeof decodeServerMessage> | undefined {
  try {
    return decodeServerMessage(bytes, MAX_REQUEST_BYTES);
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  }
}
