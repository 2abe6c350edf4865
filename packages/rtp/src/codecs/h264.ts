import { readU16 } from '../bytes.js';
import type { RtpView } from '../rtp-view.js';

const IDR = 5;
const SPS = 7;
const STAP_A = 24;
const FU_A = 28;

/**
 * Whether the packet starts an H.264 key frame: it holds an IDR slice or a sequence parameter set, alone, inside a
 * STAP-A, or as the first fragment of an FU-A. RFC 6184 sections 5.6 to 5.8.
 */
export function isH264KeyFrame(view: RtpView): boolean {
  const { buffer, payloadStart, payloadEnd } = view;
  if (payloadStart >= payloadEnd) return false;
  const type = buffer[payloadStart]! & 0x1f;
  if (type === IDR || type === SPS) return true;
  if (type === FU_A) {
    if (payloadStart + 2 > payloadEnd) return false;
    const header = buffer[payloadStart + 1]!;
    const isStart = (header & 0x80) !== 0;
    return isStart && ((header & 0x1f) === IDR || (header & 0x1f) === SPS);
  }
  if (type !== STAP_A) return false;

  let at = payloadStart + 1;
  while (at + 3 <= payloadEnd) {
    const size = readU16(buffer, at);
    if (size === 0 || at + 2 + size > payloadEnd) return false;
    const inner = buffer[at + 2]! & 0x1f;
    if (inner === IDR || inner === SPS) return true;
    at += 2 + size;
  }
  return false;
}
