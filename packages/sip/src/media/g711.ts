/** G.711 in both variants: converts 16-bit samples to bytes and back by table. */

const BIAS = 0x84;
const CLIP = 32_635;

function muLawOf(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(sample), CLIP) + BIAS;
  const exponent = Math.max(0, 31 - Math.clz32(magnitude) - 7);
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f;
  return ~(sign | (exponent << 4) | mantissa) & 0xff;
}

function sampleOfMuLaw(byte: number): number {
  const value = ~byte & 0xff;
  const magnitude = ((((value & 0x0f) << 3) + BIAS) << ((value >> 4) & 7)) - BIAS;
  return value & 0x80 ? -magnitude : magnitude;
}

function aLawOf(sample: number): number {
  // Codes 13 bits. Negative values count from -1, which makes both halves symmetric.
  const positive = sample >= 0;
  const magnitude = (positive ? sample : ~sample) >> 4;
  const exponent = magnitude < 32 ? (magnitude < 16 ? 0 : 1) : 31 - Math.clz32(magnitude) - 3;
  const mantissa = exponent < 2 ? magnitude & 0x0f : (magnitude >> (exponent - 1)) & 0x0f;
  return ((positive ? 0x80 : 0) | (exponent << 4) | mantissa) ^ 0x55;
}

function sampleOfALaw(byte: number): number {
  const value = byte ^ 0x55;
  const exponent = (value >> 4) & 7;
  const mantissa = value & 0x0f;
  const magnitude = exponent === 0 ? (mantissa << 4) + 8 : ((mantissa << 4) + 0x108) << (exponent - 1);
  return value & 0x80 ? magnitude : -magnitude;
}

interface Law {
  encode: Uint8Array;
  decode: Int16Array;
}

function law(encode: (sample: number) => number, decode: (byte: number) => number): Law {
  return {
    encode: Uint8Array.from({ length: 65_536 }, (_, index) => encode((index << 16) >> 16)),
    decode: Int16Array.from({ length: 256 }, (_, byte) => decode(byte)),
  };
}

const laws = { PCMU: law(muLawOf, sampleOfMuLaw), PCMA: law(aLawOf, sampleOfALaw) };
export type G711Name = keyof typeof laws;

/** Returns one byte per sample. */
export function encodeG711(name: G711Name, samples: Int16Array): Buffer {
  const table = laws[name].encode;
  const bytes = Buffer.allocUnsafe(samples.length);
  for (let at = 0; at < samples.length; at += 1) bytes[at] = table[(samples[at] as number) & 0xffff] as number;
  return bytes;
}

export function decodeG711(name: G711Name, bytes: Uint8Array): Int16Array {
  const table = laws[name].decode;
  const samples = new Int16Array(bytes.length);
  for (let at = 0; at < bytes.length; at += 1) samples[at] = table[bytes[at] as number] as number;
  return samples;
}
