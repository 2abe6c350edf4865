import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { HANDSHAKE_HEADER, HandshakeAssembler, readFragments } from './handshake-messages.js';
import { readRecords } from './records.js';

interface Piece {
  type: number;
  messageSeq: number;
  body: Uint8Array;
  offset: number;
  size: number;
}

function fragment({ type, messageSeq, body, offset, size }: Piece): Buffer {
  const out = Buffer.alloc(HANDSHAKE_HEADER + size);
  out[0] = type;
  out.writeUIntBE(body.length, 1, 3);
  out.writeUInt16BE(messageSeq, 4);
  out.writeUIntBE(offset, 6, 3);
  out.writeUIntBE(size, 9, 3);
  out.set(body.subarray(offset, offset + size), HANDSHAKE_HEADER);
  return out;
}

function whole(messageSeq: number, body: Uint8Array, type = 1): Buffer {
  return fragment({ type, messageSeq, body, offset: 0, size: body.length });
}

function record(type: number, epoch: number, body: Uint8Array): Buffer {
  const out = Buffer.alloc(13 + body.length);
  out[0] = type;
  out.writeUInt16BE(0xfefd, 1);
  out.writeUInt16BE(epoch, 3);
  out.writeUIntBE(77, 5, 6);
  out.writeUInt16BE(body.length, 11);
  out.set(body, 13);
  return out;
}

describe('reading records', () => {
  test('reads the records of one datagram in order', () => {
    const datagram = Buffer.concat([record(22, 0, Buffer.from('ab')), record(21, 1, Buffer.from('c'))]);
    expect(
      readRecords(datagram)?.map(({ type, epoch, sequence, fragment }) => [type, epoch, sequence, fragment.toString()]),
    ).toEqual([
      [22, 0, 77, 'ab'],
      [21, 1, 77, 'c'],
    ]);
  });

  test('ignores the records after a malformed one', () => {
    const good = record(22, 0, Buffer.from('ab'));
    expect(readRecords(Buffer.concat([good, Buffer.from('1603')]))).toHaveLength(1);
    expect(readRecords(Buffer.concat([Buffer.from('16'), good]))).toBeUndefined();
  });

  test('never throws on garbage, and reads nothing beyond the datagram', () => {
    const header = fc.tuple(fc.integer({ min: 18, max: 27 }), fc.nat(3), fc.nat(80)).map(([type, epoch, length]) => {
      const out = record(type, epoch, Buffer.alloc(0));
      out.writeUInt16BE(length, 11);
      return out;
    });
    const part = fc.oneof(fc.uint8Array({ maxLength: 60 }), header);
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
        const datagram = Buffer.concat(parts);
        const records = readRecords(datagram) ?? [];
        expect(records.reduce((sum, { whole }) => sum + whole.length, 0)).toBeLessThanOrEqual(datagram.length);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});

describe('assembling handshake messages', () => {
  test('reassembles messages from fragments in any order, with repetitions', () => {
    const bodies = fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(bodies, fc.integer({ min: 1, max: 20 }), fc.infiniteStream(fc.nat()), (messages, size, random) => {
        const pieces = messages.flatMap((body, messageSeq) => {
          const list: Buffer[] = [];
          for (let offset = 0; offset < body.length; offset += size) {
            list.push(fragment({ type: 1, messageSeq, body, offset, size: Math.min(size, body.length - offset) }));
          }
          return list;
        });
        const shuffled = [...pieces, ...pieces]
          .map((piece) => [random.next().value as number, piece] as const)
          .toSorted((a, b) => a[0] - b[0]);
        const assembler = new HandshakeAssembler();
        const got: Buffer[] = [];
        for (const [, piece] of shuffled) {
          for (const one of readFragments(piece) ?? []) assembler.add(one);
          for (let message = assembler.take(); message; message = assembler.take()) got.push(message);
        }
        expect(got).toEqual(messages.map((body, messageSeq) => whole(messageSeq, body)));
      }),
      { numRuns: fuzzRuns(2_000) },
    );
  });

  test('does not mix contradicting fragments: the later one starts over', () => {
    const assembler = new HandshakeAssembler();
    const body = Buffer.alloc(20, 1);
    const add = (bytes: Buffer): boolean[] => (readFragments(bytes) ?? []).map((one) => assembler.add(one));
    expect(add(fragment({ type: 1, messageSeq: 0, body: Buffer.alloc(30, 2), offset: 0, size: 20 }))).toEqual([true]);
    expect(add(fragment({ type: 1, messageSeq: 0, body, offset: 10, size: 10 }))).toEqual([true]);
    expect(assembler.take()).toBeUndefined();
    expect(add(fragment({ type: 1, messageSeq: 0, body, offset: 0, size: 10 }))).toEqual([true]);
    expect(assembler.take()).toEqual(whole(0, body));
  });

  test('drops messages that are too long, too far ahead or too many', () => {
    const assembler = new HandshakeAssembler();
    const head = (messageSeq: number, length: number) => ({
      type: 1,
      length,
      messageSeq,
      offset: 0,
      data: Buffer.alloc(1),
    });
    expect(assembler.add(head(8, 10))).toBe(false);
    for (const seq of [0, 1, 2, 3]) expect(assembler.add(head(seq, 16_000))).toBe(true);
    expect(assembler.add(head(4, 16_000))).toBe(false);
    const long = fragment({ type: 1, messageSeq: 0, body: Buffer.alloc(17_000), offset: 0, size: 10 });
    expect(readFragments(long)).toBeUndefined();
  });

  test('never throws on garbage', () => {
    const head = fc.record({
      type: fc.nat(255),
      messageSeq: fc.nat(10),
      body: fc.uint8Array({ maxLength: 40 }),
      offset: fc.nat(45),
      size: fc.nat(20),
    });
    const part = fc.oneof(fc.uint8Array({ maxLength: 40 }), head.map(fragment));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const assembler = new HandshakeAssembler();
        for (const one of readFragments(Buffer.concat(parts)) ?? []) assembler.add(one);
        for (let taken = 0; assembler.take() !== undefined; taken++) expect(taken).toBeLessThan(6);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
