import { Transform, type TransformCallback } from 'node:stream';

/** Responses of a store, apart from objects, are acknowledgements or errors, at most a page of XML. */
export const MAX_RESPONSE_BYTES = 1024 * 1024;
/** Time limit from the first to the last byte of a response. */
export const RESPONSE_MS = 60_000;

export interface ResponseLimits {
  bytes: number;
  ms: number;
  /** Called as bytes arrive, with their number so far. */
  onBytes?: ((received: number) => void) | undefined;
}

/**
 * Passes a response through, and fails when it is too long or takes too long: the client library buffers a whole
 * response before parsing it.
 */
export class ResponseLimit extends Transform {
  readonly #limits: ResponseLimits;
  readonly #overdue: NodeJS.Timeout;
  #received = 0;

  constructor(limits: ResponseLimits) {
    super();
    this.#limits = limits;
    this.#overdue = setTimeout(() => this.destroy(new Error(`the response took more than ${limits.ms} ms`)), limits.ms);
    this.#overdue.unref();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#received += chunk.length;
    if (this.#received > this.#limits.bytes) {
      done(new Error(`the response has more than ${this.#limits.bytes} bytes`));
      return;
    }
    this.#limits.onBytes?.(this.#received);
    done(null, chunk);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#overdue);
    done(error);
  }
}
