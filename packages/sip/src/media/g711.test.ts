import { describe, expect, test } from '@jest/globals';
import { decodeG711, encodeG711 } from './g711.js';

describe.each(['PCMU', 'PCMA'] as const)('%s', (name) => {
  test('encodes every decoded byte to itself', () => {
    const bytes = Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte));
    const again = encodeG711(name, decodeG711(name, bytes));
    // Mu-law has two zeros: 0x7f becomes 0xff.
    const expected = Buffer.from(bytes);
    if (name === 'PCMU') expected[0x7f] = 0xff;
    expect(again).toEqual(expected);
  });

  test('is off by at most half a step, which grows with the loudness', () => {
    const samples = Int16Array.from({ length: 65_536 }, (_, index) => index - 32_768);
    const heard = decodeG711(name, encodeG711(name, samples));
    const wrong = samples.filter((sample, index) => {
      const error = Math.abs((heard[index] as number) - Math.max(-32_635, Math.min(32_635, sample)));
      return error > (Math.abs(sample) + 132) / 32 + 8;
    });
    expect([...wrong]).toEqual([]);
  });
});

/** Corner values of ITU-T G.711 tables 1 and 2, scaled to 16 bits. */
test.each([
  { name: 'PCMU', sample: 0, byte: 0xff, heard: 0 },
  { name: 'PCMU', sample: 1000, byte: 0xce, heard: 988 },
  { name: 'PCMU', sample: -1000, byte: 0x4e, heard: -988 },
  { name: 'PCMU', sample: 32_767, byte: 0x80, heard: 32_124 },
  { name: 'PCMU', sample: -32_768, byte: 0x00, heard: -32_124 },
  { name: 'PCMA', sample: 0, byte: 0xd5, heard: 8 },
  { name: 'PCMA', sample: -1, byte: 0x55, heard: -8 },
  { name: 'PCMA', sample: 1000, byte: 0xfa, heard: 1008 },
  { name: 'PCMA', sample: -1000, byte: 0x7a, heard: -1008 },
  { name: 'PCMA', sample: 32_767, byte: 0xaa, heard: 32_256 },
  { name: 'PCMA', sample: -32_768, byte: 0x2a, heard: -32_256 },
] as const)('$name encodes $sample as $byte and decodes it as $heard', ({ name, sample, byte, heard }) => {
  const coded = encodeG711(name, Int16Array.of(sample));
  expect(coded).toEqual(Buffer.of(byte));
  expect(decodeG711(name, coded)).toEqual(Int16Array.of(heard));
});
