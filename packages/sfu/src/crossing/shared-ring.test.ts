import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { createRingMemory, RingReader, RingWriter } from './shared-ring.js';

function open(bytes: number, longest = 2_048): { writer: RingWriter; reader: RingReader } {
  const memory = createRingMemory(bytes);
  return { writer: new RingWriter(memory), reader: new RingReader(memory, Buffer.alloc(longest)) };
}

const packetOf = (length: number, fill: number): Buffer => Buffer.alloc(length, fill & 0xff);

/** Takes the next packet as its reader sees it. */
function take(reader: RingReader): { room: number; track: number; variant: number; bytes: Buffer } | undefined {
  if (!reader.next()) return undefined;
  const { room, track, variant, buffer, length } = reader.packet;
  return { room, track, variant, bytes: Buffer.from(buffer.subarray(0, length)) };
}

describe('a ring between two threads', () => {
  test('delivers every packet that fits once, in order and unchanged but for its number', () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ write: fc.integer({ min: 4, max: 1_500 }) }) },
      { weight: 2, arbitrary: fc.record({ read: fc.integer({ min: 1, max: 8 }) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1_000, max: 2_500 }), (steps, words) => {
        const { writer, reader } = open(words * 4);
        const [sent, received]: string[][] = [[], []];
        const read = (): boolean => {
          const packet = take(reader);
          if (packet !== undefined) received!.push(`${packet.track} ${packet.bytes.toString('latin1')}`);
          return packet !== undefined;
        };
        for (const [track, each] of steps.entries()) {
          if ('write' in each) {
            const bytes = packetOf(each.write, track);
            if (!writer.write({ room: 7, track, variant: 2 }, bytes, track)) continue;
            bytes.writeUInt16BE(track, 2);
            sent!.push(`${track} ${bytes.toString('latin1')}`);
          } else {
            for (let i = 0; i < each.read; i++) read();
          }
        }
        while (read());
        expect(received!.join() === sent!.join()).toBe(true);
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('never blocks the writer when a reader stops: packets are refused, and fit again once it reads', () => {
    const { writer, reader } = open(4_096);
    const route = { room: 1, track: 1, variant: 0 };
    let taken = 0;
    for (let i = 0; i < 1_000; i++) if (writer.write(route, packetOf(500, i), i)) taken++;
    expect(taken).toBe(7);
    for (let i = 0; i < 7; i++) expect(reader.next()).toBe(true);
    expect(reader.next()).toBe(false);
    expect(writer.write(route, packetOf(500, 1), 1)).toBe(true);
  });

  test('wakes a sleeping reader once, and never one that is awake', () => {
    const { writer, reader } = open(4_096);
    const route = { room: 1, track: 1, variant: 0 };
    expect(writer.mustWake()).toBe(false);
    expect(reader.sleep()).toBe(true);
    writer.write(route, packetOf(20, 1), 1);
    expect([writer.mustWake(), writer.mustWake()]).toEqual([true, false]);
    writer.write(route, packetOf(20, 2), 2);
    expect(writer.mustWake()).toBe(false);
  });

  test('does not let a reader fall asleep over a packet that arrives in the meantime', () => {
    const { writer, reader } = open(4_096);
    writer.write({ room: 1, track: 1, variant: 0 }, packetOf(20, 1), 1);
    expect(reader.sleep()).toBe(false);
    expect(writer.mustWake()).toBe(false);
    expect(reader.next()).toBe(true);
    expect(reader.sleep()).toBe(true);
  });

  test('skips a packet that is too long for the reader, and delivers the next one', () => {
    const { writer, reader } = open(8_192, 100);
    writer.write({ room: 1, track: 1, variant: 0 }, packetOf(101, 1), 1);
    writer.write({ room: 1, track: 2, variant: 0 }, packetOf(100, 2), 2);
    expect(take(reader)?.track).toBe(2);
    expect(reader.next()).toBe(false);
  });

  test('counts messages beside the ring until the reader takes them', () => {
    const { writer, reader } = open(4_096);
    writer.sent(1, 1_000);
    writer.sent(2, 500);
    writer.sent(2, 200);
    reader.taken(1, 1_000);
    reader.taken(2, 200);
    expect(writer.waitingBytes).toBe(500);
    expect(writer.waitingBytesOf(1)).toBe(0);
    expect(writer.waitingBytesOf(2)).toBe(500);
  });
});
