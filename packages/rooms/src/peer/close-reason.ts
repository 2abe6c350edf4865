/** Close reason for a failure with an unknown or internal cause. */
export const INTERNAL_ERROR = 'Internal server error';
/** Close reason for clients whose node stops: they start over, or come back to their room, through another. */
export const NODE_STOPPED = 'Node stopped';
/** Close reason of a LiveKit client's former node once the client has resumed through another. */
export const RESUMED_ELSEWHERE = 'Resumed elsewhere';

/** Close reason of a room that goes on at another node, where its clients come back to it with code 1012. */
export const ROOM_MOVED = 'Room moved';

/** A close frame holds 125 bytes, of which the code takes two (RFC 6455, section 5.5). */
const MAX_CLOSE_REASON_BYTES = 123;

/** Cuts the text at a character boundary to what a close frame holds. Returns `fallback` for an empty text. */
export function closeReason(reason: string, fallback = INTERNAL_ERROR): string {
  if (reason === '') return fallback;
  const bytes = Buffer.from(reason);
  if (bytes.length <= MAX_CLOSE_REASON_BYTES) return reason;

  let end = MAX_CLOSE_REASON_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;

  return bytes.toString('utf8', 0, end);
}
