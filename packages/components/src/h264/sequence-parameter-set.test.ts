import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { parameterSet } from '../testing/parameter-set.js';
import { SPS } from '../testing/room.js';
import { readSequenceParameterSet } from './sequence-parameter-set.js';

test("reads an encoder's parameter set to its end", () => {
  expect(readSequenceParameterSet(SPS)).toEqual({
    id: 0,
    level: 30,
    width: 640,
    height: 360,
    columns: 40,
    rows: 23,
    chroma: 1,
    bitDepth: 8,
    referenceFrames: 3,
    restriction: { reorderedFrames: 0, bufferedFrames: 3 },
  });
});

test('finds references and the restriction after everything that may precede them', () => {
  const nal = parameterSet({ profile: 244, chroma: 3, bitDepth: 10, references: 7, restriction: [2, 9], full: true });
  expect(readSequenceParameterSet(nal)).toMatchObject({
    chroma: 3,
    bitDepth: 10,
    referenceFrames: 7,
    restriction: { reorderedFrames: 2, bufferedFrames: 9 },
  });
});

test('counts both fields of interlaced pictures', () => {
  expect(readSequenceParameterSet(parameterSet({ rows: 68, interlaced: true }))).toMatchObject({ rows: 68 });
});

test('distinguishes level 1b from level 1.1', () => {
  const nal = parameterSet({ level: 11 });
  expect(readSequenceParameterSet(nal)?.level).toBe(11);
  nal[2] = 0x10;
  expect(readSequenceParameterSet(nal)?.level).toBe(9);
});

test('treats a truncated restriction as absent and any earlier truncation as invalid', () => {
  const nal = parameterSet({ restriction: [1, 2] });
  const { restriction, ...rest } = readSequenceParameterSet(nal)!;
  expect(restriction).toEqual({ reorderedFrames: 1, bufferedFrames: 2 });
  expect(readSequenceParameterSet(nal.subarray(0, -2))).toEqual(rest);
  expect(readSequenceParameterSet(nal.subarray(0, 6))).toBeUndefined();
});

test('rejects values that the standard forbids', () => {
  expect(readSequenceParameterSet(parameterSet({ id: 32 }))).toBeUndefined();
  expect(readSequenceParameterSet(parameterSet({ profile: 100, chroma: 4 }))).toBeUndefined();
  expect(readSequenceParameterSet(parameterSet({ profile: 100, bitDepth: 15 }))).toBeUndefined();
  expect(readSequenceParameterSet(parameterSet({ columns: 1_025 }))).toBeUndefined();
});

test('reads garbage as nothing or as plausible values', () => {
  const noise = fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes));
  const broken = fc
    .tuple(fc.nat(30), fc.nat(255))
    .map(([at, byte]) => Buffer.from(parameterSet({ restriction: [1, 2], full: true })).fill(byte, at, at + 1));
  fc.assert(
    fc.property(fc.oneof(noise, broken), (nal) => {
      const read = readSequenceParameterSet(nal);
      if (read === undefined) return;
      expect(read.columns * read.rows).toBeLessThanOrEqual(1_024 * 1_024);
      expect(read.width).toBeGreaterThan(0);
      expect(read.height).toBeGreaterThan(0);
    }),
    { numRuns: fuzzRuns(10_000) },
  );
});
