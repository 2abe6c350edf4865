export type ComponentErrorCode =
  /** The bytes are no Ogg stream with Opus in it that we play. */
  | 'BAD_OGG'
  /** The bytes are no H.264 stream that WebRTC receivers can play. */
  | 'BAD_H264'
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
