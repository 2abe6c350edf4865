import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { InsertedPackets } from './inserted-packets.js';

test('gives an inserted packet the number of the one it precedes, and moves all later ones', () => {
  const packets = new InsertedPackets();
  expect(packets.oursOf(100)).toBe(100);
  expect(packets.insertBefore(105)).toBe(105);
  expect([100, 104, 105, 106].map((number) => packets.oursOf(number))).toEqual([100, 104, 106, 107]);
  expect(packets.insertBefore(106)).toBe(107);
  expect([104, 105, 106].map((number) => packets.oursOf(number))).toEqual([104, 106, 108]);
});

test('gives each packet of the sender one number, which leads back to the packet', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 300 }), (insertions) => {
      const packets = new InsertedPackets();
      const taken: number[] = [];
      let number = 65_536;
      for (const isInserted of insertions) {
        if (isInserted) taken.push(packets.insertBefore(number));
        taken.push(packets.oursOf(number));
        number += 1;
      }
      expect(taken).toEqual(taken.map((_, i) => 65_536 + i));
      // 64 insertions are remembered.
      const recent = Math.max(65_536, number - 60);
      for (let senders = recent; senders < number; senders++) {
        expect(packets.sendersOf(packets.oursOf(senders))).toBe(senders);
      }
    }),
    { numRuns: fuzzRuns(200) },
  );
});
