/** Thrown only for a caller's mistake; what arrives from the network is answered with an `OpenFailure` instead. */
export class SrtpError extends Error {
  readonly code: 'BAD_KEY' | 'BAD_PACKET' | 'KEY_EXHAUSTED' | 'BAD_OPTION';

  constructor(code: SrtpError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SrtpError';
    this.code = code;
  }
}
