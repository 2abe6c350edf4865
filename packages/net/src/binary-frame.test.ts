import { expect, test } from '@jest/globals';
import { binaryFrame } from './binary-frame.js';

// The header lengths of RFC 6455 section 5.2, with the RFC's own examples for 256 and 65,536 bytes.
test.each([
  [0, '8200'],
  [5, '8205'],
  [125, '827d'],
  [126, '827e007e'],
  [256, '827e0100'],
  [65_535, '827effff'],
  [65_536, '827f0000000000010000'],
])('a payload of %d bytes gets the header %s', (length, header) => {
  const payload = Buffer.alloc(length, 0xab);

  expect(binaryFrame(payload)).toEqual(Buffer.concat([Buffer.from(header, 'hex'), payload]));
});
