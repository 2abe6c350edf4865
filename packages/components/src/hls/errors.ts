export type HlsErrorCode =
  /** There is no stream, or no such file in it. */
  | 'NOT_FOUND'
  /** The name leaves the directory of the stream, or the position is too far ahead. */
  | 'INVALID_NAME'
  /** Too many requests are waiting. */
  | 'TOO_BUSY'
  /** The position was not reached in time. */
  | 'WAITED_TOO_LONG'
  /** The stream goes on at another node. */
  | 'MOVED';

/** A file of a live stream cannot be served. */
export class HlsError extends Error {
  override readonly name = 'HlsError';

  constructor(
    readonly code: HlsErrorCode,
    /** A sentence that contains the offending name. */
    message: string,
  ) {
    super(message);
  }
}

export const fileNotFound = (name: string): HlsError => new HlsError('NOT_FOUND', `File not found: ${name}`);

export const movedAway = (name: string): HlsError =>
  new HlsError('MOVED', `The stream of ${name} has just moved to another node`);
