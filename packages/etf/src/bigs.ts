// Integers beyond 32 bits (SMALL_BIG_EXT 110, LARGE_BIG_EXT 111): a sign byte and the magnitude, little-endian.

/** Maximum magnitude in bytes: 4,096 (a number of 9,864 decimal digits). */
export const MAX_BIG_BYTES = 4_096;

/** Returns the value of `count` little-endian bytes, as a number if that is safe. */
export function readBig(bytes: Uint8Array, start: number, count: number, negative: boolean): number | bigint {
  if (count <= 6) {
    let value = 0;
    for (let i = start + count - 1; i >= start; i--) value = value * 256 + (bytes[i] as number);
    return negative && value !== 0 ? -value : value;
  }
  let hex = '0x';
  for (let i = start + count - 1; i >= start; i--) {
    const byte = bytes[i] as number;
    hex += byte < 16 ? `0${byte.toString(16)}` : byte.toString(16);
  }
  const magnitude = BigInt(hex);
  const value = negative ? -magnitude : magnitude;
  const safe = value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER);
  return safe ? Number(value) : value;
}

/** Returns the magnitude of a bigint as little-endian bytes without leading zeros. */
export function bigBytes(value: bigint): Uint8Array {
  const magnitude = value < 0n ? -value : value;
  let hex = magnitude.toString(16);
  if (hex.length % 2 === 1) hex = `0${hex}`;
  const bytes = Buffer.from(hex, 'hex');
  return new Uint8Array(bytes).toReversed();
}
