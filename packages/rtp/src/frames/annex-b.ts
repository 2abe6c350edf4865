/**
 * Returns the NAL units of an Annex B byte stream without their start codes, in order, as views (ITU-T H.264 annex B). Empty
 * ones and bytes before the first start code are left out.
 */
export function splitAnnexB(stream: Buffer): Buffer[] {
  const nals: Buffer[] = [];
  let start = findStartCode(stream, 0);
  while (start >= 0) {
    const from = start + 3;
    const next = findStartCode(stream, from);
    let end = next < 0 ? stream.length : next;
    // The zero byte of a four-byte start code and trailing zeros belong to no NAL unit: one ends in a stop bit.
    while (end > from && stream[end - 1] === 0) end -= 1;
    if (end > from) nals.push(stream.subarray(from, end));
    start = next;
  }
  return nals;
}

/** Returns the offset of the next three-byte start code, -1 when there is none. */
export function findStartCode(stream: Buffer, from: number): number {
  return stream.indexOf(START_CODE, from);
}

const START_CODE = Buffer.from([0, 0, 1]);
