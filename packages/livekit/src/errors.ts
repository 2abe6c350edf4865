export type LivekitErrorCode =
  /** The token is missing, unreadable, unsigned, expired, or lacks a grant. */
  | 'UNAUTHENTICATED'
  /** A field of the request is malformed or over its limit. */
  | 'INVALID'
  /** The room, participant or track does not exist. */
  | 'NOT_FOUND'
  /** The room is full, or a peer of another kind of client has the identity. */
  | 'REFUSED'
  /** No node can take the request now. */
  | 'UNAVAILABLE'
  /** The state of the room or the settings do not allow the request. */
  | 'PRECONDITION'
  /** Too many requests, or too large a body. */
  | 'EXHAUSTED'
  /** This server does not offer the method. */
  | 'UNIMPLEMENTED'
  /** No service or method has this name. */
  | 'BAD_ROUTE'
  /** A fault of the server. */
  | 'INTERNAL';

/** A refusal that the client is shown; the message never quotes a token. */
export class LivekitError extends Error {
  override readonly name = 'LivekitError';

  constructor(
    readonly code: LivekitErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
