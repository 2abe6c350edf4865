import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { ComponentError } from '../errors.js';
import { opusPacket } from '../testing/room.js';
import { OggReader } from './ogg-reader.js';
import { OggWriter } from './ogg-writer.js';
import { writeOpusHead } from './opus-head.js';
import { OpusPackets } from './opus-packets.js';
import { OggFlag, oggCrc, writePage } from './page.js';

function file(packets: readonly Buffer[], pageSamples = 48_000): Buffer {
  const writer = new OggWriter({ serial: 5, channels: 2, pageSamples });
  return Buffer.concat([writer.begin(), ...packets.map((packet) => writer.packet(packet, 960)), writer.end()]);
}

function inPieces(bytes: Buffer, size: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}

describe('Ogg', () => {
  test('computes the checksum of RFC 3533', () => {
    // The first page of a file made by opusenc.
    const page = Buffer.from(
      '4f6767530002000000000000000001000000000000000000000001134f707573486561640102380180bb0000000000',
      'hex',
    );
    expect(oggCrc(page)).toBe(
      oggCrc(Buffer.concat([page.subarray(0, 22), Buffer.from([1, 2, 3, 4]), page.subarray(26)])),
    );
    expect(oggCrc(Buffer.from('123456789'))).toBe(0x89a1897f);
  });

  test('reads back what was written, whatever the sizes of packets and reads', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 2, max: 1275 }), { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 3000 }),
        (all, piece) => {
          // Try single-byte reads only on a few packets.
          const sizes = all.slice(0, piece);
          const packets = sizes.map((size, i) => opusPacket(i, size));
          const reader = new OpusPackets();
          const read = inPieces(file(packets), piece).flatMap((bytes) => reader.push(bytes));
          reader.end();
          expect(Buffer.concat(read.map(({ data }) => data)).equals(Buffer.concat(packets))).toBe(true);
          expect(read.map(({ data }) => data.length)).toEqual(sizes);
          expect(read.every(({ samples }) => samples === 960)).toBe(true);
          expect(reader.skipped).toBe(0);
        },
      ),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('reads a packet across several pages as one, and loses it with any of them', () => {
    const data = opusPacket(3, 700);
    const page = (sequence: number, { flags = 0, lacing }: { flags?: number; lacing: number[] }, body: Buffer) =>
      writePage({ flags, granule: 0n, serial: 1, sequence, lacing: Uint8Array.from(lacing), body });
    const pages = [
      page(0, { flags: OggFlag.first, lacing: [19] }, writeOpusHead({ channels: 1, preSkip: 312 })),
      page(1, { lacing: [255] }, data.subarray(0, 255)),
      page(2, { flags: OggFlag.continued, lacing: [255] }, data.subarray(255, 510)),
      page(3, { flags: OggFlag.continued, lacing: [190, 40] }, Buffer.concat([data.subarray(510), opusPacket(9)])),
    ];
    const read = (list: Buffer[]) => new OggReader().push(Buffer.concat(list)).map((packet) => packet.data);
    expect(read(pages).slice(1)).toEqual([data, opusPacket(9)]);
    expect(read([pages[0]!, pages[1]!, pages[3]!]).slice(1)).toEqual([opusPacket(9)]);
  });

  test('loses only the content of a damaged page', () => {
    const packets = Array.from({ length: 200 }, (_, i) => opusPacket(i));
    const bytes = file(packets, 9_600);
    const damaged = Buffer.from(bytes);
    damaged[Math.floor(bytes.length / 2)]! ^= 0xff;
    const reader = new OpusPackets();
    expect(reader.push(damaged)).toHaveLength(190);
    expect(reader.skipped).toBeGreaterThan(0);
  });

  test('rejects what cannot be sent as one RTP stream', () => {
    const surround = writeOpusHead({ channels: 6, preSkip: 0 });
    surround[18] = 1;
    const page = writePage({
      flags: OggFlag.first,
      granule: 0n,
      serial: 1,
      sequence: 0,
      lacing: Uint8Array.of(surround.length),
      body: surround,
    });
    expect(() => new OpusPackets().push(page)).toThrow(expect.objectContaining({ code: 'BAD_OGG' }));
    const empty = new OpusPackets();
    empty.push(Buffer.from('no Ogg at all'));
    expect(() => empty.end()).toThrow(expect.objectContaining({ code: 'BAD_OGG' }));
  });

  test('throws only the documented error for garbage', () => {
    const valid = file([opusPacket(1), opusPacket(2, 600)]);
    const mutated = fc.array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { maxLength: 6 }).map((changes) => {
      const bytes = Buffer.from(valid);
      for (const [at, value] of changes) bytes[at] = value;
      return bytes;
    });
    fc.assert(
      fc.property(
        fc.oneof(mutated, fc.uint8Array({ maxLength: 200 }).map(Buffer.from)),
        fc.integer({ min: 1, max: 300 }),
        (bytes, piece) => {
          const reader = new OpusPackets();
          try {
            for (const part of inPieces(bytes as Buffer, piece)) reader.push(part);
            reader.end();
          } catch (error) {
            expect(error).toBeInstanceOf(ComponentError);
          }
        },
      ),
      { numRuns: fuzzRuns(10_000) },
    );
  });
});
