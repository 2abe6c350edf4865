import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { PacketStore } from './packet-store.js';

function packet(sequence: number, length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, i) => (sequence * 7 + i) & 0xff));
}

describe('packet store', () => {
  test('finds exactly the packets whose bytes are still stored, unchanged', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: -5, max: 3 }), fc.integer({ min: 1, max: 120 })), { maxLength: 200 }),
        (steps) => {
          const store = new PacketStore({ packets: 16, bytes: 1000 });
          const lengths = new Map<number, number>();
          let newest = 65_530;
          for (const [step, length] of steps) {
            const sequence = newest + step;
            if (lengths.has(sequence)) continue;
            newest = Math.max(newest, sequence);
            lengths.set(sequence, length);
            store.put(sequence, Buffer.concat([Buffer.alloc(3), packet(sequence, length)]), 3, 3 + length, 0);
          }
          let found = 0;
          for (const [sequence, length] of lengths) {
            if (!store.find(sequence, 0)) continue;
            found += 1;
            expect(store.buffer.subarray(store.start, store.end).equals(packet(sequence, length))).toBe(true);
          }
          // The newest few always fit: 1,000 bytes, less one wasted packet at the end, hold 7 packets of 120 bytes. A
          // late one may share its entry with a newer one that is 16 numbers ahead.
          expect(found).toBeGreaterThanOrEqual(Math.min(lengths.size, 4));
        },
      ),
      { numRuns: fuzzRuns(1000) },
    );
  });

  test('does not find a packet once newer ones have overwritten its bytes', () => {
    const store = new PacketStore({ packets: 16, bytes: 1000 });
    for (let sequence = 1; sequence <= 8; sequence++) store.put(sequence, packet(sequence, 200), 0, 200, 0);
    const found = [1, 2, 3, 4, 5, 6, 7, 8].filter((sequence) => store.find(sequence, 0));
    expect(found).toEqual([4, 5, 6, 7, 8]);
  });

  test('tells when half of its bytes or of its packets has been used since a packet', () => {
    const store = new PacketStore({ packets: 16, bytes: 1000 });
    for (let sequence = 1; sequence <= 3; sequence++) store.put(sequence, packet(sequence, 200), 0, 200, 0);
    expect([1, 2, 3].map((sequence) => store.isCrowded(sequence, 3))).toEqual([true, false, false]);
    const small = new PacketStore({ packets: 16, bytes: 1000 });
    for (let sequence = 1; sequence <= 9; sequence++) small.put(sequence, packet(sequence, 10), 0, 10, 0);
    expect([1, 2].map((sequence) => small.isCrowded(sequence, 9))).toEqual([true, false]);
  });

  test('keeps a packet in one piece at the end of the ring', () => {
    const store = new PacketStore({ packets: 16, bytes: 1000 });
    for (let sequence = 1; sequence <= 4; sequence++) store.put(sequence, packet(sequence, 300), 0, 300, 0);
    expect(store.find(4, 0)).toBe(true);
    expect(store.buffer.subarray(store.start, store.end)).toEqual(packet(4, 300));
  });

  test('forgets packets that are too old', () => {
    const store = new PacketStore({ maxAgeMs: 500 });
    store.put(1, packet(1, 10), 0, 10, 1000);
    expect(store.find(1, 1500)).toBe(true);
    expect(store.find(1, 1501)).toBe(false);
    expect(store.find(2, 1000)).toBe(false);
  });

  test('keeps the newer of two packets that share an entry', () => {
    const store = new PacketStore({ packets: 4 });
    store.put(8, packet(8, 10), 0, 10, 0);
    store.put(4, packet(4, 10), 0, 10, 0);
    expect(store.find(8, 0)).toBe(true);
    expect(store.find(4, 0)).toBe(false);
  });

  test('ignores packets that are empty or larger than the store', () => {
    const store = new PacketStore({ bytes: 100 });
    store.put(1, Buffer.alloc(101), 0, 101, 0);
    store.put(2, Buffer.alloc(0), 0, 0, 0);
    expect(store.find(1, 0)).toBe(false);
    expect(store.find(2, 0)).toBe(false);
  });
});
