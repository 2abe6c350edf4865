import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import {
  JoinRequest,
  SessionDescription,
  SyncState,
  WrappedJoinRequest,
  WrappedJoinRequest_Compression,
} from '@livekit/protocol';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { readRequest } from '../session/session-message.js';
import { readJoinRequest, requestsWith } from './join-request.js';

const { NONE, GZIP } = WrappedJoinRequest_Compression;

function parameter(joinRequest: Uint8Array, compression = NONE): string {
  return Buffer.from(new WrappedJoinRequest({ joinRequest, compression }).toBinary()).toString('base64url');
}

const refusal = async (text: string | null): Promise<string> =>
  readJoinRequest(text).then(
    () => 'accepted',
    (error: unknown) => (error as Error).message,
  );

describe('the parameter join_request', () => {
  const join = new JoinRequest({ metadata: 'hello', participantSid: 'PA_1' }).toBinary();

  test.each([
    ['plain', parameter(join)],
    ['compressed', parameter(gzipSync(join), GZIP)],
    ['padded', `${parameter(join)}==`],
  ])('reads a join_request %s', async (_form, text) => {
    expect((await readJoinRequest(text)).metadata).toBe('hello');
  });

  test.each([
    ['absent', null, 'the parameter join_request is missing'],
    ['longer than 64 KiB', 'A'.repeat(65_537), 'the parameter join_request exceeds 65536 bytes'],
    ['compressed garbage', parameter(Buffer.from('garbage'), GZIP), 'the parameter join_request cannot be read'],
    ['in an unknown compression', parameter(join, 7 as never), 'the parameter join_request cannot be read'],
    ['half of a message', parameter(join.subarray(0, 4)), 'the parameter join_request cannot be read'],
  ])('refuses a join_request that is %s', async (_what, text, reason) => {
    expect(await refusal(text)).toBe(reason);
  });

  test('refuses a join_request once it has inflated to 1 MiB, whatever its full size', async () => {
    const bomb = gzipSync(Buffer.alloc(30 * 1024 * 1024));
    expect(await refusal(parameter(bomb, GZIP))).toBe('the parameter join_request exceeds 1048576 bytes');
  });

  test('reads the descriptions of a large call to which somebody comes back', async () => {
    const sdp = 'a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n'.repeat(5_000);
    const syncState = new SyncState({ offer: { type: 'offer', sdp }, answer: { type: 'answer', sdp } });
    const join = new JoinRequest({ reconnect: true, syncState }).toBinary();
    expect(join.length).toBeGreaterThan(400 * 1024);
    expect(await refusal(parameter(gzipSync(join), GZIP))).toBe('accepted');
  });

  test('reads any join_request or refuses it with a reason', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        const outcome = await refusal(Buffer.from(bytes).toString('base64url'));
        expect(['accepted', 'missing', 'cannot be read'].some((each) => outcome.endsWith(each))).toBe(true);
      }),
      { numRuns: fuzzRuns(200) },
    );
  });

  test('carries the requests that follow the join, the offer last', () => {
    const publisherOffer = new SessionDescription({ type: 'offer', sdp: 'v=0' });
    const requests = requestsWith(new JoinRequest({ publisherOffer, addTrackRequests: [{ cid: 'one' }] }));
    expect(requests.map((text) => readRequest(Buffer.from(text, 'base64'))?.message.case)).toEqual([
      'addTrack',
      'offer',
    ]);
  });
});
