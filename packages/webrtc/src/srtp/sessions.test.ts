import { createHmac, randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { ProtectionProfileAes128CmHmacSha1_80, RtpPacket, SrtcpSession, SrtpSession } from 'werift';
import { deriveSessionKeys } from './key-derivation.js';
import { OpenFailure, openFailureName, SrtpReceiveSession } from './receive-session.js';
import { SRTCP_OVERHEAD, SrtpSendSession } from './send-session.js';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const KEYS = { masterKey: hex('e1f97a0d3e018be0d64fa32c06de4139'), masterSalt: hex('0ec675ad498afeebb6960b3aabe6') };

/** One direction of the independent implementation. */
function weriftConfig() {
  return {
    profile: ProtectionProfileAes128CmHmacSha1_80,
    keys: {
      localMasterKey: KEYS.masterKey,
      localMasterSalt: KEYS.masterSalt,
      remoteMasterKey: KEYS.masterKey,
      remoteMasterSalt: KEYS.masterSalt,
    },
  };
}

function rtp(sequence: number, payload: Buffer, ssrc = 0xcafebabe): Buffer {
  const header = Buffer.alloc(12);
  header[0] = 0x80;
  header[1] = 96;
  header.writeUInt16BE(sequence & 0xffff, 2);
  header.writeUInt32BE(sequence * 3000, 4);
  header.writeUInt32BE(ssrc, 8);
  return Buffer.concat([header, payload]);
}

function seal(session: SrtpSendSession, packet: Buffer): Buffer {
  const buffer = Buffer.concat([packet, Buffer.alloc(10)]);
  expect(session.sealRtp(buffer, 0, packet.length)).toBe(buffer.length);
  return buffer;
}

function open(session: SrtpReceiveSession, datagram: Buffer): Buffer | number {
  const copy = Buffer.from(datagram);
  const end = session.open(copy);
  return end < 0 ? end : copy.subarray(0, end);
}

describe('single packets', () => {
  const plain = hex('800f1234decafbadcafebabe abababababababababababababababab');
  const sealed = hex('800f1234decafbadcafebabe 4e55dc4ce79978d88ca4d215949d2402 b78d6acc99ea179b8dbb');

  test('seals a packet to the bytes of the well-known test vector', () => {
    expect(seal(new SrtpSendSession(KEYS), plain)).toEqual(sealed);
  });

  test('opens the bytes of the well-known test vector at any offset in a buffer', () => {
    for (const offset of [0, 1, 2, 4, 7]) {
      const buffer = Buffer.concat([Buffer.alloc(offset, 9), sealed, Buffer.alloc(5, 9)]);
      const end = new SrtpReceiveSession(KEYS).open(buffer, offset, offset + sealed.length);
      expect(buffer.subarray(offset, end)).toEqual(plain);
      expect(buffer.subarray(0, offset)).toEqual(Buffer.alloc(offset, 9));
    }
  });

  test('round-trips a packet with an empty payload', () => {
    const empty = rtp(7, Buffer.alloc(0));
    expect(open(new SrtpReceiveSession(KEYS), seal(new SrtpSendSession(KEYS), empty))).toEqual(empty);
  });

  test('refuses a packet with any single bit changed and leaves it unchanged', () => {
    const session = new SrtpReceiveSession(KEYS);
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const forged = Buffer.from(sealed);
      forged[bit >>> 3] = forged[bit >>> 3]! ^ (1 << (bit & 7));
      const before = Buffer.from(forged);
      expect(session.open(forged)).toBeLessThan(0);
      expect(forged).toEqual(before);
    }
    expect(open(session, sealed)).toEqual(plain);
  });
});

describe('a stream sent by werift', () => {
  test('opens a werift stream across two wraps, with reordering', () => {
    const theirs = new SrtpSession(weriftConfig());
    const ours = new SrtpReceiveSession(KEYS);
    let opened = 0;
    let group: { plain: Buffer; datagram: Buffer }[] = [];
    let sequence = 65_000;
    while (sequence < 2 * 65_536 + 600) {
      const plain = rtp(sequence, Buffer.from(`payload of ${sequence}`));
      const packet = RtpPacket.deSerialize(plain);
      group.push({ plain, datagram: theirs.encrypt(packet.payload, packet.header) });
      // Every packet near a wrap, elsewhere with gaps; groups of four arrive in reverse.
      sequence += sequence % 65_536 > 600 && sequence % 65_536 < 64_900 ? 40 : 1;
      if (group.length < 4) continue;
      for (const sent of group.toReversed()) {
        const result = open(ours, sent.datagram);
        expect(result instanceof Buffer && result.equals(sent.plain)).toBe(true);
        opened += 1;
      }
      group = [];
    }
    expect(opened).toBeGreaterThan(3000);
  });

  test('survives a loss of 30,000 packets across the wrap', () => {
    const theirs = new SrtpSession(weriftConfig());
    const ours = new SrtpReceiveSession(KEYS);
    for (let sequence = 50_000; sequence < 50_000 + 31_000; sequence += 1) {
      const plain = rtp(sequence, Buffer.from('x'));
      const packet = RtpPacket.deSerialize(plain);
      const datagram = theirs.encrypt(packet.payload, packet.header);
      const isLost = sequence > 50_100 && sequence < 80_100;
      if (isLost) continue;
      const result = open(ours, datagram);
      expect(result instanceof Buffer && result.equals(plain)).toBe(true);
    }
  });
});

describe('a stream sent by us', () => {
  test('seals a stream that werift opens across the wrap', () => {
    const ours = new SrtpSendSession(KEYS);
    const theirs = new SrtpSession(weriftConfig());
    for (let sequence = 65_400; sequence < 65_700; sequence += 1) {
      const plain = rtp(sequence, randomBytes(1 + ((sequence * 37) % 1200)));
      expect(theirs.decrypt(seal(ours, plain)).equals(plain)).toBe(true);
    }
  });
});

describe('replays', () => {
  test('refuses replays within and before the window, separately for each stream', () => {
    const sender = new SrtpSendSession(KEYS);
    const receiver = new SrtpReceiveSession(KEYS);
    const first = [1, 2].map((ssrc) => seal(sender, rtp(100, Buffer.from('a'), ssrc)));
    for (const datagram of first) expect(open(receiver, datagram)).toBeInstanceOf(Buffer);
    for (const datagram of first) expect(open(receiver, datagram)).toBe(OpenFailure.REPLAYED);
    for (let sequence = 101; sequence < 400; sequence += 1)
      open(receiver, seal(sender, rtp(sequence, Buffer.from('b'), 1)));
    expect(open(receiver, first[0]!)).toBe(OpenFailure.REPLAYED);
  });

  test('a forged packet far ahead neither moves the window nor adds a stream', () => {
    const sender = new SrtpSendSession(KEYS);
    const receiver = new SrtpReceiveSession(KEYS, { maxStreams: 1 });
    for (let ssrc = 1; ssrc < 50; ssrc += 1) {
      expect(open(receiver, rtp(5, Buffer.alloc(30), ssrc))).toBe(OpenFailure.UNAUTHENTICATED);
    }
    expect(open(receiver, seal(sender, rtp(10, Buffer.from('a'), 1)))).toBeInstanceOf(Buffer);
    expect(open(receiver, rtp(30_000, Buffer.alloc(30), 1))).toBe(OpenFailure.UNAUTHENTICATED);
    expect(open(receiver, seal(sender, rtp(11, Buffer.from('a'), 1)))).toBeInstanceOf(Buffer);
  });

  test('opens many tracks published one after another, and those from the beginning throughout', () => {
    const sender = new SrtpSendSession(KEYS);
    const receiver = new SrtpReceiveSession(KEYS);
    const microphone = seal(sender, rtp(1, Buffer.from('a'), 1));
    expect(open(receiver, microphone)).toBeInstanceOf(Buffer);
    for (let ssrc = 2; ssrc <= 1_500; ssrc += 1) {
      expect(open(receiver, seal(sender, rtp(1, Buffer.from('b'), ssrc)))).toBeInstanceOf(Buffer);
    }
    expect(open(receiver, microphone)).toBe(OpenFailure.REPLAYED);
    expect((open(receiver, seal(sender, rtp(2, Buffer.from('c'), 1))) as Buffer).subarray(-1).toString()).toBe('c');
  });

  test('refuses streams beyond the limit', () => {
    const sender = new SrtpSendSession(KEYS);
    const receiver = new SrtpReceiveSession(KEYS, { maxStreams: 2 });
    const outcomes = [1, 2, 3].map((ssrc) => open(receiver, seal(sender, rtp(1, Buffer.from('a'), ssrc))));
    expect(outcomes[2]).toBe(OpenFailure.TOO_MANY_STREAMS);
  });
});

describe('SRTCP', () => {
  const report = hex('80c90001cafebabe');
  const compound = Buffer.concat([report, hex('81ca0004 cafebabe 0106 616263646566 0000')]);

  function sealRtcp(session: SrtpSendSession, plain: Buffer): Buffer {
    const buffer = Buffer.concat([plain, Buffer.alloc(SRTCP_OVERHEAD)]);
    expect(session.sealRtcp(buffer, 0, plain.length)).toBe(buffer.length);
    return buffer;
  }

  test('seals SRTCP that werift opens', () => {
    const ours = new SrtpSendSession(KEYS);
    const theirs = new SrtcpSession(weriftConfig());
    for (let i = 0; i < 300; i += 1) expect(theirs.decrypt(sealRtcp(ours, compound))).toEqual(compound);
  });

  test('opens SRTCP sealed by werift, once', () => {
    const theirs = new SrtcpSession(weriftConfig());
    const ours = new SrtpReceiveSession(KEYS);
    for (let i = 0; i < 300; i += 1) {
      const datagram = theirs.encrypt(compound);
      const copy = Buffer.from(datagram);
      const end = ours.openRtcp(copy);
      expect(copy.subarray(0, end)).toEqual(compound);
      expect(ours.openRtcp(Buffer.from(datagram))).toBe(OpenFailure.REPLAYED);
    }
  });

  test('opens reports of all lengths from several sources, whatever order they arrive in', () => {
    const sender = new SrtpSendSession(KEYS);
    const reports = Array.from({ length: 400 }, (_, i) => {
      const plain = randomBytes(8 + ((i * 52) % 1200));
      plain[0] = 0x80;
      plain.writeUInt32BE(i % 3, 4);
      return { plain, datagram: sealRtcp(sender, plain) };
    });
    // Each group of 30 arrives in reverse.
    const arrived = Array.from({ length: 14 }, (_, i) => reports.slice(i * 30, i * 30 + 30).toReversed()).flat();
    const receiver = new SrtpReceiveSession(KEYS);
    for (const { plain, datagram } of arrived) {
      const { length } = datagram;
      const trailer = Buffer.from(datagram.subarray(plain.length));
      expect(receiver.openRtcp(datagram)).toBe(plain.length);
      expect(datagram).toEqual(Buffer.concat([plain, trailer], length));
    }
  });

  test('still opens reports of a source after a thousand others', () => {
    const sender = new SrtpSendSession(KEYS);
    const receiver = new SrtpReceiveSession(KEYS);
    for (const ssrc of [...Array(1000).keys(), ...Array(1000).keys()]) {
      const plain = Buffer.from(compound);
      plain.writeUInt32BE(ssrc, 4);
      const datagram = sealRtcp(sender, plain);
      expect(receiver.openRtcp(datagram)).toBe(plain.length);
      expect(datagram.subarray(0, plain.length)).toEqual(plain);
    }
  });

  test('refuses SRTCP from more sources than the limit', () => {
    const receiver = new SrtpReceiveSession(KEYS, { maxStreams: 2 });
    const outcomes = [1, 2, 3].map((ssrc) => {
      const plain = Buffer.from(report);
      plain.writeUInt32BE(ssrc, 4);
      return receiver.openRtcp(sealRtcp(new SrtpSendSession(KEYS), plain));
    });
    expect(outcomes).toEqual([report.length, report.length, OpenFailure.TOO_MANY_STREAMS]);
  });

  test('leaves an authenticated but unencrypted SRTCP packet unchanged', () => {
    const datagram = sealRtcp(new SrtpSendSession(KEYS), compound);
    const clear = Buffer.concat([compound, datagram.subarray(compound.length)]);
    // Without the E flag (RFC 3711 section 3.4).
    clear[compound.length] = clear[compound.length]! & 0x7f;
    const { authKey } = deriveSessionKeys(KEYS, 'rtcp');
    const signed = clear.length - 10;
    createHmac('sha1', authKey).update(clear.subarray(0, signed)).digest().copy(clear, signed, 0, 10);
    expect(new SrtpReceiveSession(KEYS).openRtcp(clear)).toBe(compound.length);
    expect(clear.subarray(0, compound.length)).toEqual(compound);
  });

  test('round-trips an SRTCP packet that is only a header', () => {
    const datagram = sealRtcp(new SrtpSendSession(KEYS), report);
    expect(new SrtpReceiveSession(KEYS).openRtcp(datagram)).toBe(report.length);
    expect(datagram.subarray(0, report.length)).toEqual(report);
  });

  test('refuses an SRTCP packet with any single bit changed', () => {
    const datagram = sealRtcp(new SrtpSendSession(KEYS), compound);
    const session = new SrtpReceiveSession(KEYS);
    for (let bit = 0; bit < datagram.length * 8; bit += 1) {
      const forged = Buffer.from(datagram);
      forged[bit >>> 3] = forged[bit >>> 3]! ^ (1 << (bit & 7));
      expect(session.openRtcp(forged)).toBeLessThan(0);
    }
    expect(session.openRtcp(datagram)).toBe(compound.length);
  });
});

describe('garbage', () => {
  test('answers garbage of any kind with a failure, never an exception', () => {
    const session = new SrtpReceiveSession(KEYS);
    const nearMiss = fc.uint8Array({ maxLength: 120 }).map((bytes) => {
      if (bytes.length > 0) bytes[0] = 0x80 | (bytes[0]! & 0x3f);
      return bytes;
    });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 120 }), nearMiss), (bytes) => {
        const buffer = Buffer.from(bytes);
        expect(session.open(buffer)).toBeLessThan(0);
        expect(session.openRtcp(buffer)).toBeLessThan(0);
        expect(buffer.equals(Buffer.from(bytes))).toBe(true);
      }),
      { numRuns: fuzzRuns(10_000) },
    );
  });

  test('refuses a packet longer than any network carries', () => {
    const session = new SrtpReceiveSession(KEYS);
    const long = Buffer.alloc(65_507);
    long[0] = 0x80;
    expect(session.open(long)).toBe(OpenFailure.MALFORMED);
    expect(session.openRtcp(long)).toBe(OpenFailure.MALFORMED);
  });

  test('has a counter name for every failure', () => {
    expect(Object.values(OpenFailure).map(openFailureName)).toEqual([
      'malformed',
      'unauthenticated',
      'replayed',
      'too_many_streams',
    ]);
  });
});

describe('packets that cannot be sealed', () => {
  test('throws for a packet that cannot be sealed', () => {
    const session = new SrtpSendSession(KEYS);
    const packet = rtp(1, Buffer.alloc(10));
    expect(() => session.sealRtp(packet, 0, packet.length)).toThrow(expect.objectContaining({ code: 'BAD_PACKET' }));
    expect(() => session.sealRtcp(Buffer.alloc(4), 0, 4)).toThrow(expect.objectContaining({ code: 'BAD_PACKET' }));
  });
});
