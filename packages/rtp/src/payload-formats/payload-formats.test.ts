import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { RtpView } from '../rtp-view.js';
import { formatParameters } from './payload-format.js';
import { CODEC_NAMES, isCodecName, payloadFormat } from './payload-formats.js';

test('does not treat names inherited from Object as codecs', () => {
  expect(isCodecName('opus')).toBe(true);
  expect(isCodecName('constructor')).toBe(false);
});

test('uses the first of repeated format parameters', () => {
  expect(formatParameters('A=1; b = 2 ;;C;a=3')).toEqual(
    new Map([
      ['a', '1'],
      ['b', '2'],
      ['c', ''],
    ]),
  );
});

describe.each(CODEC_NAMES)('payload format %s', (name) => {
  const format = payloadFormat(name);

  test('reads any payload without an error, and only the bytes within it', () => {
    const view = new RtpView();
    const reader = format.createReader();
    const assembler = format.createAssembler();
    const header = Buffer.from('806000010000000000000001', 'hex');
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.boolean(), (bytes, marker) => {
        const payload = Buffer.from(bytes);
        expect(view.parse(Buffer.concat([header, payload]))).toBe(true);
        if (reader.read(view)) expect(reader.headerLength).toBeLessThanOrEqual(payload.length);
        expect(assembler.push({ sequence: 1, timestamp: 0, marker, payload }).length).toBeLessThanOrEqual(2);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('judges any format parameters without an error', () => {
    fc.assert(
      fc.property(fc.string(), (parameters) => {
        expect(format.rank(parameters)).toBeGreaterThanOrEqual(0);
        expect(format.obstacle(parameters)).not.toBe('');
      }),
      { numRuns: fuzzRuns(500) },
    );
  });
});
