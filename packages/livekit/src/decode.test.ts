import { describe, expect, test } from '@jest/globals';
import { JoinRequest, SignalRequest, UpdateSubscription } from '@livekit/protocol';
import { binaryOf, decode, MAX_FIELDS } from './decode.js';
import { readRequest } from './session/session-message.js';

/** Returns a request with this number of fields. */
function subscription(fields: number): Uint8Array {
  const value = new UpdateSubscription({ participantTracks: Array.from({ length: fields - 1 }, () => ({})) });

  return new SignalRequest({ message: { case: 'subscription', value } }).toBinary();
}

const textOf = (objects: number): string =>
  JSON.stringify({ subscription: { participantTracks: Array.from({ length: objects }, () => ({})) } });

describe('the sum of fields', () => {
  test('reads a request of 10,000 fields', () => {
    expect(readRequest(subscription(MAX_FIELDS))?.message.case).toBe('subscription');
  });

  test('refuses a request of more fields, although it has only 20 KB', () => {
    expect(readRequest(subscription(MAX_FIELDS + 1))).toBeUndefined();
  });

  test('counts fields that the message does not have', () => {
    const unknown = Buffer.alloc(2 * (MAX_FIELDS + 1));
    // Field 15 of no bytes.
    for (let i = 0; i < unknown.length; i += 2) unknown[i] = (15 << 3) | 2;
    expect(() => decode(JoinRequest, unknown)).toThrow('more than 10000 fields');
  });

  test('refuses groups in groups without end', () => {
    expect(() => decode(JoinRequest, Buffer.alloc(300_000, (15 << 3) | 3))).toThrow();
  });

  test('counts no commas and braces in the strings of a text', () => {
    const metadata = '{,'.repeat(MAX_FIELDS);
    const request = SignalRequest.fromBinary(binaryOf(JSON.stringify({ updateMetadata: { metadata } }))!);
    expect(request.message.value).toMatchObject({ metadata });
  });

  test('refuses a text of values in values without end', () => {
    expect(binaryOf(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)).toBeUndefined();
  });

  test('reads a request in text, and refuses one of too many values', () => {
    const request = SignalRequest.fromBinary(binaryOf(textOf(100)) ?? Buffer.alloc(0));
    expect(request.message.value).toMatchObject({ participantTracks: { length: 100 } });
    expect(binaryOf(textOf(MAX_FIELDS))).toBeUndefined();
  });
});
