export type SipErrorCode =
  /** A message, address or header that cannot be read. */
  | 'SIP_MALFORMED'
  /** A session description that cannot be read or has nothing in common with ours. */
  | 'SDP_UNUSABLE'
  /** A telephone number with characters other than digits. */
  | 'SIP_BAD_NUMBER'
  /** The state of the phone does not allow the call. */
  | 'SIP_STATE';

export class SipError extends Error {
  override readonly name = 'SipError';

  constructor(
    readonly code: SipErrorCode,
    message: string,
  ) {
    super(message);
  }
}

export function isSipError(error: unknown, code: SipErrorCode): error is SipError {
  return error instanceof SipError && error.code === code;
}

/** Quotes and shortens untrusted text for a message. */
export function printable(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}
