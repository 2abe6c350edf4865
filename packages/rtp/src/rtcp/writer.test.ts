import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import {
  GenericNack,
  PictureLossIndication,
  type ReceiverEstimatedMaxBitrate,
  RtcpPacketConverter,
  RtcpPayloadSpecificFeedback,
  RtcpReceiverInfo,
  RtcpRrPacket,
  RtcpSenderInfo,
  type RtcpSourceDescriptionPacket,
  RtcpSrPacket,
  RtcpTransportLayerFeedback,
} from 'werift';
import { emptyReportBlock, emptySenderInfo, type ReportBlock, RtcpReader } from './reader.js';
import { RtcpWriter } from './writer.js';

const u32 = fc.nat(0xffffffff);
const reportBlock = fc.record({
  ssrc: u32,
  fractionLost: fc.nat(255),
  cumulativeLost: fc.integer({ min: 0, max: 0x7fffff }),
  highestSequence: u32,
  jitter: u32,
  lastSenderReport: u32,
  delaySinceLastSenderReport: u32,
});
const senderInfo = fc.record({
  ssrc: u32,
  ntpSeconds: u32,
  ntpFraction: u32,
  rtpTimestamp: u32,
  packetCount: u32,
  octetCount: u32,
});

const theirBlock = (block: ReportBlock) =>
  new RtcpReceiverInfo({
    ssrc: block.ssrc,
    fractionLost: block.fractionLost,
    packetsLost: block.cumulativeLost,
    highestSequence: block.highestSequence,
    jitter: block.jitter,
    lsr: block.lastSenderReport,
    dlsr: block.delaySinceLastSenderReport,
  });

function open(bytes: Buffer): RtcpReader {
  const reader = new RtcpReader();
  reader.open(bytes);
  expect(reader.next()).toBe(true);
  return reader;
}

function blocksOf(reader: RtcpReader): ReportBlock[] {
  const blocks: ReportBlock[] = [];
  for (let block = emptyReportBlock(); reader.readReportBlock(blocks.length, block); block = emptyReportBlock()) {
    blocks.push(block);
  }
  return blocks;
}

describe('RTCP reports', () => {
  test('exchanges reports with werift in both directions, and reads its own', () => {
    fc.assert(
      fc.property(senderInfo, fc.array(reportBlock, { maxLength: 31 }), (info, blocks) => {
        const ours = Buffer.from(
          new RtcpWriter(4000).senderReport(info, blocks).receiverReport(info.ssrc, blocks).bytes(),
        );
        const [sr, rr] = RtcpPacketConverter.deSerialize(ours) as [RtcpSrPacket, RtcpRrPacket];
        expect(sr.senderInfo.ntpTimestamp).toBe((BigInt(info.ntpSeconds) << 32n) | BigInt(info.ntpFraction));
        expect(sr.ssrc).toBe(info.ssrc);
        expect(sr.senderInfo.rtpTimestamp).toBe(info.rtpTimestamp);
        expect(sr.senderInfo.packetCount).toBe(info.packetCount);
        expect(sr.senderInfo.octetCount).toBe(info.octetCount);
        expect(sr.reports.map((report) => report.toJSON())).toEqual(blocks.map((block) => theirBlock(block).toJSON()));
        expect(rr.reports.map((report) => report.toJSON())).toEqual(blocks.map((block) => theirBlock(block).toJSON()));

        const theirs = new RtcpSrPacket({
          ssrc: info.ssrc,
          senderInfo: new RtcpSenderInfo({
            ntpTimestamp: (BigInt(info.ntpSeconds) << 32n) | BigInt(info.ntpFraction),
            rtpTimestamp: info.rtpTimestamp,
            packetCount: info.packetCount,
            octetCount: info.octetCount,
          }),
          reports: blocks.map(theirBlock),
        });
        const reader = open(theirs.serialize());
        const read = emptySenderInfo();
        expect(reader.readSenderInfo(read)).toBe(true);
        expect(read).toEqual(info);
        expect(blocksOf(reader)).toEqual(blocks);
        expect(blocksOf(open(new RtcpRrPacket({ ssrc: 1, reports: blocks.map(theirBlock) }).serialize()))).toEqual(
          blocks,
        );
      }),
      { numRuns: fuzzRuns(300) },
    );
  });

  test('writes negative losses in reports, RFC 3550 appendix A.3', () => {
    const block = { ...emptyReportBlock(), cumulativeLost: -5 };
    expect(blocksOf(open(new RtcpWriter().receiverReport(1, [block]).bytes()))).toEqual([block]);
  });

  test('refuses reports of more than 31 sources, and adds nothing', () => {
    const writer = new RtcpWriter(4000);
    const blocks = Array.from({ length: 32 }, emptyReportBlock);
    expect(() => writer.receiverReport(1, blocks)).toThrow(expect.objectContaining({ code: 'OUT_OF_RANGE' }));
    expect(writer.length).toBe(0);
  });
});

describe('RTCP feedback', () => {
  const sequences = fc
    .uniqueArray(fc.integer({ min: 65_000, max: 66_200 }), { minLength: 1, maxLength: 60 })
    .map((numbers) => numbers.toSorted((a, b) => a - b));

  test('writes NACKs that werift and our reader read', () => {
    fc.assert(
      fc.property(sequences, (lost) => {
        const writer = new RtcpWriter();
        expect(writer.nack(1, 2, Float64Array.from(lost))).toBe(lost.length);
        const wire = lost.map((sequence) => sequence % 65_536);
        const [packet] = RtcpPacketConverter.deSerialize(Buffer.from(writer.bytes())) as [RtcpTransportLayerFeedback];
        expect((packet.feedback as GenericNack).lost.map((sequence) => sequence % 65_536)).toEqual(wire);
        const reader = open(writer.bytes());
        const read: number[] = [];
        reader.forEachNack((sequence) => read.push(sequence));
        expect(read).toEqual(wire);
        expect(reader.isNack).toBe(true);
        expect(reader.senderSsrc).toBe(1);
        expect(reader.mediaSsrc).toBe(2);
      }),
      { numRuns: fuzzRuns(500) },
    );
  });

  test('reads the NACKs that werift writes', () => {
    fc.assert(
      fc.property(sequences, (lost) => {
        const wire = lost.map((sequence) => sequence - 65_000);
        const nack = new GenericNack({ senderSsrc: 1, mediaSourceSsrc: 2, lost: wire });
        const read: number[] = [];
        open(new RtcpTransportLayerFeedback({ feedback: nack }).serialize()).forEachNack((sequence) =>
          read.push(sequence),
        );
        expect(read).toEqual(wire);
      }),
      { numRuns: fuzzRuns(200) },
    );
  });

  test('leaves NACKs that do not fit for the next datagram', () => {
    const writer = new RtcpWriter(24);
    const lost = [10, 100, 200, 300, 400];
    expect(writer.nack(1, 2, lost)).toBe(3);
    const read: number[] = [];
    open(writer.bytes()).forEachNack((sequence) => read.push(sequence));
    expect(read).toEqual([10, 100, 200]);
    expect(() => writer.nack(1, 2, lost)).toThrow(expect.objectContaining({ code: 'NO_ROOM' }));
    expect(writer.nack(1, 2, lost, 0)).toBe(0);
  });

  test('requests a key frame with PLI and FIR', () => {
    const bytes = new RtcpWriter().pli(1, 2).fir(3, 4, 5).bytes();
    const reader = open(bytes);
    expect(reader.isPli).toBe(true);
    expect(reader.isFir).toBe(false);
    expect(reader.senderSsrc).toBe(1);
    expect(reader.mediaSsrc).toBe(2);
    expect(reader.next()).toBe(true);
    const asked: number[][] = [];
    reader.forEachFir((ssrc, command) => asked.push([ssrc, command]));
    expect(reader.isPli).toBe(false);
    expect(reader.isFir).toBe(true);
    expect(asked).toEqual([[4, 5]]);
    expect(reader.next()).toBe(false);
    expect(reader.damaged).toBe(false);

    const [pli] = RtcpPacketConverter.deSerialize(Buffer.from(bytes.subarray(0, 12))) as [RtcpPayloadSpecificFeedback];
    expect(pli.feedback).toEqual(new PictureLossIndication({ senderSsrc: 1, mediaSsrc: 2 }));
    expect(
      open(
        new RtcpPayloadSpecificFeedback({
          feedback: new PictureLossIndication({ senderSsrc: 8, mediaSsrc: 9 }),
        }).serialize(),
      ).isPli,
    ).toBe(true);
  });

  test('writes the receivable bitrate to 18 bits in a REMB', () => {
    for (const bps of [0, 1, 262_143, 262_144, 1_000_000, 8_000_000, 123_456_789, 4_000_000_000]) {
      const bytes = Buffer.from(new RtcpWriter().remb(1, bps, [7, 8]).bytes());
      const read = open(bytes).readRembBps();
      expect(read).toBeLessThanOrEqual(bps);
      expect(read).toBeGreaterThanOrEqual(bps * (1 - 2 ** -17));
      const [packet] = RtcpPacketConverter.deSerialize(bytes) as [RtcpPayloadSpecificFeedback];
      const remb = packet.feedback as ReceiverEstimatedMaxBitrate;
      expect(Number(remb.bitrate)).toBe(read);
      expect(remb.ssrcFeedbacks).toEqual([7, 8]);
    }
  });

  test.each([
    [Number.POSITIVE_INFINITY, 0x3ffff * 2 ** 63],
    [Number.MAX_VALUE, 0x3ffff * 2 ** 63],
    [1e300, 0x3ffff * 2 ** 63],
    [Number.NaN, 0],
    [Number.NEGATIVE_INFINITY, 0],
    [-1, 0],
  ])('writes a REMB of %d bit/s as %d', (bps, written) => {
    const bytes = Buffer.from(new RtcpWriter().remb(1, bps, [7]).bytes());
    expect(open(bytes).readRembBps()).toBe(written);
    const [packet] = RtcpPacketConverter.deSerialize(bytes) as [RtcpPayloadSpecificFeedback];
    expect((packet.feedback as ReceiverEstimatedMaxBitrate).ssrcFeedbacks).toEqual([7]);
  });
});

describe('the rest of a compound', () => {
  test('writes a CNAME of any length that werift reads', () => {
    for (let length = 1; length < 20; length += 1) {
      const cname = 'abcdefghijklmnopqrstuvwxyz'.slice(0, length);
      const bytes = Buffer.from(new RtcpWriter().receiverReport(9).sdes(9, cname).bytes());
      expect(bytes.length % 4).toBe(0);
      const [, sdes] = RtcpPacketConverter.deSerialize(bytes) as [unknown, RtcpSourceDescriptionPacket];
      expect(sdes.chunks[0]?.source).toBe(9);
      expect(sdes.chunks[0]?.items[0]).toMatchObject({ type: 1, text: cname });
    }
    expect(new RtcpWriter().sdes(1, 'x'.repeat(400)).length).toBe(8 + 4 + Math.ceil((2 + 255 + 1 - 4) / 4) * 4);
  });

  test('starts over after a reset and reports the remaining room', () => {
    const writer = new RtcpWriter(30);
    expect(writer.pli(1, 2).remaining).toBe(18);
    expect(() => writer.fir(1, 2, 3)).toThrow('an RTCP packet of 20 bytes does not fit into the remaining 18');
    expect(writer.reset().length).toBe(0);
  });
});
