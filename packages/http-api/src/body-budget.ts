import type { IncomingMessage, ServerResponse } from 'node:http';
import { HttpError } from './errors.js';

/** Limit on the bytes of large bodies in memory at the same time. */
export const MAX_BODIES_BYTES = 64 * 1024 * 1024;
/** Smaller bodies are not counted: the number of connections bounds them, and large bodies do not lock them out. */
const SMALL_BYTES = 64 * 1024;

/** Limits the sum of the request bodies that are being received or handled. */
export class BodyBudget {
  #bytes = 0;

  /**
   * Counts a request's body until its response has closed. A compressed body counts as `limit`, the most bytes that its
   * route reads; a body of unknown length counts as what has arrived.
   * @throws HttpError 503 if there is no room for it
   */
  admit(request: IncomingMessage, response: ServerResponse, limit: number): void {
    let taken = 0;
    const take = (bytes: number): boolean => {
      if (this.#bytes + bytes > MAX_BODIES_BYTES) return false;
      this.#bytes += bytes;
      taken += bytes;
      return true;
    };
    response.once('close', () => {
      this.#bytes -= taken;
    });
    const { headers } = request;
    const encoding = headers['content-encoding'] ?? 'identity';
    const length = encoding === 'identity' ? headers['content-length'] : String(limit);
    if (length === undefined) {
      let arrived = 0;
      request.on('data', ({ length: more }: Buffer) => {
        arrived += more;
        if (arrived > SMALL_BYTES && arrived <= limit && !take(arrived - taken)) request.destroy();
      });
    } else {
      const most = Math.min(Number(length), limit);
      if (most > SMALL_BYTES && !take(most)) throw new HttpError(503, 'Too many large request bodies at once');
    }
  }
}
