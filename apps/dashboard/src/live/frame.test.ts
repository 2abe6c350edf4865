import { describe, expect, test } from '@jest/globals';
import { decodeServerMessage, encodeServerMessage, type ServerMessage } from '@bloom/protocol';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { authRequest, decodeFrame, subscribeRequest } from './frame.js';

const decoded = (message: ServerMessage) => decodeFrame(new Uint8Array(encodeServerMessage(message)).buffer);

describe('a frame of the server websocket', () => {
  test.each<[ServerMessage, Record<string, string>]>([
    [{ type: 'roomCreated', roomId: 'r' }, { roomId: 'r' }],
    [
      { type: 'peerCrashed', roomId: 'r', peerId: 'p', reason: '' },
      { roomId: 'r', peerId: 'p' },
    ],
    [
      { type: 'peerMetadataUpdated', roomId: 'r', peerId: 'p', metadata: { name: 'Änn' } },
      { roomId: 'r', peerId: 'p', metadata: '{"name":"Änn"}' },
    ],
    [
      {
        type: 'trackAdded',
        roomId: 'r',
        owner: { componentId: 'c' },
        track: { id: 't', type: 'video', metadata: null },
      },
      { roomId: 'r', componentId: 'c', trackId: 't' },
    ],
    [{ type: 'authenticated' }, {}],
  ])('is read as the server writes it: %j', (message, fields) => {
    expect(decoded(message)).toEqual({ type: message.type, fields });
  });

  test('asks as the server reads it', () => {
    const token = 'ü'.repeat(100);
    expect(decodeServerMessage(authRequest(token))).toEqual({ type: 'authRequest', token });
    expect(decodeServerMessage(subscribeRequest())).toEqual({
      type: 'subscribeRequest',
      eventType: 'serverNotification',
    });
  });

  test('that is no known message is ignored', () => {
    expect(decoded({ type: 'metricsReport', metrics: {} })).toBeUndefined();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const frame = decodeFrame(new Uint8Array(bytes).buffer);
        expect(frame === undefined || typeof frame.type === 'string').toBe(true);
      }),
      { numRuns: fuzzRuns(1_000) },
    );
  });
});
