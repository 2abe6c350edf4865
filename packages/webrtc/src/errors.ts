type WebrtcErrorCode =
  /** All UDP ports of the range are in use. */
  | 'NO_FREE_PORT'
  /** An address is not an IP address, or cannot be bound. */
  | 'BAD_ADDRESS'
  /** A relay user with this name already exists. */
  | 'DUPLICATE_USER'
  /** The port or transport is closed. */
  | 'CLOSED'
  /** A master key or salt has the wrong length. */
  | 'BAD_KEY'
  /** A packet to be sealed is not an RTP packet, or is too long. */
  | 'BAD_PACKET'
  /** An SRTCP key has protected 2^31 packets, the limit of RFC 3711. */
  | 'KEY_EXHAUSTED'
  /** An option is out of range, or WebAssembly SIMD was required but is not available. */
  | 'BAD_OPTION'
  /** An offer cannot be used. The message quotes the offending line without secrets. */
  | 'INVALID_SDP';

/**
 * A caller's mistake, a limit of the machine, or an unusable offer. Bad packets do not throw: they are counted (see
 * `DropReason`) or yield an `OpenFailure`.
 */
export class WebrtcError extends Error {
  constructor(
    readonly code: WebrtcErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'WebrtcError';
  }
}
