/** What a close frame has room for beside its code (RFC 6455 section 5.5.1). */
const MAX_REASON_BYTES = 123;

/** Cuts a reason to what fits a close frame, never within a character. */
export function closeReason(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_REASON_BYTES) return bytes.toString();
  let end = MAX_REASON_BYTES;
  // A continuation byte (10xxxxxx) at the cut belongs to the character before it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end).toString();
}
