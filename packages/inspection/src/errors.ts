import type { ErrorCode } from './protocol/wire.js';

/** An answer that is none. */
export class InspectionError extends Error {
  override readonly name = 'InspectionError';
  constructor(
    /** `OFF`: the node answers no tools. `UNREACHABLE`: the link is gone. The others are the node's own. */
    readonly code: ErrorCode | 'OFF' | 'UNREACHABLE',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
