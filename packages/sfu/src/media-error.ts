export type MediaErrorCode =
  /** The peer has no transport in this room (any more). */
  | 'NO_TRANSPORT'
  /** A room or transport of this name exists already. */
  | 'EXISTS'
  /** The room, worker or engine was closed meanwhile. */
  | 'CLOSED'
  /** A media worker could not be started. */
  | 'WORKER_FAILED';

/** Base of the errors of this package. */
export class MediaError extends Error {
  readonly code: MediaErrorCode;

  constructor(code: MediaErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'MediaError';
    this.code = code;
  }
}
