import fc from 'fast-check';
import { expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import { DataLink } from './data-link.js';
import { isSafePacket } from './sctp-packet.js';

function packet(...chunks: readonly (readonly number[])[]): Buffer {
  return Buffer.from([...new Uint8Array(12), ...chunks.flat()]);
}

/** A SACK with these gaps, as offsets. */
function sack(...gaps: readonly (readonly [number, number])[]): number[] {
  const words = gaps.flat().flatMap((word) => [word >> 8, word & 255]);
  return [3, 0, 0, 16 + words.length, ...new Uint8Array(8), 0, gaps.length, 0, 0, ...words];
}

const data = (stream: number): number[] => [
  0,
  3,
  0,
  17,
  0,
  0,
  0,
  1,
  stream >> 8,
  stream & 255,
  0,
  0,
  0,
  0,
  0,
  51,
  65,
  0,
  0,
  0,
];
const init = [1, 0, 0, 20, ...new Uint8Array(16)];

test.each([
  ['a short packet', Buffer.alloc(15), false],
  ['a chunk longer than the packet', packet([0, 3, 0, 40]), false],
  ['a chunk of no length', packet([6, 0, 0, 0]), false],
  ['data', packet(data(1_023)), true],
  ['data on a stream that we do not have', packet(data(1_024)), false],
  ['data without a byte', packet([0, 3, 0, 16, ...new Uint8Array(12)]), false],
  ['gaps in order', packet(sack([2, 2], [4, 4_096])), true],
  ['a gap that is too wide', packet(sack([2, 4_097])), false],
  ['gaps that overlap', packet(sack([2, 9], [9, 12])), false],
  ['a gap that ends before it begins', packet(sack([5, 4])), false],
  ['INIT', packet(init), true],
  ['INIT beside another chunk', packet(init, data(1)), false],
])('%s', (_, bytes, safe) => {
  expect(isSafePacket(bytes, false)).toBe(safe);
});

test('INIT is not taken on an established association', () => {
  expect(isSafePacket(packet(init), true)).toBe(false);
});

test('no packet makes a link throw', () => {
  const chunk = fc
    .tuple(fc.constantFrom(0, 1, 2, 3, 4, 6, 7, 9, 10, 11, 130, 192, 200), fc.uint8Array({ maxLength: 60 }))
    .map(([type, body]) => [type, 3, 0, 4 + body.length, ...body, ...new Uint8Array((4 - (body.length & 3)) & 3)]);
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.array(chunk, { maxLength: 5 }).map((all) => packet(...all)),
          fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
        ),
        { maxLength: 8 },
      ),
      (packets) => {
        const link = new DataLink({
          send: () => undefined,
          inTurn: () => true,
          onUp: () => undefined,
          onOpened: () => undefined,
          onMessage: () => undefined,
          onClosed: () => undefined,
          onDropped: () => undefined,
          onDown: () => undefined,
        });
        for (const each of packets) link.receive(each);
        link.end();
      },
    ),
    { numRuns: fuzzRuns(200) },
  );
});
