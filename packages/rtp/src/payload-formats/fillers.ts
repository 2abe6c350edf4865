import type { RtpView } from '../rtp-view.js';

/** The bit that ends a unit. */
const END = 0x80;

/**
 * Cuts a filler unit of H.264 or H.265, or a fragment of one, to its header and the bit that ends it (ITU-T H.264
 * section 7.3.2.7, H.265 section 7.3.2.8). The packet stays: its number must not be missing, and its marker ends the
 * picture. A unit with other bytes, such as an encrypted one, stays whole.
 *
 * `headerLength`: of a unit, and of a packet, bytes. Returns true if the filler was cut; the caller then makes the
 * header of a fragment that of a unit.
 */
export function shortenFiller(view: RtpView, headerLength: number, isFragment: boolean): boolean {
  const { buffer, payloadStart, payloadEnd } = view;
  let end = payloadEnd;
  while (buffer[end - 1] === 0) end -= 1;
  if (buffer[end - 1] === END) end -= 1;
  const start = payloadStart + headerLength + (isFragment ? 1 : 0);
  for (let at = start; at < end; at += 1) if (buffer[at] !== 0xff) return false;
  if (view.payloadLength <= headerLength + 1) return false;
  buffer[payloadStart + headerLength] = END;
  view.payloadEnd = payloadStart + headerLength + 1;
  return true;
}
