import { readU16 } from '../bytes.js';
import type { RtpView } from '../rtp-view.js';

const NONE = 0;
const IDR = 5;
const SPS = 7;
const STAP_A = 24;
const FU_A = 28;

/**
 * Returns whether the packet starts an H.264 key frame: it holds an IDR slice or a sequence parameter set, alone, inside a
 * STAP-A, or as the first fragment of an FU-A. RFC 6184 sections 5.6 to 5.8.
 */
export function isH264KeyFrame(view: RtpView): boolean {
  return keyFrameUnit(view) !== NONE;
}

/** Returns whether the packet starts an H.264 key frame with its parameter sets, without which no slice can be decoded. */
export function hasH264ParameterSet(view: RtpView): boolean {
  return keyFrameUnit(view) === SPS;
}

/** Returns the type of the first NAL unit that makes the packet the start of a key frame. */
function keyFrameUnit(view: RtpView): typeof IDR | typeof SPS | typeof NONE {
  const { buffer, payloadStart, payloadEnd } = view;
  if (payloadStart >= payloadEnd) return NONE;
  const type = buffer[payloadStart]! & 0x1f;
  if (type === IDR || type === SPS) return type;
  if (type === FU_A) {
    if (payloadStart + 2 > payloadEnd) return NONE;
    const header = buffer[payloadStart + 1]!;
    const inner = header & 0x1f;
    const isStart = (header & 0x80) !== 0;
    return isStart && (inner === IDR || inner === SPS) ? inner : NONE;
  }
  if (type !== STAP_A) return NONE;

  let at = payloadStart + 1;
  while (at + 3 <= payloadEnd) {
    const size = readU16(buffer, at);
    if (size === 0 || at + 2 + size > payloadEnd) return NONE;
    const inner = buffer[at + 2]! & 0x1f;
    if (inner === IDR || inner === SPS) return inner;
    at += 2 + size;
  }
  return NONE;
}
