/** The server refused a call: `status` and its own sentence. */
export class BloomApiError extends Error {
  override readonly name = 'BloomApiError';
  readonly code = 'API_ERROR';
  constructor(
    /** HTTP status, for example 404 for a room that does not exist and 503 for a full one. */
    readonly status: number,
    message: string,
    /** Ties the failure to the server's log. */
    readonly requestId: string | undefined,
  ) {
    super(message);
  }
}

/** The server could not be reached, did not answer in time, or closed the stream. */
export class BloomConnectionError extends Error {
  override readonly name = 'BloomConnectionError';
  readonly code = 'CONNECTION_ERROR';
}
