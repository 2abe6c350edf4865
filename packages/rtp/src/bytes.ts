/** Big-endian access without the argument checks of Buffer's own methods; callers check the bounds. */
export function readU16(buffer: Buffer, at: number): number {
  return (buffer[at]! << 8) | buffer[at + 1]!;
}

export function readU24(buffer: Buffer, at: number): number {
  return (buffer[at]! << 16) | (buffer[at + 1]! << 8) | buffer[at + 2]!;
}

export function readU32(buffer: Buffer, at: number): number {
  return ((buffer[at]! << 24) | (buffer[at + 1]! << 16) | (buffer[at + 2]! << 8) | buffer[at + 3]!) >>> 0;
}

export function writeU16(buffer: Buffer, at: number, value: number): void {
  buffer[at] = value >>> 8;
  buffer[at + 1] = value;
}

export function writeU24(buffer: Buffer, at: number, value: number): void {
  buffer[at] = value >>> 16;
  buffer[at + 1] = value >>> 8;
  buffer[at + 2] = value;
}

export function writeU32(buffer: Buffer, at: number, value: number): void {
  buffer[at] = value >>> 24;
  buffer[at + 1] = value >>> 16;
  buffer[at + 2] = value >>> 8;
  buffer[at + 3] = value;
}
