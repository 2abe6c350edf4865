export type MediaFileErrorCode =
  /** The name leaves its directory, or the position is too far ahead of the stream. */
  | 'INVALID_NAME'
  /** No such stream, recording or file. */
  | 'NOT_FOUND'
  /** The request asks for something that cannot be made, or is ambiguous. */
  | 'INVALID_OPTIONS'
  /** The recording is still being made, or already being mixed. */
  | 'IN_PROGRESS'
  /** The node with the recording lacks the library that mixes. */
  | 'NOT_INSTALLED'
  /** The file is, or may be, on a node that does not answer. */
  | 'OWNER_UNREACHABLE'
  /** The node with the file already serves its maximum number of files to other nodes, or has too many mixes to do. */
  | 'TOO_BUSY'
  /** The requested segment or part did not appear in time. */
  | 'WAITED_TOO_LONG';

/** A file of a recording or a live stream cannot be served. */
export class MediaFileError extends Error {
  override readonly name = 'MediaFileError';

  constructor(
    readonly code: MediaFileErrorCode,
    /** A sentence that contains the offending name; shown to clients. */
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
