import { randomBytes } from 'node:crypto';
import type { Log, LogFields } from '@bloom/log';
import type { Hop } from './inspection.js';

/** Maximum length of a request id. A longer one from another node is ignored. */
export const MAX_REQUEST_ID = 200;

/** Keeps the last hops of requests. */
export class HopRing {
  readonly #ring: (Hop | undefined)[] = [];
  #next = 0;

  constructor(readonly capacity: number) {}

  push(hop: Hop): void {
    this.#ring[this.#next % this.capacity] = hop;
    this.#next++;
  }

  /** Returns the hops of one request, oldest first. */
  of(requestId: string): Hop[] {
    const hops: Hop[] = [];
    for (let i = Math.max(0, this.#next - this.capacity); i < this.#next; i++) {
      const hop = this.#ring[i % this.capacity];
      if (hop?.requestId === requestId) hops.push(hop);
    }

    return hops.toSorted((a, b) => a.at - b.at);
  }
}

/** A logger that adds the id of the current request, if any, to its lines. */
export class RequestLog implements Log {
  readonly #inner: Log;
  readonly #request: () => string | undefined;

  constructor(inner: Log, request: () => string | undefined) {
    this.#inner = inner;
    this.#request = request;
  }

  debug(event: string, fields?: LogFields): void {
    this.#inner.debug(event, this.#with(fields));
  }

  info(event: string, fields?: LogFields): void {
    this.#inner.info(event, this.#with(fields));
  }

  warn(event: string, fields?: LogFields): void {
    this.#inner.warn(event, this.#with(fields));
  }

  error(event: string, fields?: LogFields): void {
    this.#inner.error(event, this.#with(fields));
  }

  child(fields: LogFields): Log {
    return new RequestLog(this.#inner.child(fields), this.#request);
  }

  /** Returns the same logger bound to one request, or to none. */
  forRequest(requestId: string | undefined): Log {
    return requestId === undefined ? this.#inner : new RequestLog(this.#inner, () => requestId);
  }

  #with(fields: LogFields | undefined): LogFields | undefined {
    const requestId = this.#request();

    return requestId === undefined ? fields : { requestId, ...fields };
  }
}

let made = 0;
/** Hex instead of base64url: `bloomctl path` would read an id that begins with a dash as an option. */
const salt = randomBytes(9).toString('hex');

/** Returns an id for a request that came without one: unique in this process, practically so across processes. */
export function newRequestId(): string {
  made++;

  return `${salt}-${made.toString(36).padStart(8, '0')}`;
}
