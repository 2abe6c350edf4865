import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { RtpPacket } from 'werift';
import { OutboundHeader } from './outbound-header.js';
import { RtpView } from './rtp-view.js';

describe('outbound header', () => {
  test('writes a header that werift and our own view read back, whatever is negotiated', () => {
    const view = new RtpView();
    const id = fc.option(fc.integer({ min: 1, max: 14 }), { nil: undefined });
    fc.assert(
      fc.property(
        fc.record({ ssrc: fc.nat(0xffffffff), payloadType: fc.nat(127), mid: fc.stringMatching(/^[0-9a-z]{0,16}$/) }),
        fc.uniqueArray(id, { minLength: 3, maxLength: 3, selector: (value) => value ?? Symbol('none') }),
        fc.record({
          marker: fc.boolean(),
          sequence: fc.nat(2 ** 40),
          timestamp: fc.nat(0xffffffff),
          transport: fc.integer({ min: -1, max: 2 ** 33 }),
          level: fc.integer({ min: -1, max: 255 }),
        }),
        (stream, [mid, transportCc, audioLevel], packet) => {
          const header = new OutboundHeader({ ...stream, extensionIds: { mid, transportCc, audioLevel } });
          const buffer = Buffer.alloc(80, 0xee);
          const length = header.write(
            buffer,
            3,
            packet.marker,
            packet.sequence,
            packet.timestamp,
            packet.transport,
            packet.level,
          );
          expect(length % 4).toBe(0);
          expect(length).toBeLessThanOrEqual(header.maxLength);
          expect(buffer[2]).toBe(0xee);
          buffer[3 + length] = 0xaa;
          expect(view.parse(buffer, 3, 3 + length + 1)).toBe(true);
          expect(view.payloadLength).toBe(1);
          expect(view.textExtension(mid)).toBe(mid === undefined || stream.mid === '' ? undefined : stream.mid);
          expect(view.transportSequence(transportCc)).toBe(
            transportCc === undefined || packet.transport < 0 ? -1 : packet.transport % 65_536,
          );
          expect(view.audioLevel(audioLevel)).toBe(audioLevel === undefined ? -1 : packet.level);

          const theirs = RtpPacket.deSerialize(Buffer.from(buffer.subarray(3, 4 + length))).header;
          expect(theirs.ssrc).toBe(stream.ssrc);
          expect(theirs.payloadType).toBe(stream.payloadType);
          expect(theirs.marker).toBe(packet.marker);
          expect(theirs.sequenceNumber).toBe(packet.sequence % 65_536);
          expect(theirs.timestamp).toBe(packet.timestamp);
        },
      ),
      { numRuns: fuzzRuns(1000) },
    );
  });

  test('refuses values that do not fit their fields, and quotes them', () => {
    const make = (options: object) => () => new OutboundHeader({ ssrc: 1, payloadType: 96, ...options });
    expect(make({ payloadType: 128 })).toThrow('payload type must be an integer from 0 to 127, got 128');
    expect(make({ extensionIds: { transportCc: 15 } })).toThrow(expect.objectContaining({ code: 'OUT_OF_RANGE' }));
    expect(make({ extensionIds: { mid: 4 }, mid: 'seventeen-letters' })).toThrow('seventeen-letters');
  });

  test.each([3, 16, 17, 255])(
    'copies a dependency descriptor of %d bytes once, under the id of the receiver',
    (bytes) => {
      const source = new RtpView();
      const descriptor = Buffer.alloc(bytes, 0xd5);
      const elements = Buffer.concat([Buffer.from([9, bytes]), descriptor, Buffer.alloc(-(bytes + 2) & 3)]);
      const fixed = Buffer.from('906000010000000000000001100000', 'hex');
      expect(source.parse(Buffer.concat([fixed, Buffer.from([elements.length / 4]), elements, Buffer.from([1])]))).toBe(
        true,
      );
      const extensionIds = { mid: 4, transportCc: 3, dependencies: 13 };
      const header = new OutboundHeader({ ssrc: 1, payloadType: 96, extensionIds, mid: 'v1' });
      const [view, buffer] = [new RtpView(), Buffer.alloc(400)];
      const write = (): boolean => view.parse(buffer, 0, header.write(buffer, 0, true, 7, 9, 0x1234));
      header.copyDescriptor(source, 9);
      expect(write()).toBe(true);
      expect(view.textExtension(4)).toBe('v1');
      expect(view.transportSequence(3)).toBe(0x1234);
      expect(view.findExtension(13)).toBe(true);
      expect(view.buffer.subarray(view.foundStart, view.foundStart + view.foundLength)).toEqual(descriptor);
      expect(write()).toBe(true);
      expect([view.findExtension(13), view.transportSequence(3)]).toEqual([false, 0x1234]);
      header.copyDescriptor(source, 8);
      expect([write(), view.findExtension(13)]).toEqual([true, false]);
    },
  );
});
