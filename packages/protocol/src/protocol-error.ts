export type ProtocolErrorCode =
  /** A frame exceeds the limit of its direction. */
  | 'FRAME_TOO_LARGE'
  /** A frame is not a message of the schema. */
  | 'FRAME_UNDECODABLE';

/** The only error that decoding throws. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  constructor(
    readonly code: ProtocolErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
