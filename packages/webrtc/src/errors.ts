type WebrtcErrorCode =
  /** All UDP ports of the range are taken. */
  | 'NO_FREE_PORT'
  /** An address is no IP address, or cannot be listened on. */
  | 'BAD_ADDRESS'
  /** A relay user of this name exists. */
  | 'DUPLICATE_USER'
  /** The port or transport is closed. */
  | 'CLOSED'
  /** A master key or salt of the wrong length. */
  | 'BAD_KEY'
  /** A packet to be sealed is no RTP packet, or too long. */
  | 'BAD_PACKET'
  /** An SRTCP key has protected 2^31 packets, the limit of RFC 3711. */
  | 'KEY_EXHAUSTED'
  /** An option is out of range, or WebAssembly SIMD was demanded and is missing. */
  | 'BAD_OPTION'
  /** An offer that cannot be used. The message quotes the line at fault, without secrets. */
  | 'INVALID_SDP';

/**
 * A caller's mistake, a limit of the machine or an unusable offer. Bad packets are counted instead (see `DropReason`), or
 * yield an `OpenFailure`.
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
