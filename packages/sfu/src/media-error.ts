export type MediaErrorCode =
  /** The peer has no transport in this room, or no longer has one. */
  | 'NO_TRANSPORT'
  /** A room or transport with this name already exists. */
  | 'EXISTS'
  /** The room, worker or engine has been closed. */
  | 'CLOSED'
  /** A media worker could not be started. */
  | 'WORKER_FAILED';

/** Base of the errors of this package. */
export class MediaError extends Error {
  readonly code: MediaErrorCode;

  constructor(code: MediaErrorCode, message: string) {
    super(message);
    this.name = 'MediaError';
    this.code = code;
  }
}
