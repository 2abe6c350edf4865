import { readU16, writeU16, writeU32 } from './bytes.js';
import type { RtpView } from './rtp-view.js';

/** Length of the original sequence number at the start of an RTX payload, bytes. RFC 4588 section 4. */
export const RTX_PREFIX = 2;

/** Writes the original sequence number (its low 16 bits) that precedes the payload of a retransmission. */
export function writeRtxPrefix(target: Buffer, at: number, originalSequence: number): number {
  writeU16(target, at, originalSequence % 65536);
  return RTX_PREFIX;
}

/**
 * Restores the original packet inside the buffer of a parsed RTX packet. Header extensions stay; SSRC, payload type and
 * sequence number become those of the stream it repairs. The view then shows the restored packet.
 *
 * Returns false and leaves the view unchanged if there is nothing to restore (padding-only RTX, as in probes).
 */
export function restoreRtx(view: RtpView, original: { ssrc: number; payloadType: number }): boolean {
  if (view.payloadLength < RTX_PREFIX) return false;
  const { buffer, start, headerLength, end } = view;
  const sequence = readU16(buffer, view.payloadStart);
  // The header moves over the two bytes of the original sequence number; the payload stays in place.
  buffer.copyWithin(start + RTX_PREFIX, start, start + headerLength);
  const moved = start + RTX_PREFIX;
  buffer[moved + 1] = (buffer[moved + 1]! & 0x80) | (original.payloadType & 0x7f);
  writeU16(buffer, moved + 2, sequence);
  writeU32(buffer, moved + 8, original.ssrc);
  return view.parse(buffer, moved, end);
}
