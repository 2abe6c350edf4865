import { Transform, type TransformCallback } from 'node:stream';

/** A store answers with an acknowledgement or an error; each is a page of XML. */
export const MAX_ANSWER_BYTES = 1024 * 1024;
/** Time from the first byte of an answer to its last. */
export const ANSWER_MS = 60_000;

export interface AnswerLimits {
  bytes: number;
  ms: number;
}

/**
 * Passes an answer on until it is too long or takes too long, and fails then: the client library collects a whole answer before
 * it reads it.
 */
export class AnswerLimit extends Transform {
  readonly #limits: AnswerLimits;
  readonly #overdue: NodeJS.Timeout;
  #received = 0;

  constructor(limits: AnswerLimits) {
    super();
    this.#limits = limits;
    this.#overdue = setTimeout(() => this.destroy(new Error(`the answer took more than ${limits.ms} ms`)), limits.ms);
    this.#overdue.unref();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#received += chunk.length;
    if (this.#received > this.#limits.bytes) done(new Error(`the answer has more than ${this.#limits.bytes} bytes`));
    else done(null, chunk);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#overdue);
    done(error);
  }
}
