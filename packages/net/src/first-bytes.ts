const MAGIC_COOKIE = [0x21, 0x12, 0xa4, 0x42] as const;
const COOKIE_AT = 4;
/** Type, length and magic cookie of a STUN message. */
const DECIDING_BYTES = COOKIE_AT + MAGIC_COOKIE.length;

/** `neither`: the bytes cannot begin a connection; `undecided`: more of them are needed. */
export type FirstBytes = 'http' | 'turn' | 'neither' | 'undecided';

/**
 * Distinguishes a TURN client from an HTTP client by the first bytes that it sends, at most eight of them. TURN begins
 * with a STUN request, whose type is small and whose length is a multiple of four (RFC 8489, section 5); ChannelData
 * comes later. No HTTP request begins with such a byte. Everything else is `http`, whose parser rejects malformed
 * input.
 */
export function firstBytes(bytes: Uint8Array): FirstBytes {
  const [type] = bytes;
  if (type === undefined) return 'undecided';
  if (type > 3) return 'http';
  if (((bytes[3] ?? 0) & 3) !== 0) return 'neither';
  const cookie = bytes.subarray(COOKIE_AT, DECIDING_BYTES);
  if (cookie.some((byte, i) => byte !== MAGIC_COOKIE[i])) return 'neither';

  return bytes.length < DECIDING_BYTES ? 'undecided' : 'turn';
}
