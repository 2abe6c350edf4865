import type { ErrorCode } from '../protocol/wire.js';

/** Thrown by an answer: the tool gets the code and the sentence. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
