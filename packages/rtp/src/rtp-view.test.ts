import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { RtpHeader, RtpPacket } from 'werift';
import { RtpView, rtpHeaderLength } from './rtp-view.js';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Packets from werift, the independent implementation, with the values they were made from. */
const packets = fc
  .record({
    marker: fc.boolean(),
    payloadType: fc.nat(127),
    sequence: fc.nat(65_535),
    timestamp: fc.nat(0xffffffff),
    ssrc: fc.nat(0xffffffff),
    csrc: fc.array(fc.nat(0xffffffff), { maxLength: 15 }),
    extensions: fc.uniqueArray(
      fc.record({ id: fc.integer({ min: 1, max: 14 }), payload: fc.uint8Array({ minLength: 1, maxLength: 16 }) }),
      { selector: (extension) => extension.id, maxLength: 6 },
    ),
    twoByte: fc.boolean(),
    payload: fc.uint8Array({ minLength: 1, maxLength: 40 }),
    padding: fc.nat(20),
  })
  .map((made) => {
    const header = new RtpHeader({
      marker: made.marker,
      payloadType: made.payloadType,
      sequenceNumber: made.sequence,
      timestamp: made.timestamp,
      ssrc: made.ssrc,
      csrc: made.csrc,
      csrcLength: made.csrc.length,
      extension: made.extensions.length > 0,
      extensionProfile: made.twoByte ? 0x1000 : 0xbede,
      extensions: made.extensions.map(({ id, payload }) => ({ id, payload: Buffer.from(payload) })),
      padding: made.padding > 0,
      paddingSize: made.padding,
    });
    const bytes = new RtpPacket(header, Buffer.from(made.payload)).serialize();
    return { made, bytes };
  });

describe('RTP packet view', () => {
  test('reads what werift wrote, at any offset', () => {
    const view = new RtpView();
    fc.assert(
      fc.property(packets, fc.nat(9), ({ made, bytes }, offset) => {
        const buffer = Buffer.concat([Buffer.alloc(offset, 0xff), bytes, Buffer.alloc(3, 0xff)]);
        expect(view.parse(buffer, offset, offset + bytes.length)).toBe(true);
        expect(view.marker).toBe(made.marker);
        expect(view.payloadType).toBe(made.payloadType);
        expect(view.sequence).toBe(made.sequence);
        expect(view.timestamp).toBe(made.timestamp);
        expect(view.ssrc).toBe(made.ssrc);
        expect(view.csrcCount).toBe(made.csrc.length);
        expect(buffer.subarray(view.payloadStart, view.payloadEnd).equals(Buffer.from(made.payload))).toBe(true);
        expect(view.paddingLength).toBe(made.padding);
        expect(rtpHeaderLength(buffer, offset, offset + bytes.length)).toBe(view.headerLength);
        for (let id = 1; id <= 14; id += 1) {
          const expected = made.extensions.find((extension) => extension.id === id);
          expect(view.findExtension(id)).toBe(expected !== undefined);
          if (expected === undefined) continue;
          const found = buffer.subarray(view.foundStart, view.foundStart + view.foundLength);
          expect(found.equals(Buffer.from(expected.payload))).toBe(true);
        }
      }),
      { numRuns: fuzzRuns(1500) },
    );
  });

  test('never throws on garbage, and stays within the packets it accepts', () => {
    let runs = 0;
    const view = new RtpView();
    const likely = fc
      .tuple(fc.uint8Array({ minLength: 12, maxLength: 80 }), fc.constantFrom(0x80, 0x90, 0x91, 0xb0, 0xbf, 0xa0))
      .map(([bytes, first]) => {
        bytes[0] = first;
        // Usually a real extension profile and a length that may fit.
        const profile = bytes[1]! % 2 === 0 ? [0xbe, 0xde] : [0x10, 0x00];
        if (bytes.length >= 16) bytes.set([...profile, 0, bytes[15]! % 12], 12);
        if (bytes[2]! % 4 > 0) bytes[bytes.length - 1] = bytes.at(-1)! % 24;
        return bytes;
      });
    let accepted = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 60 }),
          likely,
          packets.map(({ bytes }) => bytes.subarray(0, -2)),
        ),
        (bytes) => {
          runs += 1;
          const buffer = Buffer.from(bytes);
          if (!view.parse(buffer)) return;
          accepted += 1;
          expect(
            view.payloadStart >= 12 && view.payloadStart <= view.payloadEnd && view.payloadEnd <= buffer.length,
          ).toBe(true);
          for (let id = 1; id <= 15; id += 1) {
            if (!view.findExtension(id)) continue;
            expect(view.foundStart >= 16 && view.foundStart + view.foundLength <= view.payloadStart).toBe(true);
          }
          view.textExtension(1);
          view.transportSequence(2);
          view.audioLevel(3);
        },
      ),
      { numRuns: fuzzRuns(12_000) },
    );
    expect(accepted).toBeGreaterThan(runs / 12);
  });

  test('refuses a truncated header, another version, and impossible padding', () => {
    const view = new RtpView();
    expect(view.parse(hex('80600001 00000000 000000'))).toBe(false);
    expect(view.parse(hex('40600001 00000000 00000001 aa'))).toBe(false);
    expect(view.parse(hex('82600001 00000000 00000001 00000002 000000'))).toBe(false);
    expect(view.parse(hex('90600001 00000000 00000001 bede0002 10aa0000'))).toBe(false);
    expect(view.parse(hex('a0600001 00000000 00000001'))).toBe(false);
    expect(view.parse(hex('a0600001 00000000 00000001 aa00'))).toBe(false);
    expect(view.parse(hex('a0600001 00000000 00000001 aa03'))).toBe(false);
    expect(view.parse(hex('80600001 00000000 00000001'), 0, 13)).toBe(false);
  });

  test('recognises padding-only packets', () => {
    const view = new RtpView();
    expect(view.parse(hex('a0600001 00000000 00000001 00000004'))).toBe(true);
    expect(view.isPaddingOnly).toBe(true);
    expect(view.payloadLength).toBe(0);
    expect(view.paddingLength).toBe(4);
  });

  test('reads the extensions that WebRTC uses', () => {
    // mid "0" as 4, transport sequence 0x1234 as 3, audio level 0x85 as 1, rid "h" as 10; a padding byte between.
    const packet = hex('90600001 00000000 00000001 bede0003 4030 00 311234 1085 a068 0000 ff');
    const view = new RtpView();
    expect(view.parse(packet)).toBe(true);
    expect(view.textExtension(4)).toBe('0');
    expect(view.textExtension(10)).toBe('h');
    expect(view.textExtension(5)).toBeUndefined();
    expect(view.transportSequence(3)).toBe(0x1234);
    expect(view.transportSequence(5)).toBe(-1);
    expect(view.transportSequence(1)).toBe(-1);
    expect(view.audioLevel(1)).toBe(0x85);
    expect(view.audioLevel(undefined)).toBe(-1);
    expect(view.textExtension(undefined)).toBeUndefined();
  });

  test('stops at the reserved id 15 of the one-byte form, RFC 8285 section 4.2', () => {
    const view = new RtpView();
    view.parse(hex('90600001 00000000 00000001 bede0002 10aa f0bb 20cc 0000'));
    expect(view.findExtension(1)).toBe(true);
    expect(view.findExtension(15)).toBe(false);
    expect(view.findExtension(2)).toBe(false);
  });

  test('finds empty elements of the two-byte form, RFC 8285 section 4.3', () => {
    const view = new RtpView();
    view.parse(hex('90600001 00000000 00000001 10000002 0100 0201aa 0300 00'));
    expect(view.findExtension(1)).toBe(true);
    expect(view.foundLength).toBe(0);
    expect(view.findExtension(2)).toBe(true);
    expect(view.audioLevel(2)).toBe(0xaa);
    expect(view.findExtension(3)).toBe(true);
    expect(view.textExtension(3)).toBeUndefined();
  });
});
