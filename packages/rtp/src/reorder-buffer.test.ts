import { describe, expect, test } from '@jest/globals';
import { type OrderedPacket, ReorderBuffer } from './reorder-buffer.js';

describe('reorder buffer', () => {
  const collect = () => {
    const seen: (number | string)[] = [];
    return {
      seen,
      out: {
        packet: (p: OrderedPacket) => seen.push(p.sequence),
        gap: (n: number) => seen.push(`gap ${n}`),
      },
    };
  };
  const packet = (sequence: number): OrderedPacket => ({
    sequence,
    timestamp: 0,
    marker: false,
    payload: Buffer.alloc(1),
  });

  test('puts late packets back in their place', () => {
    const buffer = new ReorderBuffer({ maxDelayMs: 100 });
    const { seen, out } = collect();
    for (const [at, sequence] of [10, 12, 11, 14, 13].entries()) {
      buffer.push(packet(sequence), at);
      buffer.drain(at, out);
    }
    expect(seen).toEqual([10, 11, 12, 13, 14]);
    expect(buffer.size).toBe(0);
  });

  test('gives up a missing packet after the delay, and ignores it if it arrives later', () => {
    const buffer = new ReorderBuffer({ maxDelayMs: 100 });
    const { seen, out } = collect();
    buffer.push(packet(1), 0);
    buffer.push(packet(4), 10);
    buffer.drain(109, out);
    expect(seen).toEqual([1]);
    buffer.drain(110, out);
    buffer.push(packet(2), 111);
    buffer.drain(300, out);
    expect(seen).toEqual([1, 'gap 2', 4]);
  });

  test('never holds more than its limit', () => {
    const buffer = new ReorderBuffer({ maxDelayMs: 1e9, maxPackets: 16 });
    const { out } = collect();
    for (let i = 0; i < 1000; i += 1) {
      buffer.push(packet(i * 2), i);
      buffer.drain(i, out);
      expect(buffer.size).toBeLessThanOrEqual(16);
    }
  });
});
