type SrtpErrorCode =
  /** A master key or salt of the wrong length. */
  | 'BAD_KEY'
  /** A packet to be sealed is no RTP packet, or too long. */
  | 'BAD_PACKET'
  /** An SRTCP key has protected 2^31 packets, the limit of RFC 3711. */
  | 'KEY_EXHAUSTED'
  /** An option is out of range, or WebAssembly SIMD was demanded and is missing. */
  | 'BAD_OPTION';

/** A caller's mistake. Bad packets from the network yield an `OpenFailure` instead. */
export class SrtpError extends Error {
  readonly code: SrtpErrorCode;

  constructor(code: SrtpErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SrtpError';
    this.code = code;
  }
}
