import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { PacketCapture, readCapture } from './packet-capture.js';

const clock = { ms: 1_000 };
const now = (): number => clock.ms;

/** Version 2, one contributing source, an extension of one word. */
const packet = Buffer.from('91e00001000000020000000300000004bede000110ff0000aabbccdd', 'hex');

describe('packet capture', () => {
  test('records time, direction, length and header, and discards what has been read', () => {
    const capture = new PacketCapture(now);
    capture.watch('in', packet, 0, packet.length);
    clock.ms = 1_000.25;
    capture.watch('out', Buffer.concat([Buffer.alloc(4), packet]), 4, 4 + packet.length);
    const { notes, dropped } = capture.take();
    expect(dropped).toBe(0);
    expect([...readCapture(notes)]).toEqual([
      { atMs: 1_000, direction: 'in', length: 28, header: new Uint8Array(packet.subarray(0, 24)) },
      { atMs: 1_000.25, direction: 'out', length: 28, header: new Uint8Array(packet.subarray(0, 24)) },
    ]);
    expect(capture.take().notes).toHaveLength(0);
  });

  test('omits RTCP and anything that is not a packet', () => {
    const capture = new PacketCapture(now);
    const rtcp = Buffer.from(packet);
    rtcp[1] = 200;
    capture.watch('in', rtcp, 0, rtcp.length);
    capture.watch('in', packet, 0, 20);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(80), fc.nat(80), (bytes, a, b) => {
        const end = Math.min(bytes.length, Math.max(a, b));
        const start = Math.min(a, b, end);
        capture.watch('in', Buffer.from(bytes), start, end);
        for (const { header, length } of readCapture(capture.take().notes)) {
          expect(length).toBe(end - start);
          expect(header.length).toBeGreaterThanOrEqual(12);
          expect(header.length).toBeLessThanOrEqual(length);
        }
      }),
      { numRuns: fuzzRuns(10_000) },
    );
    expect(capture.take().notes).toHaveLength(0);
  });

  test('holds one megabyte if it is not read, and ends if it stays unread for long', () => {
    const capture = new PacketCapture(now);
    for (let i = 0; i < 40_000; i++) capture.watch('in', packet, 0, packet.length);
    const { notes, dropped } = capture.take();
    expect(notes.length).toBeLessThanOrEqual(1024 * 1024);
    expect(dropped).toBe(40_000 - notes.length / 37);
    expect(capture.isForgotten(clock.ms + 5_000)).toBe(false);
    expect(capture.isForgotten(clock.ms + 5_001)).toBe(true);
  });
});
