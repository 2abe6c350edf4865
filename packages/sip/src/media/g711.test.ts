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
  ['PCMU', 0, 0xff, 0],
  ['PCMU', 1000, 0xce, 988],
  ['PCMU', -1000, 0x4e, -988],
  ['PCMU', 32_767, 0x80, 32_124],
  ['PCMU', -32_768, 0x00, -32_124],
  ['PCMA', 0, 0xd5, 8],
  ['PCMA', -1, 0x55, -8],
  ['PCMA', 1000, 0xfa, 1008],
  ['PCMA', -1000, 0x7a, -1008],
  ['PCMA', 32_767, 0xaa, 32_256],
  ['PCMA', -32_768, 0x2a, -32_256],
] as const)('%s encodes %i as %i and decodes it as %i', (name, sample, byte, heard) => {
  const coded = encodeG711(name, Int16Array.of(sample));
  expect(coded).toEqual(Buffer.of(byte));
  expect(decodeG711(name, coded)).toEqual(Int16Array.of(heard));
});
