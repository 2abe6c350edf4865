/** The subset of DER (X.690) that certificates use. */

export const Tag = {
  integer: 0x02,
  sequence: 0x30,
  /** `[0]`, constructed. */
  context0: 0xa0,
} as const;

interface DerValue {
  tag: number;
  content: Buffer;
  /** The value including its tag and length. */
  whole: Buffer;
  /** Offset of the next value. */
  end: number;
}

/** Returns the value at an offset as views; undefined if there is none or it is truncated. */
export function readDer(bytes: Buffer, at = 0): DerValue | undefined {
  const tag = bytes[at];
  const first = bytes[at + 1];
  if (tag === undefined || first === undefined) return undefined;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  const start = at + 2 + lengthBytes;
  // 0x80 is an indefinite length, which DER forbids; no certificate reaches 16 MiB.
  if (first === 0x80 || lengthBytes > 3 || start > bytes.length) return undefined;
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes);
  const end = start + length;
  if (end > bytes.length) return undefined;
  return { tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end), end };
}
