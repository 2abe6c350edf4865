/** Frames of VP8 and VP9 as far as anything but a decoder reads them. */

/** A VP8 key frame of this size. */
export function vp8Key(width = 640, height = 360, bytes = 60): Buffer {
  const frame = Buffer.alloc(bytes, 0x55);
  frame.set([0x10, 0, 0, 0x9d, 0x01, 0x2a]);
  frame.writeUInt16LE(width, 6);
  frame.writeUInt16LE(height, 8);

  return frame;
}

/** A VP8 frame that depends on the one before. */
export const vp8Delta = (bytes = 60): Buffer => Buffer.alloc(bytes, 0x11);

export interface Vp9FrameOptions {
  profile?: number;
  key?: boolean;
  shown?: boolean;
  intraOnly?: boolean;
  /** A frame that is no key frame has the size of an earlier one by default. */
  size?: readonly [width: number, height: number];
}

/** A VP9 frame, section 6.2 of the specification. */
export function vp9Frame({ profile = 0, key = false, shown = true, intraOnly = false, size }: Vp9FrameOptions): Buffer {
  const sync = '010010011000001101000010';
  const number = (value: number, bits: number): string => value.toString(2).padStart(bits, '0');
  const sides = size === undefined ? '' : number(size[0] - 1, 16) + number(size[1] - 1, 16);
  const start = `10${profile & 1}${profile >> 1}${profile === 3 ? '0' : ''}0${key ? 0 : 1}${shown ? 1 : 0}0`;
  const colours = `${profile >= 2 ? '0' : ''}0010${profile % 2 === 1 ? '000' : ''}`;
  let bits = start;
  if (key) bits += sync + colours + sides;
  else {
    if (!shown) bits += intraOnly ? '1' : '0';
    bits += '00';
    if (intraOnly) bits += `${sync}${profile > 0 ? colours : ''}11111111${sides}`;
    else bits += `11111111${'0000'.repeat(3)}${size === undefined ? '1' : `000${sides}`}`;
  }
  const bytes = bits.padEnd(Math.ceil(bits.length / 8) * 8, '0').match(/.{8}/g) ?? [];

  return Buffer.concat([Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2))), Buffer.alloc(40, 0x55)]);
}
