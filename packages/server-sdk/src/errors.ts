/** The server refused a call. */
export class BloomApiError extends Error {
  override readonly name = 'BloomApiError';
  readonly code = 'API_ERROR';
  constructor(
    /** HTTP status: 401 for a wrong token, 404 for a room that does not exist, 503 for a full one. */
    readonly status: number,
    message: string,
    /** Id of the request in the server's log. */
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

/** A webhook request that is not a notification, or whose signature is wrong or too old. Answer it with 400. */
export class BloomMessageError extends Error {
  override readonly name = 'BloomMessageError';
  readonly code = 'MESSAGE_ERROR';
}
