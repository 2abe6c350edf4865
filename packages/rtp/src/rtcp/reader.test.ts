import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { emptyReportBlock, emptySenderInfo, RtcpReader } from './reader.js';
import { TransportCcFeedback } from './transport-cc.js';
import { RtcpWriter } from './writer.js';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Reads everything a consumer may ask of the current packet. */
function readAll(reader: RtcpReader, feedback: TransportCcFeedback): void {
  const block = emptyReportBlock();
  for (let i = 0; reader.readReportBlock(i, block); i += 1) expect(i).toBeLessThan(31);
  reader.readSenderInfo(emptySenderInfo());
  reader.forEachNack((sequence) => expect(sequence >= 0 && sequence < 65_536).toBe(true));
  reader.forEachFir(() => {});
  reader.readRembBps();
  expect(Number.isInteger(reader.senderSsrc) && Number.isInteger(reader.mediaSsrc)).toBe(true);
  expect([reader.isPli, reader.isFir, reader.isNack, reader.isTransportCc].filter(Boolean).length).toBeLessThanOrEqual(
    1,
  );
  if (feedback.parse(reader)) expect(feedback.packetCount).toBeLessThanOrEqual(4096);
}

describe('walking a compound', () => {
  test('never throws on garbage, always ends, and stays within the datagram', () => {
    // Runs at least 12,000 times outside the nightly run, too: the final count is too close to its bound for a tenth of
    // them.
    const runs = Math.max(12_000, fuzzRuns(12_000));
    const reader = new RtcpReader();
    const feedback = new TransportCcFeedback();
    const packet = fc
      .tuple(fc.nat(31), fc.integer({ min: 199, max: 208 }), fc.uint8Array({ maxLength: 64 }), fc.boolean())
      .map(([count, type, body, padded]) => {
        const words = Math.floor(body.length / 4);
        return Buffer.concat([
          Buffer.from([0x80 | (padded ? 0x20 : 0) | count, type, 0, words]),
          body.subarray(0, words * 4),
        ]);
      });
    const compound = fc.array(packet, { minLength: 1, maxLength: 4 }).map((packets) => Buffer.concat(packets));
    let [inputs, walked] = [0, 0];
    fc.assert(
      fc.property(fc.oneof(compound, compound, fc.uint8Array({ maxLength: 60 })), fc.nat(3), (bytes, cut) => {
        const buffer = Buffer.from(bytes);
        const end = Math.max(0, buffer.length - cut);
        reader.open(buffer, 0, end);
        let packets = 0;
        while (reader.next()) {
          packets += 1;
          expect(reader.start + 4 <= reader.end && reader.end <= end).toBe(true);
          readAll(reader, feedback);
        }
        expect(packets).toBeLessThanOrEqual(end / 4);
        // Nothing is left to read after the end.
        if (reader.damaged) readAll(reader, feedback);
        walked += packets;
        inputs += 1;
      }),
      { numRuns: runs },
    );
    expect(walked).toBeGreaterThan((5 * inputs) / 12);
  });

  test('keeps the packets before a damaged one', () => {
    const good = new RtcpWriter().pli(1, 2).bytes();
    for (const bad of ['80', '80c90002 00000001', '40c90000', 'a0c90001 00000000', 'a0c90001 00000009']) {
      const reader = new RtcpReader();
      reader.open(Buffer.concat([good, hex(bad)]));
      expect(reader.next()).toBe(true);
      expect(reader.isPli).toBe(true);
      expect(reader.next()).toBe(false);
      expect(reader.damaged).toBe(true);
      expect(reader.isPli).toBe(false);
      expect(reader.next()).toBe(false);
    }
  });

  test('removes padding from the last packet', () => {
    const reader = new RtcpReader();
    reader.open(hex('a1c90003 00000001 00000000 00000004'));
    expect(reader.next()).toBe(true);
    expect(reader.end).toBe(12);
    expect(reader.readReportBlock(0, emptyReportBlock())).toBe(false);
  });

  test('reads reduced-size feedback by itself, RFC 5506', () => {
    const reader = new RtcpReader();
    reader.open(hex('81cd0003 00000001 00000002 000a0005'));
    const lost: number[] = [];
    expect(reader.next()).toBe(true);
    reader.forEachNack((sequence) => lost.push(sequence));
    expect(lost).toEqual([10, 11, 13]);
  });

  test('reads only the range it is given', () => {
    const reader = new RtcpReader();
    const bytes = new RtcpWriter().pli(1, 2).bytes();
    reader.open(Buffer.concat([hex('ffff'), bytes, hex('ffff')]), 2, 2 + bytes.length);
    expect(reader.next()).toBe(true);
    expect(reader.isPli).toBe(true);
    expect(reader.next()).toBe(false);
    expect(reader.damaged).toBe(false);
    reader.open(bytes, 0, 9999);
    expect(reader.next()).toBe(true);
    expect(reader.next()).toBe(false);
    expect(reader.damaged).toBe(false);
  });
});
