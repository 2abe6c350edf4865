/**
 * NAL units of an Annex B byte stream without their start codes, in order (ITU-T H.264 annex B). Views on `stream`, nothing
 * is copied; bytes before the first start code are no NAL unit and are left out, as are empty ones.
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

/** Where the next three-byte start code begins, -1 when there is none. */
export function findStartCode(stream: Buffer, from: number): number {
  return stream.indexOf(START_CODE, from);
}

const START_CODE = Buffer.from([0, 0, 1]);
