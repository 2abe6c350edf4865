import type { ErrorCode } from './protocol/wire.js';

/**
 * A request without an answer. Answers throw it on the node, which sends code and message to the tool; the client throws it
 * there again.
 */
export class InspectionError extends Error {
  override readonly name = 'InspectionError';
  constructor(
    /** `OFF` (the node answers no tools) and `UNREACHABLE` (the link is gone) come from the client alone. */
    readonly code: ErrorCode | 'OFF' | 'UNREACHABLE',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
