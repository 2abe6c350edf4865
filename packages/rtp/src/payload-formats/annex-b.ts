/** Start codes per stream. No picture has more, but one full of start codes would become millions of objects. */
export const MAX_UNITS = 4_096;

/**
 * Returns the NAL units of an Annex B byte stream without their start codes, in order, as views (ITU-T H.264 annex B).
 * Empty units and bytes before the first start code are left out; bytes after `MAX_UNITS` units stay in the last one.
 */
export function splitAnnexB(stream: Buffer): Buffer[] {
  const nals: Buffer[] = [];
  let start = findStartCode(stream, 0);
  for (let units = 1; start >= 0; units += 1) {
    const from = start + 3;
    const next = units < MAX_UNITS ? findStartCode(stream, from) : -1;
    let end = next < 0 ? stream.length : next;
    // A unit ends in a stop bit, so trailing zeros and the zero byte of a four-byte start code belong to no unit.
    while (end > from && stream[end - 1] === 0) end -= 1;
    if (end > from) nals.push(stream.subarray(from, end));
    start = next;
  }
  return nals;
}

/** Joins NAL units with four-byte start codes (Annex B). */
export function toAnnexB(nals: readonly Buffer[]): Buffer {
  const length = nals.reduce((sum, nal) => sum + 4 + nal.length, 0);
  const out = Buffer.allocUnsafe(length);
  let at = 0;
  for (const nal of nals) {
    at = out.writeUInt32BE(1, at);
    at += nal.copy(out, at);
  }
  return out;
}

/** Returns the offset of the next three-byte start code, or -1 if there is none. */
export function findStartCode(stream: Buffer, from: number): number {
  return stream.indexOf(START_CODE, from);
}

const START_CODE = Buffer.from([0, 0, 1]);
