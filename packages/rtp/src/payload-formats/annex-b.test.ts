import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { splitAnnexB, toAnnexB } from '../index.js';
import { MAX_UNITS } from './annex-b.js';

test('separates units at start codes of three and four bytes, without the zeros around them', () => {
  const stream = Buffer.from([9, 9, 0, 0, 1, 0x67, 5, 0, 0, 0, 1, 0x68, 0, 0, 0, 0, 1, 0, 0, 1, 0x65, 7]);
  expect(splitAnnexB(stream)).toEqual([Buffer.from([0x67, 5]), Buffer.from([0x68]), Buffer.from([0x65, 7])]);
  expect(splitAnnexB(Buffer.from([1, 2, 3]))).toEqual([]);
});

test('restores joined units by splitting them', () => {
  // Encoders escape anything that looks like a start code, so no unit holds two consecutive zeros or ends in one.
  const nal = fc
    .uint8Array({ minLength: 1, maxLength: 40, min: 1 } as object)
    .map((bytes) => Buffer.from(bytes.map((b) => b || 1)));
  fc.assert(
    fc.property(fc.array(nal), (nals) => {
      expect(splitAnnexB(toAnnexB(nals))).toEqual(nals);
    }),
    { numRuns: fuzzRuns(2_000) },
  );
});

test('splits a stream full of start codes into no more units than a picture has', () => {
  const stream = Buffer.alloc(100_000);
  for (let at = 0; at < stream.length; at += 4) stream.set([0, 0, 1, 0x61], at);
  const nals = splitAnnexB(stream);
  expect(nals).toHaveLength(MAX_UNITS);
  expect(Buffer.concat(nals.slice(0, -1)).equals(Buffer.alloc(MAX_UNITS - 1, 0x61))).toBe(true);
  expect(nals.at(-1)?.equals(stream.subarray(MAX_UNITS * 4 - 1))).toBe(true);
  for (let at = 0; at + 3 < stream.length; at += 3) stream.set([0, 0, 1], at);
  expect(splitAnnexB(stream)).toHaveLength(1);
});

test('splits garbage without an error', () => {
  const bytes = fc.array(fc.constantFrom(0, 0, 0, 1, 0x65), { maxLength: 60 });
  fc.assert(
    fc.property(bytes, (list) => {
      for (const nal of splitAnnexB(Buffer.from(list))) expect(nal.length).toBeGreaterThan(0);
    }),
    { numRuns: fuzzRuns(10_000) },
  );
});
