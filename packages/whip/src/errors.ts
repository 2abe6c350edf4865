export type WhipErrorCode =
  /** The offer cannot be parsed, or its m-lines do not fit. */
  | 'INVALID_OFFER'
  /** The offer has no codec that the room allows, or that its stream or recording takes. */
  | 'NO_CODEC'
  /** The SDP fragment cannot be parsed. */
  | 'INVALID_FRAGMENT'
  /** The token of the peer is wrong or has expired. */
  | 'UNAUTHORIZED'
  /** The entity tag names outdated ICE credentials. */
  | 'STALE'
  /** ICE was restarted less than a second ago. */
  | 'TOO_MANY_RESTARTS';

/** A refused request of a WHIP or WHEP client. */
export class WhipError extends Error {
  override readonly name = 'WhipError';
  constructor(
    readonly code: WhipErrorCode,
    /** A sentence, which is sent to the client. */
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
