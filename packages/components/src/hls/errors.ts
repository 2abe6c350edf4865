export type HlsErrorCode =
  /** No stream, or no such file in it. */
  | 'NOT_FOUND'
  /** The name leads out of the stream's directory, or the position is too far ahead. */
  | 'INVALID_NAME'
  /** As many requests wait as may. */
  | 'TOO_BUSY'
  /** What was waited for has not come. */
  | 'WAITED_TOO_LONG';

/** A file of a live stream cannot be had. */
export class HlsError extends Error {
  override readonly name = 'HlsError';

  constructor(
    readonly code: HlsErrorCode,
    /** A sentence with the offending name. */
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export const fileNotFound = (name: string): HlsError => new HlsError('NOT_FOUND', `File not found: ${name}`);
