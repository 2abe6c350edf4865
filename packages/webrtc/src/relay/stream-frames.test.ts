import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { MessageClass, Method } from '../stun/constants.js';
import { StunWriter } from '../stun/writer.js';
import { writeChannelHeader } from './channel-data.js';
import { StreamFrames, streamFrame } from './stream-frames.js';

const stun = new StunWriter(Method.allocate, MessageClass.request, Buffer.alloc(12)).text(0x8022, 'x').finish();

function channelFrame(payload: Uint8Array): Buffer {
  const frame = Buffer.concat([Buffer.alloc(4), payload]);
  writeChannelHeader(frame, 0x4001, payload.length);
  return frame;
}

describe('frames of a stream', () => {
  test('yields whole frames however the stream is split', () => {
    const frame = fc.oneof(
      fc.constant(stun),
      fc.uint8Array({ maxLength: 70 }).map((payload) => channelFrame(payload)),
    );
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        (sent, cuts) => {
          const bytes = Buffer.concat(sent.map((one) => streamFrame(one)));
          const frames = new StreamFrames();
          const got: Buffer[] = [];
          for (let at = 0, turn = 0; at < bytes.length; turn++) {
            const size = cuts[turn % cuts.length] as number;
            for (const one of frames.push(bytes.subarray(at, at + size))) got.push(Buffer.from(one));
            at += size;
          }
          expect(got).toEqual(sent);
          expect(frames.broken).toBe(false);
        },
      ),
      { numRuns: fuzzRuns(3_000) },
    );
  });

  test('pads frames with zeros to four bytes on the stream', () => {
    expect(streamFrame(channelFrame(Buffer.from('abcde')))).toEqual(Buffer.from('400100056162636465000000', 'hex'));
  });

  test.each([
    ['the first byte of RTP', '80600001'],
    ['an HTTP request', '47455420'],
    ['a TLS hello', '16030100'],
    ['a STUN message that is too long', '0003ffec'],
    ['a STUN length that is not a multiple of four', '00030001'],
    ['a channel frame that is too long', '4001ffff'],
  ])('%s breaks the stream permanently', (_what, hex) => {
    const frames = new StreamFrames();
    const got = [...frames.push(Buffer.concat([Buffer.from(hex, 'hex'), Buffer.alloc(40)]))];
    expect(got).toEqual([]);
    expect(frames.broken).toBe(true);
    expect([...frames.push(stun)]).toEqual([]);
  });

  test('garbage never throws and never yields more bytes than went in', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 90 }), { maxLength: 5 }), (chunks) => {
        const frames = new StreamFrames();
        let yielded = 0;
        for (const chunk of chunks) for (const frame of frames.push(Buffer.from(chunk))) yielded += frame.length;
        expect(yielded).toBeLessThanOrEqual(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
