import type { ErrorCode } from './protocol/wire.js';

/**
 * A request without an answer. The node throws it and sends code and message to the tool, where the client throws it
 * again.
 */
export class InspectionError extends Error {
  override readonly name = 'InspectionError';
  constructor(
    /** Only the client uses `OFF` (the node answers no tools) and `UNREACHABLE` (the link is gone). */
    readonly code: ErrorCode | 'OFF' | 'UNREACHABLE',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
