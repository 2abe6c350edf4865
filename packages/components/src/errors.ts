export type ComponentErrorCode =
  /** Not an Ogg stream with playable Opus. */
  | 'BAD_OGG'
  /** Not an H.264 stream that WebRTC receivers can play. */
  | 'BAD_H264'
  /** A camera breaks the rules of RTSP. */
  | 'BAD_RTSP'
  /** Not an MP4 file of a recording. */
  | 'BAD_MP4'
  /** Not a WebM file of a recording. */
  | 'BAD_WEBM'
  /** A recording cannot be mixed: its report or files are missing or invalid. */
  | 'BAD_RECORDING'
  /** The native library refused or failed. */
  | 'NATIVE_FAILED'
  /** The process or the socket for the sound of a call has failed. */
  | 'CALL_FAILED'
  /** Mixing a recording failed. */
  | 'MIX_FAILED'
  /** A recording is not complete yet, or is already being mixed. */
  | 'IN_PROGRESS'
  /** Too many recordings wait to be mixed, or the node is being stopped. */
  | 'TOO_MANY_MIXES'
  /** An upload failed. */
  | 'UPLOAD_FAILED'
  /** An object was not fetched from its bucket. */
  | 'DOWNLOAD_FAILED'
  /** The files of a stream are not written as fast as they arrive. */
  | 'TOO_SLOW';

/** Error of this package, apart from those of `@bloom/rooms`. */
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
