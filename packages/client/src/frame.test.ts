import { expect, test } from '@jest/globals';
import { decodePeerMessage, encodePeerMessage, type PeerMessage } from '@bloom/protocol';
import { codePoint, fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { decodeFrame, encodeFrame } from './frame.js';

const buffer = (bytes: Uint8Array): ArrayBuffer => Uint8Array.from(bytes).buffer;
const text = fc.oneof(fc.string({ unit: codePoint(fc), maxLength: 400 }), fc.constant('x'.repeat(70_000)));

test('reads frames written by the server', () => {
  const message: fc.Arbitrary<PeerMessage> = fc.oneof(
    fc.constant({ type: 'authenticated' as const }),
    fc.record({ type: fc.constant('mediaEvent' as const), data: text }),
  );
  fc.assert(
    fc.property(message, (sent) => {
      expect(decodeFrame(buffer(encodePeerMessage(sent)))).toEqual(sent);
    }),
    { numRuns: fuzzRuns(300) },
  );
});

test('writes frames that the server reads', () => {
  fc.assert(
    fc.property(text, (content) => {
      expect(decodePeerMessage(encodeFrame('mediaEvent', content))).toEqual({ type: 'mediaEvent', data: content });
      expect(decodePeerMessage(encodeFrame('authRequest', content))).toEqual({ type: 'authRequest', token: content });
    }),
    { numRuns: fuzzRuns(300) },
  );
});

test('survives any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      expect(decodeFrame(buffer(bytes))).toHaveProperty('type');
    }),
    { numRuns: fuzzRuns(1_000) },
  );
});
