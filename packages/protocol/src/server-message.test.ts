import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import {
  decodeServerMessage,
  encodeNotification,
  encodeServerMessage,
  type Notification,
  ProtocolError,
  type ServerMessage,
} from './index.js';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const roomId = 'r';
const peerId = 'p';
const componentId = 'c';
const track = { id: 't', type: 'video', metadata: { name: 'screen' } } as const;

/** Every notification with its field number. */
const catalogue: [number, Notification][] = [
  [1, { type: 'roomCrashed', roomId }],
  [2, { type: 'peerConnected', roomId, peerId }],
  [3, { type: 'peerDisconnected', roomId, peerId }],
  [4, { type: 'peerCrashed', roomId, peerId, reason: 'why' }],
  [5, { type: 'componentCrashed', roomId, componentId }],
  [10, { type: 'roomCreated', roomId }],
  [11, { type: 'roomDeleted', roomId }],
  [13, { type: 'hlsPlayable', roomId, componentId }],
  [14, { type: 'hlsUploaded', roomId }],
  [15, { type: 'hlsUploadCrashed', roomId }],
  [16, { type: 'peerMetadataUpdated', roomId, peerId, metadata: { a: [1, null] } }],
  [17, { type: 'trackAdded', roomId, owner: { peerId }, track }],
  [18, { type: 'trackRemoved', roomId, owner: { componentId }, track: { ...track, type: 'audio' } }],
  [19, { type: 'trackMetadataUpdated', roomId, owner: { peerId }, track: { ...track, metadata: null } }],
  [20, { type: 'peerAdded', roomId, peerId }],
  [21, { type: 'peerDeleted', roomId, peerId }],
  [1000, { type: 'dataMessage', roomId, peerId, label: 'chat', to: [], data: 'grüße' }],
  [1000, { type: 'dataMessage', roomId, peerId, label: 'chat', to: ['q', 's'], data: Uint8Array.of(0, 255) }],
  [1000, { type: 'dataMessage', roomId, peerId, label: 'chat', to: [], data: '' }],
  [1001, { type: 'recordingUploaded', roomId, componentId, prefix: 'a/b', files: ['c.ogg'] }],
  [1002, { type: 'recordingFailed', roomId, componentId, prefix: '', files: [], reason: 'down' }],
];
const requests: [number, ServerMessage][] = [
  [6, { type: 'authenticated' }],
  [7, { type: 'authRequest', token: 'x' }],
  [8, { type: 'subscribeRequest', eventType: 'metrics' }],
  [9, { type: 'subscribeResponse', eventType: 'serverNotification' }],
  [8, { type: 'subscribeRequest', eventType: 'data' }],
  [12, { type: 'metricsReport', metrics: {} }],
];

/** Returns the field number in a protobuf tag of up to two bytes. */
function fieldNumber(bytes: Uint8Array): number {
  const [first = 0, second = 0] = bytes;
  return (first < 0x80 ? first : (first & 0x7f) | (second << 7)) >> 3;
}

describe('ServerMessage', () => {
  test.each([...catalogue, ...requests])('returns field %i from a round trip under its number', (number, message) => {
    const bytes = encodeServerMessage(message);
    expect(fieldNumber(bytes)).toBe(number);
    expect(decodeServerMessage(bytes)).toEqual(message);
  });

  test('encodes an empty Authenticated with its tag', () => {
    expect(hex(encodeServerMessage({ type: 'authenticated' }))).toBe('3200');
  });

  test('sends metadata as compact JSON text, and missing metadata as the four characters null', () => {
    const tail = (metadata: unknown, length: number) => {
      const bytes = encodeNotification({ type: 'peerMetadataUpdated', roomId, peerId, metadata });
      // The last field of the message: tag, length, text.
      expect([...bytes.subarray(-length - 2, -length)]).toEqual([0x1a, length]);
      return Buffer.from(bytes.subarray(-length)).toString();
    };
    expect(tail({ name: 'peer one' }, 19)).toBe('{"name":"peer one"}');
    expect(tail(null, 4)).toBe('null');
    expect(tail(undefined, 4)).toBe('null');
    expect(tail('x', 3)).toBe('"x"');
  });

  test('distinguishes a subscription to an unknown type from a valid one', () => {
    expect(decodeServerMessage(Uint8Array.of(0x42, 0x00))).toEqual({ type: 'subscribeRequest', eventType: null });
    expect(decodeServerMessage(Uint8Array.of(0x42, 0x02, 0x08, 0x07))).toEqual({
      type: 'subscribeRequest',
      eventType: null,
    });
  });

  test('refuses a message above the limit before decoding it', () => {
    expect(() => decodeServerMessage(new Uint8Array(9), 8)).toThrow(
      expect.objectContaining({ code: 'FRAME_TOO_LARGE' }),
    );
  });

  test('returns any metadata from a round trip', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const metadata: unknown = JSON.parse(JSON.stringify(value));
        const message = { type: 'peerMetadataUpdated', roomId, peerId, metadata } as const;
        expect(decodeServerMessage(encodeNotification(message))).toEqual(message);
      }),
      { numRuns: fuzzRuns(1000) },
    );
  });

  test('decodes garbage to a message or throws a ProtocolError, nothing else', () => {
    const valid = [...catalogue, ...requests].map(([, message]) => encodeServerMessage(message));
    const damaged = fc
      .tuple(
        fc.constantFrom(...valid),
        fc.array(fc.tuple(fc.nat(40), fc.nat(255)), { minLength: 1, maxLength: 3 }),
        fc.nat(40),
      )
      .map(([bytes, edits, cut]) => {
        const copy = bytes.slice();
        for (const [index, value] of edits) copy[index % copy.length] = value;
        return cut < copy.length ? copy.subarray(0, cut) : copy;
      });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 64 }), damaged), (bytes) => {
        try {
          expect(typeof decodeServerMessage(bytes).type).toBe('string');
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: fuzzRuns(12_000) },
    );
  });
});
