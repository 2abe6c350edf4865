import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { decodePeerMessage, encodePeerMessage, MAX_PEER_MESSAGE_BYTES, ProtocolError } from './index.js';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

describe('PeerMessage', () => {
  test('encodes an empty Authenticated with its tag', () => {
    expect(hex(encodePeerMessage({ type: 'authenticated' }))).toBe('0a00');
  });

  test('uses the field numbers of the published clients', () => {
    expect(hex(encodePeerMessage({ type: 'authRequest', token: 'ab' }))).toBe('12040a026162');
    expect(hex(encodePeerMessage({ type: 'mediaEvent', data: '{}' }))).toBe('1a040a027b7d');
  });

  test('decodes an AuthRequest without a token field as an empty token', () => {
    expect(decodePeerMessage(Uint8Array.of(0x12, 0x00))).toEqual({ type: 'authRequest', token: '' });
  });

  test('skips unknown fields', () => {
    const known = encodePeerMessage({ type: 'authRequest', token: 't' });
    expect(decodePeerMessage(Uint8Array.of(0xa2, 0x06, 0x01, 0xff, ...known))).toEqual({
      type: 'authRequest',
      token: 't',
    });
  });

  test('reports a message without known content', () => {
    expect(decodePeerMessage(new Uint8Array())).toEqual({ type: 'unknown' });
    expect(decodePeerMessage(Uint8Array.of(0xa2, 0x06, 0x00))).toEqual({ type: 'unknown' });
  });

  test('refuses a frame above the limit before decoding it', () => {
    const frame = new Uint8Array(MAX_PEER_MESSAGE_BYTES + 1);
    expect(() => decodePeerMessage(frame)).toThrow(expect.objectContaining({ code: 'FRAME_TOO_LARGE' }));
  });

  test('returns text with any characters from a round trip', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (data) => {
        expect(decodePeerMessage(encodePeerMessage({ type: 'mediaEvent', data }))).toEqual({
          type: 'mediaEvent',
          data,
        });
      }),
      { numRuns: fuzzRuns(2000) },
    );
  });

  test('decodes garbage to a message or throws a ProtocolError, nothing else', () => {
    const valid = encodePeerMessage({ type: 'mediaEvent', data: '{"type":"connect","data":{"metadata":null}}' });
    const damaged = fc
      .array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
      .map((edits) => {
        const bytes = valid.slice();
        for (const [index, value] of edits) bytes[index] = value;
        return bytes;
      });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 64 }), damaged), (bytes) => {
        try {
          expect(typeof decodePeerMessage(bytes).type).toBe('string');
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: fuzzRuns(12_000) },
    );
  });
});
