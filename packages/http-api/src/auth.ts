import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { HttpError } from './errors.js';

const SCHEME = 'Bearer ';

/**
 * Lets a request with exactly one header `Authorization: Bearer <token>` pass.
 * @throws HttpError 401 otherwise.
 */
export function createAuthenticator(token: string): (request: IncomingMessage) => void {
  const expected = digest(token);

  return (request) => {
    const given = request.headersDistinct['authorization'] ?? [];
    const [header] = given;

    if (given.length !== 1 || header === undefined || !header.startsWith(SCHEME)) {
      throw new HttpError(401, 'Missing token: exactly one header "Authorization: Bearer <token>" is required');
    }
    // Equal lengths whatever was given, so that the comparison takes the same time.
    if (!timingSafeEqual(digest(header.slice(SCHEME.length)), expected)) throw new HttpError(401, 'Invalid token');
  };
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
