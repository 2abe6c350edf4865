export type ComponentErrorCode =
  /** The bytes are no Ogg stream with Opus in it that we play. */
  | 'BAD_OGG'
  /** The bytes are no H.264 stream that WebRTC receivers can play. */
  | 'BAD_H264'
  /** The bytes are no MP4 file that a recording has written. */
  | 'BAD_MP4'
  /** A recording lacks what it takes to compose it. */
  | 'BAD_RECORDING'
  /** The native library refused or failed. */
  | 'NATIVE_FAILED'
  /** The process or the socket for the sound of a call is gone. */
  | 'CALL_FAILED'
  /** Composing a recording failed. */
  | 'MIX_FAILED'
  /** An upload did not succeed. */
  | 'UPLOAD_FAILED';

/** What this package throws, apart from the refusals of `@bloom/rooms`. */
export class ComponentError extends Error {
  override readonly name = 'ComponentError';

  constructor(
    readonly code: ComponentErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
