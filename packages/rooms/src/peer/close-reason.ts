/** The close reason for a failure whose cause is unknown or internal. */
export const INTERNAL_ERROR = 'Internal server error';

/** A close frame holds 125 bytes, two of them the code (RFC 6455, section 5.5). */
const MAX_CLOSE_REASON_BYTES = 123;

/** Returns the text cut to what a close frame holds, at a character boundary; `fallback` for an empty one. */
export function closeReason(reason: string, fallback = INTERNAL_ERROR): string {
  if (reason === '') return fallback;
  const bytes = Buffer.from(reason);
  if (bytes.length <= MAX_CLOSE_REASON_BYTES) return reason;

  let end = MAX_CLOSE_REASON_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;

  return bytes.toString('utf8', 0, end);
}
