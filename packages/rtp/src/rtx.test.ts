import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { RtpPacket, unwrapRtx, wrapRtx } from 'werift';
import { RtpView } from './rtp-view.js';
import { RTX_PREFIX, restoreRtx, writeRtxPrefix } from './rtx.js';

describe('retransmissions, RFC 4588', () => {
  const original = Buffer.from('90e01234 00001000 00000aaa bede0001 40300000 0102030405'.replaceAll(' ', ''), 'hex');

  test('restores a packet wrapped by werift in place', () => {
    const rtx = wrapRtx(RtpPacket.deSerialize(original), 97, 77, 0xbbb).serialize();
    const view = new RtpView();
    expect(view.parse(rtx)).toBe(true);
    expect(restoreRtx(view, { ssrc: 0xaaa, payloadType: 96 })).toBe(true);
    expect(rtx.subarray(view.start, view.end)).toEqual(original);
    expect(view.sequence).toBe(0x1234);
    expect(view.ssrc).toBe(0xaaa);
    expect(view.payloadType).toBe(96);
    expect(view.marker).toBe(true);
    expect(view.textExtension(4)).toBe('0');
  });

  test('writes a prefix with which werift unwraps the packet', () => {
    const header = Buffer.from('80610007 00001000 00000bbb'.replaceAll(' ', ''), 'hex');
    const packet = Buffer.concat([header, Buffer.alloc(RTX_PREFIX), Buffer.from('media')]);
    expect(writeRtxPrefix(packet, 12, 3 * 65_536 + 0x1234)).toBe(2);
    const restored = unwrapRtx(RtpPacket.deSerialize(packet), 96, 0xaaa);
    expect(restored.header.sequenceNumber).toBe(0x1234);
    expect(restored.header.ssrc).toBe(0xaaa);
    expect(restored.payload.toString()).toBe('media');
  });

  test('does not treat a retransmission without an original as a packet of the stream', () => {
    const view = new RtpView();
    for (const payload of ['', '01', '00000004']) {
      const isPadding = payload.length > 2;
      const bytes = Buffer.from(
        `${isPadding ? 'a0' : '80'}61000100000000 00000bbb${payload}`.replaceAll(' ', ''),
        'hex',
      );
      expect(view.parse(bytes)).toBe(true);
      const before = Buffer.from(bytes);
      expect(restoreRtx(view, { ssrc: 1, payloadType: 96 })).toBe(false);
      expect(bytes).toEqual(before);
    }
  });

  test('restores or refuses a retransmission, whatever it holds', () => {
    let runs = 0;
    const view = new RtpView();
    let restored = 0;
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 12, maxLength: 60 }), (bytes) => {
        runs += 1;
        const buffer = Buffer.from(bytes);
        buffer[0] = 0x80 | (buffer[0]! & 0x11);
        if (!view.parse(buffer) || !restoreRtx(view, { ssrc: 9, payloadType: 5 })) return;
        restored += 1;
        expect(view.ssrc).toBe(9);
        expect(view.payloadType).toBe(5);
        expect(view.start).toBe(2);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
    expect(restored).toBeGreaterThan(runs / 10);
  });
});
