import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { firstBytes } from './first-bytes.js';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1');
/** Header of an Allocate request of eight bytes. */
const ALLOCATE = Uint8Array.of(0, 3, 0, 8, 0x21, 0x12, 0xa4, 0x42);

const garbage = fc.uint8Array({ maxLength: 64 });
/** Bytes that look like STUN, perhaps with one wrong byte. */
const nearly = fc
  .tuple(fc.uint8Array({ minLength: 4, maxLength: 4, max: 8 }), fc.nat(7), fc.nat(255), fc.nat(20))
  .map(([start, at, byte, length]) => {
    const message = Uint8Array.from([...start, ...ALLOCATE.subarray(4), ...new Uint8Array(12)]);
    message[at] = byte;
    return message.subarray(0, length);
  });

describe('the first bytes of a connection', () => {
  test.each([
    ['a request', bytes('GET / HTTP/1.1\r\n'), 'http'],
    ['one letter', bytes('P'), 'http'],
    ['an empty line, which may precede a request', bytes('\r\n'), 'http'],
    ['the preface of HTTP/2, which the parser refuses', bytes('PRI * HTTP/2.0'), 'http'],
    ['ChannelData, which cannot begin a connection', Uint8Array.of(0x40, 0, 0, 4, 1, 2, 3, 4), 'http'],
    ['TLS within TLS', Uint8Array.of(0x16, 3, 1, 2), 'http'],
    ['an Allocate request', ALLOCATE, 'turn'],
    ['half of an Allocate request', ALLOCATE.subarray(0, 7), 'undecided'],
    ['nothing', new Uint8Array(0), 'undecided'],
    ['a STUN message without magic cookie', Uint8Array.of(0, 3, 0, 8, 0x21, 0x12, 0xa4, 0x43), 'neither'],
    ['a STUN message whose length is not a multiple of four', Uint8Array.of(0, 3, 0, 7), 'neither'],
    ['zeros', new Uint8Array(64), 'neither'],
  ])('recognizes the first bytes of %s', (_what, first, expected) => {
    expect(firstBytes(first)).toBe(expected);
  });

  test('never decides differently when more bytes follow', () => {
    fc.assert(
      fc.property(fc.oneof(garbage, nearly), (all) => {
        const verdicts = Array.from({ length: all.length + 1 }, (_, i) => firstBytes(all.subarray(0, i)));
        const decided = verdicts.filter((verdict) => verdict !== 'undecided');
        expect(new Set(decided).size).toBeLessThanOrEqual(1);
        expect(verdicts.slice(0, verdicts.length - decided.length)).not.toContain(decided[0] ?? 'turn');
      }),
      { numRuns: fuzzRuns(5_000) },
    );
  });

  test('decides after eight bytes, whatever they are', () => {
    fc.assert(
      fc.property(fc.oneof(garbage, nearly), (all) => {
        fc.pre(all.length >= 8);
        expect(firstBytes(all)).not.toBe('undecided');
      }),
      { numRuns: fuzzRuns(5_000) },
    );
  });

  test('finds the magic cookie in the first bytes of a TURN client', () => {
    fc.assert(
      fc.property(fc.oneof(garbage, nearly), (all) => {
        const isStun = all.length >= 8 && Buffer.from(all).readUInt32BE(4) === 0x2112a442;
        if (firstBytes(all) === 'turn') expect(isStun).toBe(true);
      }),
      { numRuns: fuzzRuns(5_000) },
    );
  });
});
