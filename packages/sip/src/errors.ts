/** What callers of this package may catch; `code` is stable. */
export abstract class SipError extends Error {
  abstract readonly code: string;
}

/** A message, address or header that cannot be read. */
export class SipParseError extends SipError {
  override readonly name = 'SipParseError';
  readonly code = 'SIP_MALFORMED';
}

/** A session description that cannot be read or shares nothing with ours. */
export class SdpError extends SipError {
  override readonly name = 'SdpError';
  readonly code = 'SDP_UNUSABLE';
}

/** A telephone number with other signs than digits. */
export class BadPhoneNumber extends SipError {
  override readonly name = 'BadPhoneNumber';
  readonly code = 'SIP_BAD_NUMBER';

  constructor(readonly number: string) {
    super(`${printable(number)} is no telephone number`);
  }
}

/** What was asked of the phone does not go with its state. */
export class SipStateError extends SipError {
  override readonly name = 'SipStateError';
  readonly code = 'SIP_STATE';
}

export function printable(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}
