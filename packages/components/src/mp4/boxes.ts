/** Writers for the boxes of ISO/IEC 14496-12 and the numbers in them. */
export const u8 = (...values: readonly number[]): Buffer => Buffer.from(values);

export function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 2);
  for (const [i, value] of values.entries()) bytes.writeUInt16BE(value, i * 2);

  return bytes;
}

export function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 4);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4);

  return bytes;
}

export function u64(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigUInt64BE(BigInt(value));

  return bytes;
}

export const zeros = (count: number): Buffer => Buffer.alloc(count);
export const ascii = (text: string): Buffer => Buffer.from(text, 'latin1');

export function box(type: string, ...parts: readonly Buffer[]): Buffer {
  const size = parts.reduce((sum, part) => sum + part.length, 8);

  return Buffer.concat([u32(size), ascii(type), ...parts], size);
}

export function fullBox(
  type: string,
  { version = 0, flags = 0 }: { version?: number; flags?: number },
  ...parts: readonly Buffer[]
): Buffer {
  return box(type, u32(((version << 24) | flags) >>> 0), ...parts);
}
