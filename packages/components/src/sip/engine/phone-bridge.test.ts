import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { type CodecName, decodeG711, encodeG711 } from '@bloom/sip';
import { OpusDecoder, OpusEncoder } from './opus.js';
import { PhoneBridge, type PhoneFrame } from './phone-bridge.js';
import { RoomMix } from './room-mix.js';

const tone = ([hertz, rate]: readonly [number, number], frame: number, level = 8000): Int16Array => {
  const length = rate / 50;
  return Int16Array.from({ length }, (_, i) =>
    Math.round(level * Math.sin((2 * Math.PI * hertz * (frame * length + i)) / rate)),
  );
};

/** Returns the strength of a tone in the samples (Goertzel), 0..1 of full scale. */
function strengthOf(hertz: number, samples: Int16Array, rate: number): number {
  const turn = 2 * Math.cos((2 * Math.PI * hertz) / rate);
  let [one, two] = [0, 0];
  for (const sample of samples) [one, two] = [sample / 32_768 + turn * one - two, one];
  return (2 * Math.sqrt(one * one + two * two - turn * one * two)) / samples.length;
}

const joined = (frames: readonly Int16Array[]): Int16Array => Int16Array.from(frames.flatMap((frame) => [...frame]));

/** A track of the room as encoded by its publisher. */
function publisher(hertz: number, level?: number): (frame: number) => Buffer {
  const encoder = new OpusEncoder(48_000);
  return (frame) => encoder.encode(tone([hertz, 48_000], frame, level));
}

function bridge() {
  const sent: PhoneFrame[] = [];
  return { sent, bridge: new PhoneBridge((frame) => sent.push(frame)) };
}

describe('from the phone to the room', () => {
  test.each(['PCMU', 'PCMA'] as const)('turns %s into Opus of the same pitch, one packet every 20 ms', (codec) => {
    const { sent, bridge: phone } = bridge();
    for (let n = 0; n < 50; n++) phone.received(encodeG711(codec, tone([1000, 8000], n)), codec);
    expect(sent.map(({ timestamp }) => timestamp)).toEqual(sent.map((_, n) => n * 960));
    const decoder = new OpusDecoder(48_000);
    const heard = joined(sent.map(({ data }) => decoder.decode(data) as Int16Array)).subarray(9600);
    expect(strengthOf(1000, heard, 48_000)).toBeGreaterThan(0.15);
    expect(strengthOf(1100, heard, 48_000)).toBeLessThan(0.02);
  });

  test('conceals a lost frame, and keeps time without sending while the phone is silent', () => {
    const { sent, bridge: phone } = bridge();
    for (let n = 0; n < 10; n++) phone.received(n === 5 ? undefined : encodeG711('PCMU', tone([440, 8000], n)), 'PCMU');
    expect(sent).toHaveLength(10);
    for (let n = 10; n < 100; n++) phone.received(undefined, 'PCMU');
    expect(sent).toHaveLength(13);
    phone.received(encodeG711('PCMU', tone([440, 8000], 0)), 'PCMU');
    expect(sent.at(-1)?.timestamp).toBe(100 * 960);
  });

  test('sends nothing before the phone is heard', () => {
    const { sent, bridge: phone } = bridge();
    for (const codec of ['PCMU', 'opus'] as const) for (let n = 0; n < 10; n++) phone.received(undefined, codec);
    expect(sent).toEqual([]);
  });

  test('passes Opus through unchanged, whatever the length of its packets', () => {
    const { sent, bridge: phone } = bridge();
    const [short, long] = [Buffer.of(0xf0, 1), Buffer.of(0xfb, 2, 3)];
    for (const packet of [short, undefined, long, short]) phone.received(packet, 'opus');
    expect(sent).toEqual([
      { timestamp: 0, data: short },
      { timestamp: 480 + 960, data: long },
      { timestamp: 480 + 960 + 1920, data: short },
    ]);
  });
});

describe('from the room to the phone', () => {
  const decoded = (codec: CodecName): ((frame: Buffer) => Int16Array) => {
    const decoder = new OpusDecoder(48_000);
    return (frame) => (codec === 'opus' ? (decoder.decode(frame) as Int16Array) : decodeG711(codec, frame));
  };

  test.each(['PCMU', 'PCMA', 'opus'] as const)('mixes two tracks over %s', (codec) => {
    const { bridge: phone } = bridge();
    phone.setTracks([1, 2, 3]);
    const [a, b, decode] = [publisher(440), publisher(1000), decoded(codec)];
    const rate = codec === 'opus' ? 48_000 : 8000;
    const frames: Int16Array[] = [];
    for (let n = 0; n < 100; n++) {
      const frame = phone.next(codec);
      if (n > 20 && frame !== undefined) frames.push(decode(frame));
      phone.push(1, n * 960, a(n));
      phone.push(2, 5000 + n * 960, b(n));
      phone.push(9, n * 960, a(n));
    }
    expect(frames).toHaveLength(79);
    const heard = joined(frames.slice(20));
    for (const hertz of [440, 1000]) expect(strengthOf(hertz, heard, rate)).toBeGreaterThan(0.15);
    expect(strengthOf(700, heard, rate)).toBeLessThan(0.02);
  });

  test('encodes no silence', () => {
    const { bridge: phone } = bridge();
    phone.setTracks([1]);
    for (const codec of ['PCMU', 'opus'] as const) expect(phone.next(codec)).toBeUndefined();
  });

  test('follows tracks that come and go, and stops playing one that has gone', () => {
    const { bridge: phone } = bridge();
    const a = publisher(440);
    const play = (from: number): Int16Array => {
      const frames: Int16Array[] = [];
      for (let n = from; n < from + 30; n++) {
        phone.push(1, n * 960, a(n));
        frames.push(decodeG711('PCMA', phone.next('PCMA') ?? encodeG711('PCMA', new Int16Array(160))));
      }
      return joined(frames.slice(15));
    };
    phone.next('PCMA');
    expect(strengthOf(440, play(0), 8000)).toBeLessThan(0.001);
    phone.setTracks([1]);
    expect(strengthOf(440, play(30), 8000)).toBeGreaterThan(0.15);
    phone.setTracks([]);
    expect(strengthOf(440, play(60), 8000)).toBeLessThan(0.001);
  });

  test('plays the live mix to a phone resumed from hold', () => {
    const { bridge: phone } = bridge();
    phone.setTracks([1]);
    const [before, after] = [publisher(440), publisher(1000)];
    const heard = (): Int16Array => decodeG711('PCMA', phone.next('PCMA') ?? Buffer.alloc(160, 0xd5)).slice();
    for (let n = 0; n < 20; n++) {
      phone.push(1, n * 960, before(n));
      heard();
    }
    phone.setListening(false);
    for (let n = 20; n < 200; n++) phone.push(1, n * 960, before(n));
    phone.setListening(true);
    const frames: Int16Array[] = [];
    for (let n = 200; n < 230; n++) {
      frames.push(heard());
      phone.push(1, n * 960, after(n));
    }
    expect(strengthOf(440, joined(frames), 8000)).toBeLessThan(0.02);
    expect(strengthOf(1000, joined(frames.slice(10)), 8000)).toBeGreaterThan(0.15);
  });

  test('follows a change of codec during the call', () => {
    const { bridge: phone } = bridge();
    phone.setTracks([1]);
    const a = publisher(440);
    const frames: Int16Array[] = [];
    const decode = decoded('opus');
    for (let n = 0; n < 100; n++) {
      const codec = n < 30 ? 'PCMU' : 'opus';
      const frame = phone.next(codec);
      if (n > 50 && frame !== undefined) frames.push(decode(frame));
      phone.push(1, n * 960, a(n));
    }
    expect(strengthOf(440, joined(frames.slice(10)), 48_000)).toBeGreaterThan(0.15);
  });
});

describe('mixing', () => {
  test('ignores garbage from the room and from the phone at no further cost', () => {
    const { bridge: phone } = bridge();
    phone.setTracks([1]);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), fc.nat(0xffff_ffff), fc.boolean(), (bytes, timestamp, opus) => {
        const codec = opus ? 'opus' : 'PCMA';
        phone.push(1, timestamp, bytes);
        if (opus) phone.received(Buffer.from(bytes), codec);
        return (phone.next('PCMA')?.length ?? 160) === 160;
      }),
      { numRuns: fuzzRuns(5000) },
    );
  });

  test('never wraps around with twenty loud voices', () => {
    const mix = new RoomMix(8000);
    const ids = Array.from({ length: 20 }, (_, n) => n);
    mix.setTracks(ids);
    const loud = publisher(300, 30_000);
    const frames: Int16Array[] = [];
    for (let n = 0; n < 30; n++) {
      const packet = loud(n);
      for (const id of ids) mix.push(id, n * 960, packet);
      const frame = mix.next();
      if (n >= 10 && frame !== undefined) frames.push(frame);
    }
    const all = joined(frames);
    expect(all.reduce((most, one) => Math.max(most, Math.abs(one)), 0)).toBeLessThanOrEqual(32_767);
    // Neighbouring samples of a softly clipped sine differ little; a wrapped sample would differ by the full range.
    const steps = all.map((one, at) => Math.abs(one - (all[at - 1] ?? one)));
    expect(steps.reduce((most, one) => Math.max(most, one), 0)).toBeLessThan(32_000);
    expect(strengthOf(300, all, 8000)).toBeGreaterThan(0.9);
  });

  test('treats anything that is not an Opus packet as lost', () => {
    const mix = new RoomMix(8000);
    mix.setTracks([1]);
    const a = publisher(440);
    const frames: Int16Array[] = [];
    for (let n = 0; n < 60; n++) {
      mix.push(1, n * 960, n % 10 === 9 ? Buffer.of(0xff) : a(n));
      const frame = mix.next();
      if (n > 10 && frame !== undefined) frames.push(frame);
    }
    expect(frames).toHaveLength(49);
    expect(strengthOf(440, joined(frames), 8000)).toBeGreaterThan(0.15);
  });
});
