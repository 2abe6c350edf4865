export type ProtocolErrorCode = 'FRAME_TOO_LARGE' | 'FRAME_UNDECODABLE';

/** The only error that decoding throws, whatever the bytes. */
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
