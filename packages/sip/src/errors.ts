/** A message, address or header that cannot be read. */
export class SipParseError extends Error {
  override readonly name = 'SipParseError';
  readonly code = 'SIP_MALFORMED';
}

export function printable(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}
