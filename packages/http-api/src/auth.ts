import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PUBLIC_API_TOKEN } from '@bloom/config';
import { HttpError } from './errors.js';
import { foreignCaller, type PublicTokenRule } from './public-token.js';

/** Concurrent requests of one peer; each of them holds a connection and memory for its body. */
export const MAX_REQUESTS_PER_PEER = 32;
const NAME = 'authorization';
/** The scheme is case-insensitive (RFC 9110, section 11.1). */
const SCHEME = /^Bearer /i;

/**
 * Accepts a request with exactly one `Authorization: Bearer <token>` header. While the token is the public default,
 * refuses requests of foreign pages.
 * @throws HttpError 401 and 403 for others
 */
export function createAuthenticator(token: string, rule?: PublicTokenRule): (request: IncomingMessage) => void {
  const expected = Buffer.from(token);
  // The duration reveals at most the token's length.
  const isToken = (given: Buffer): boolean => given.length === expected.length && timingSafeEqual(given, expected);

  return (request) => {
    const given = bearerToken(request);
    // Node decodes each byte as one character. Beyond ASCII most clients send UTF-8, and browsers Latin-1 where
    // possible.
    if (!isToken(Buffer.from(given, 'latin1')) && !isToken(Buffer.from(given)))
      throw new HttpError(401, 'Invalid token');
    if (rule === undefined || token !== PUBLIC_API_TOKEN) return;
    const reason = foreignCaller(request, rule);
    if (reason !== undefined) throw new HttpError(403, reason);
  };
}

/**
 * Accepts requests with the token of a peer, up to `MAX_REQUESTS_PER_PEER` per peer at a time.
 * @param peerOf reads the token
 * @throws HttpError 401 and 429 for others
 */
export function createPeerAuthenticator(
  peerOf: (token: string) => { roomId: string; peerId: string },
): (request: IncomingMessage, response: ServerResponse) => void {
  const inProgress = new Map<string, number>();

  return (request, response) => {
    const { roomId, peerId } = peerOf(bearerToken(request));
    const key = `${roomId} ${peerId}`;
    const count = inProgress.get(key) ?? 0;
    if (count >= MAX_REQUESTS_PER_PEER) {
      throw new HttpError(429, `The peer has ${MAX_REQUESTS_PER_PEER} requests in progress`);
    }
    inProgress.set(key, count + 1);
    response.once('close', () => {
      const left = (inProgress.get(key) ?? 1) - 1;
      if (left === 0) inProgress.delete(key);
      else inProgress.set(key, left);
    });
  };
}

/**
 * Returns the token of a request with exactly one `Authorization: Bearer <token>` header.
 * @throws HttpError 401 for others
 */
export function bearerToken(request: IncomingMessage): string {
  const header = request.headers.authorization;
  if (header === undefined || !SCHEME.test(header) || isRepeated(request.rawHeaders)) {
    throw new HttpError(401, 'Missing token: exactly one header "Authorization: Bearer <token>" is required');
  }

  return header.slice('Bearer '.length);
}

/** Returns whether the header is repeated; Node reports only the first. */
function isRepeated(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === NAME.length && name.toLowerCase() === NAME) count += 1;
  }

  return count > 1;
}
