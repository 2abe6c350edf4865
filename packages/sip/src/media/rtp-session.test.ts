import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { countedRandomness } from '../testing/test-agent.js';
import { codecs, silenceOf } from './codecs.js';
import { FramePacer } from './frame-pacer.js';
import { distance, JitterBuffer } from './jitter-buffer.js';
import type { NegotiatedAudio } from './negotiation.js';
import { parseRtp, writeRtp } from './rtp.js';
import { RtpSession } from './rtp-session.js';

const agreed = (change: Partial<NegotiatedAudio> = {}): NegotiatedAudio => ({
  remote: { address: '192.0.2.20', port: 4000 },
  codec: codecs.PCMU,
  sendType: 0,
  receiveTypes: new Map([
    [0, 'PCMU'],
    [8, 'PCMA'],
  ]),
  eventTypes: { receive: new Set([101]), send: 101 },
  direction: 'sendrecv',
  ...change,
});
const phone = { address: '192.0.2.20', port: 4000 };
const frame = (fill: number, length = 160) => Buffer.alloc(length, fill);

function session(change: Partial<NegotiatedAudio> = {}) {
  const digits: string[] = [];
  const rtp = new RtpSession({ randomness: countedRandomness(), onDigit: (digit) => digits.push(digit) });
  rtp.configure(agreed(change));
  const receive = (
    sequence: number,
    payload: Buffer,
    more: { from?: typeof phone; type?: number; at?: number; ssrc?: number; timestamp?: number } = {},
  ) =>
    rtp.receive(
      writeRtp({
        payloadType: more.type ?? 0,
        marker: false,
        sequence,
        timestamp: more.timestamp ?? sequence * 160,
        ssrc: more.ssrc ?? 1,
        payload,
      }),
      more.from ?? phone,
      more.at ?? 0,
    );
  return { rtp, digits, receive };
}

describe('an RTP session', () => {
  test('sends silence from the start, as one unbroken stream', () => {
    const { rtp } = session();
    const packets = [undefined, undefined, frame(1)].map((sound) => rtp.pack(sound));
    expect(packets.map((packed) => packed?.to)).toEqual([phone, phone, phone]);
    const [first, second, third] = packets.map((packed) => parseRtp(packed?.packet as Buffer));
    expect(first).toMatchObject({ marker: true, payloadType: 0, payload: silenceOf('PCMU') });
    expect(second).toMatchObject({ marker: false, ssrc: first?.ssrc });
    expect(distance(first?.sequence ?? 0, third?.sequence ?? 0)).toBe(2);
    expect((third?.timestamp ?? 0) - (first?.timestamp ?? 0)).toBe(320);
    expect(third?.payload).toEqual(frame(1));
  });

  test('plays in order after a short wait, whatever the order of arrival', () => {
    const { rtp, receive } = session();
    receive(11, frame(2));
    receive(10, frame(1));
    expect(rtp.play()).toEqual([undefined]);
    receive(12, frame(3));
    expect(rtp.play()).toEqual([frame(1)]);
    expect(rtp.play()).toEqual([frame(2)]);
    expect(rtp.play()).toEqual([frame(3)]);
    expect(rtp.play()).toEqual([undefined]);
    receive(13, frame(4));
    expect(rtp.play()).toEqual([frame(4)]);
  });

  test('makes whole frames from packets of any length', () => {
    const { rtp, receive } = session();
    for (let at = 0; at < 4; at += 1) receive(at, frame(at + 1, 240));
    const heard = Array.from({ length: 6 }, () => rtp.play()[0]);
    expect(Buffer.concat(heard as Buffer[])).toEqual(Buffer.concat([1, 2, 3, 4].map((fill) => frame(fill, 240))));
  });

  test('sends to the port that audio comes from, and ignores every other host', () => {
    const { rtp, receive } = session();
    const nat = { address: '192.0.2.20', port: 61_000 };
    const thief = { address: '192.0.2.66', port: 1 };
    receive(0, frame(9), { from: thief });
    expect(rtp.destination).toEqual(phone);
    receive(1, frame(1), { from: nat });
    expect(rtp.pack(undefined)?.to).toEqual(nat);
    // Ignored both while the phone is speaking and after a silence.
    receive(2, frame(9), { from: thief, at: 1999 });
    receive(3, frame(9), { from: thief, at: 60_000 });
    expect(rtp.pack(undefined)?.to).toEqual(nat);
    expect(rtp.stats()).toMatchObject({ received: 1, refused: 3 });
    // Another port of the same host after a silence: a router has forgotten the first one.
    receive(4, frame(1), { from: { ...nat, port: 62_000 }, at: 60_000 });
    expect(rtp.pack(undefined)?.to).toEqual({ ...nat, port: 62_000 });
    // A new description overrides what was heard before.
    rtp.configure(agreed({ remote: { address: '192.0.2.99', port: 5 } }));
    expect(rtp.pack(undefined)?.to).toEqual({ address: '192.0.2.99', port: 5 });
  });

  test.each(['10.1.2.3', '192.168.0.9', '100.64.1.1', 'fd00::1'])(
    'accepts only the hosts of the signalling beside one that describes itself as %s',
    (address) => {
      const signallingHosts = ['203.0.113.7', '::ffff:203.0.113.8'];
      const { rtp, receive } = session({ remote: { address, port: 4000 }, signallingHosts });
      receive(1, frame(1), { from: { address: '127.0.0.2', port: 1 } });
      receive(2, frame(1), { from: { address: '198.51.100.66', port: 1 } });
      expect(rtp.destination).toEqual({ address, port: 4000 });
      const gateway = { address: '203.0.113.8', port: 61_000 };
      receive(3, frame(1), { from: gateway });
      expect(rtp.destination).toEqual(gateway);
      receive(4, frame(1), { from: { address: '203.0.113.7', port: 1 }, at: 60_000 });
      receive(5, frame(1), { from: { address: '198.51.100.66', port: 1 }, at: 60_000 });
      expect(rtp.destination).toEqual(gateway);
      expect(rtp.stats()).toMatchObject({ received: 1, refused: 4 });
    },
  );

  test('does not accept the host of the signalling beside a described public one', () => {
    const { rtp, receive } = session({ signallingHosts: ['203.0.113.7'] });
    receive(1, frame(1), { from: { address: '203.0.113.7', port: 4000 } });
    expect(rtp.stats()).toMatchObject({ received: 0, refused: 1 });
  });

  test('accepts another port of the same host only after two seconds of silence', () => {
    const { rtp, receive } = session();
    const other = { ...phone, port: 5_000 };
    receive(1, frame(1));
    receive(2, frame(2), { from: other, at: 1_999 });
    expect(rtp.destination).toEqual(phone);
    expect(rtp.stats().refused).toBe(1);
    receive(3, frame(3), { from: other, at: 2_000 });
    expect(rtp.destination).toEqual(other);
    expect(rtp.stats().refused).toBe(1);
  });

  test('recognises the described host in any spelling', () => {
    const { rtp, receive } = session({ remote: { address: '2001:DB8:0::20', port: 4000 } });
    receive(1, frame(1), { from: { address: '2001:db8::20', port: 4000 } });
    const mapped = session();
    mapped.receive(1, frame(1), { from: { address: '::ffff:192.0.2.20', port: 4000 } });
    expect(rtp.stats().received).toBe(1);
    expect(mapped.rtp.stats().received).toBe(1);
  });

  test('accepts no new source while the other side names no address', () => {
    const { rtp, receive } = session({ remote: undefined, direction: 'inactive' });
    receive(1, frame(1));
    expect(rtp.stats()).toMatchObject({ received: 0, refused: 1 });
  });

  test('follows a call to its new place immediately, even if packets from the old one still arrive', () => {
    const { rtp, receive } = session();
    const moved = { address: '192.0.2.30', port: 5000 };
    receive(1, frame(1));
    rtp.configure(agreed({ remote: moved }));
    receive(2, frame(2), { at: 20 });
    receive(100, frame(3), { from: moved, ssrc: 2, at: 25 });
    receive(3, frame(2), { at: 40 });
    expect(rtp.destination).toEqual(moved);
    expect(rtp.stats()).toMatchObject({ received: 2, refused: 2 });
  });

  test('plays any negotiated codec, and keeps sending its own', () => {
    const { rtp, receive } = session();
    for (const at of [1, 2, 3]) receive(at, frame(at));
    expect(rtp.play()).toEqual([frame(1)]);
    expect(rtp.heardCodec).toBe('PCMU');
    for (const at of [4, 5, 6]) receive(at, frame(at), { type: 8 });
    expect(rtp.play()).toEqual([frame(4)]);
    expect(rtp.heardCodec).toBe('PCMA');
    expect(parseRtp(rtp.pack(undefined)?.packet as Buffer)?.payloadType).toBe(0);
    rtp.configure(agreed({ codec: codecs.PCMA, sendType: 8 }));
    rtp.configure(agreed());
    expect(rtp.heardCodec).toBe('PCMU');
    expect(rtp.stats()).toMatchObject({ received: 6, refused: 0 });
  });

  test('does not latch on to the source of noise', () => {
    const { rtp, receive } = session();
    const stranger = { address: '198.51.100.66', port: 1 };
    rtp.receive(Buffer.from('hello'), stranger, 0);
    receive(1, frame(1), { from: stranger, type: 99 });
    receive(1, frame(1, 1501), { from: stranger });
    expect(rtp.destination).toEqual(phone);
    expect(rtp.stats()).toMatchObject({ received: 0, refused: 3 });
  });

  test('sends and plays nothing on hold, and resumes with a marker', () => {
    const { rtp, receive } = session();
    rtp.pack(undefined);
    rtp.configure(agreed({ direction: 'recvonly' }));
    expect(rtp.pack(frame(1))).toBeUndefined();
    rtp.configure(agreed({ direction: 'sendonly' }));
    for (let at = 0; at < 5; at += 1) receive(at, frame(1));
    expect(rtp.play()).toEqual([]);
    const packed = rtp.pack(frame(1));
    expect(parseRtp(packed?.packet as Buffer)).toMatchObject({ marker: true });
  });

  test('reports each key once, however many packets announce it', () => {
    const { digits, receive } = session();
    const press = (event: number, timestamp: number, sequence: number) =>
      receive(sequence, Buffer.of(event, 0x0a, 0, 160), { type: 101, timestamp, at: timestamp / 8 });
    for (let at = 0; at < 5; at += 1) press(5, 1000, at);
    for (let at = 5; at < 8; at += 1) press(5, 3000, at);
    press(11, 5000, 8);
    press(16, 7000, 9);
    expect(digits).toEqual(['5', '5', '#']);
  });

  test('reports no more keys than anyone can press', () => {
    const { digits, receive } = session();
    for (let at = 0; at < 1_000; at += 1) {
      receive(at, Buffer.of(5, 0x0a, 0, 160), { type: 101, timestamp: at * 160, at: at / 10 });
    }
    expect(digits).toEqual(['5', '5', '5']);
  });

  test('restarts when the other side does', () => {
    const { rtp, receive } = session();
    for (let at = 100; at < 103; at += 1) receive(at, frame(1));
    expect(rtp.play()).toEqual([frame(1)]);
    for (let at = 9; at < 12; at += 1) receive(at, frame(2), { ssrc: 2 });
    expect(rtp.play()).toEqual([frame(2)]);
    expect(rtp.play()).toEqual([frame(2)]);
    expect(rtp.play()).toEqual([frame(2)]);
  });

  const opus: Partial<NegotiatedAudio> = {
    codec: codecs.opus,
    sendType: 111,
    receiveTypes: new Map([[111, 'opus']]),
  };

  test('passes Opus packets through unchanged', () => {
    const { rtp, receive } = session(opus);
    for (let at = 0; at < 3; at += 1) receive(at, Buffer.of(0xf8, at), { type: 111 });
    expect(rtp.play()).toEqual([Buffer.of(0xf8, 0)]);
    const first = parseRtp(rtp.pack(undefined)?.packet as Buffer);
    const second = parseRtp(rtp.pack(Buffer.of(7))?.packet as Buffer);
    expect((second?.timestamp ?? 0) - (first?.timestamp ?? 0)).toBe(960);
    expect(second).toMatchObject({ payloadType: 111, payload: Buffer.of(7) });
  });

  test.each([
    ['10 ms', 0xf0, [2, 2, 2, 2, 2, 2]],
    ['40 ms', 0xf9, [1, 0, 1, 0, 1, 0]],
    ['60 ms', 0x18, [1, 0, 0, 1, 0, 0]],
  ])('plays Opus packets of %s at the pace of their sound', (_, toc, counts) => {
    const { rtp, receive } = session(opus);
    for (let at = 0; at < 12; at += 1) receive(at, Buffer.of(toc, at), { type: 111 });
    const played = counts.map(() => rtp.play());
    expect(played.map((packets) => packets.length)).toEqual(counts);
    expect(played.flat().map((packet) => packet?.[1])).toEqual(played.flat().map((_packet, at) => at));
  });

  test('counts Opus packets without sound as lost', () => {
    const { rtp, receive } = session(opus);
    for (let at = 0; at < 4; at += 1) receive(at, Buffer.of(0xfb, 0), { type: 111 });
    expect(rtp.play()).toEqual([undefined]);
  });

  test('stays in sync for thirty minutes with a sender whose clock is off, through every wraparound', () => {
    for (const skew of [1 - 200e-6, 1 + 200e-6]) {
      const { rtp, receive } = session();
      let sent = 0;
      let heard = 0;
      let deepest = 0;
      let last = 0;
      let backwards = 0;
      for (let now = 0; now < 30 * 60_000; now += 20) {
        // 15 ms of jitter. The sound contains the packet number, so what is played reveals its age.
        for (; sent * 20 * skew + ((sent * 7919) % 15) <= now; sent += 1) {
          const sound = Buffer.alloc(160);
          sound.writeUInt32BE(sent);
          receive((60_000 + sent) & 0xffff, sound, { at: now, timestamp: (sent * 160) >>> 0 });
        }
        const [played] = rtp.play();
        if (played === undefined) continue;
        heard += 1;
        if (played.readUInt32BE() < last) backwards += 1;
        last = played.readUInt32BE();
        if (now > 1000) deepest = Math.max(deepest, sent - last);
      }
      const { late, received } = rtp.stats();
      expect(received).toBe(sent);
      // 200 ppm amount to 18 frames in half an hour: only that many are skipped or waited for.
      expect(late).toBe(0);
      expect(backwards).toBe(0);
      expect(sent - heard).toBeLessThan(30);
      expect(deepest).toBeLessThan(8);
    }
  });

  test('treats comfort noise, which it does not play, as a sign of life', () => {
    const { rtp, receive } = session();
    receive(1, Buffer.from([0x40]), { type: 13, at: 5000 });
    expect(rtp.aliveAt).toBe(5000);
  });

  test('treats RTCP as a sign of life, and does not count it as refused', () => {
    const { rtp } = session();
    rtp.receive(Buffer.from([0x80, 201, 0, 1, 0, 0, 0, 7]), { ...phone, port: phone.port + 1 }, 5000);
    expect(rtp.aliveAt).toBe(5000);
    expect(rtp.stats().refused).toBe(0);
  });

  test('does not treat packets from strangers as a sign of life', () => {
    const { rtp, receive } = session();
    receive(1, frame(1), { from: { address: '198.51.100.1', port: 4000 }, at: 5000 });
    expect(rtp.aliveAt).toBeUndefined();
  });

  test('survives 10,000 datagrams of noise without side effects', () => {
    const { rtp } = session();
    let control = 0;
    const head = fc.constantFrom(0x80, 0x80, 0x80, 0x80, 0x80, 0x90, 0xa0, 0x8f, 0xbf, 0x40);
    fc.assert(
      fc.property(
        head,
        fc.constantFrom(0, 8, 101, 128, 200),
        fc.uint8Array({ maxLength: 40 }),
        (first, second, rest) => {
          if (first >> 6 === 2 && second === 200) control += 1;
          rtp.receive(Buffer.from([first, second, ...rest]), phone, 0);
          rtp.play();
        },
      ),
      { numRuns: fuzzRuns(10_000) },
    );
    const { received, refused } = rtp.stats();
    expect(received + refused).toBe(fuzzRuns(10_000) - control);
    expect(received).toBeGreaterThan(fuzzRuns(10_000) / 100);
  });
});

describe('a jitter buffer', () => {
  const full = () => new JitterBuffer<number>({ targetFrames: 3, maxFrames: 12 });

  test('continues over a lost frame and refuses frames that are late or duplicate', () => {
    const buffer = full();
    for (const sequence of [65_534, 65_535, 1, 2, 2]) buffer.push(sequence, sequence);
    expect(buffer.pop()).toBe(65_534);
    expect(buffer.pop()).toBe(65_535);
    expect(buffer.pop()).toBeUndefined();
    expect(buffer.pop()).toBe(1);
    expect(buffer.pop()).toBe(2);
    buffer.push(0, 0);
    expect(buffer.pop()).toBeUndefined();
    expect(buffer.stats).toMatchObject({ played: 4, missing: 2, late: 2 });
  });

  test('follows a sender that restarts, without waiting for the old numbers to come round', () => {
    const buffer = full();
    for (let sequence = 0; sequence < 600; sequence += 1) {
      buffer.push(sequence, sequence);
      buffer.pop();
    }
    const heard = [0, 1, 2, 3].map((sequence) => {
      buffer.push(sequence, sequence);
      return buffer.pop();
    });
    expect(heard).toEqual([598, undefined, 0, 1]);
  });

  test('loses nothing of what is heard when one packet is seconds late', () => {
    const buffer = full();
    let missed = 0;
    for (let sequence = 0; sequence < 600; sequence += 1) {
      buffer.push(sequence, sequence);
      if (sequence % 150 === 149) buffer.push(sequence - 120, -1);
      if (buffer.pop() === undefined && sequence > 2) missed += 1;
    }
    expect(missed).toBe(0);
    expect(buffer.stats).toMatchObject({ late: 4, dropped: 0 });
  });

  test('plays again after an outage as soon as at the start, and with no more delay than before', () => {
    const buffer = full();
    const heard: (number | undefined)[] = [];
    for (let sequence = 0; sequence < 200; sequence += 1) {
      // Nothing arrives for 600 ms.
      if (sequence < 100 || sequence >= 130) buffer.push(sequence, sequence);
      heard.push(buffer.pop());
    }
    expect(heard.indexOf(98)).toBe(100);
    expect(heard.slice(102, 134)).toEqual([...Array.from({ length: 30 }, () => undefined), 130, 131]);
    expect(heard.at(-1)).toBe(197);
    expect(buffer.depth).toBe(2);
  });

  test('reduces its delay again after a burst', () => {
    const buffer = full();
    let sequence = 0;
    for (; sequence < 12; sequence += 1) buffer.push(sequence, sequence);
    for (let round = 0; round < 1000; round += 1) {
      buffer.pop();
      buffer.push(sequence, sequence);
      sequence += 1;
    }
    expect(buffer.depth).toBeLessThanOrEqual(5);
  });

  test('drops the oldest frame, even across a wraparound', () => {
    const buffer = new JitterBuffer<number>({ targetFrames: 1, maxFrames: 3 });
    for (const sequence of [65_534, 65_535, 0, 1]) buffer.push(sequence, sequence);
    expect(buffer.stats.dropped).toBe(1);
    expect(buffer.pop()).toBe(65_535);
    expect(buffer.pop()).toBe(0);
    expect(buffer.pop()).toBe(1);
  });

  test('never holds more than its limit', () => {
    const buffer = full();
    for (let sequence = 0; sequence < 500; sequence += 1) buffer.push(sequence, sequence);
    expect(buffer.depth).toBe(12);
    expect(buffer.pop()).toBe(488);
  });

  test('refills after a silence', () => {
    const buffer = full();
    for (const sequence of [0, 1, 2]) buffer.push(sequence, sequence);
    for (let count = 0; count < 10; count += 1) buffer.pop();
    buffer.push(3, 3);
    expect(buffer.pop()).toBeUndefined();
    buffer.push(4, 4);
    buffer.push(5, 5);
    expect(buffer.pop()).toBe(3);
  });
});

describe('the pacer', () => {
  test('keeps the beat of the clock, not of its callers', () => {
    const pacer = new FramePacer();
    let frames = 0;
    for (let now = 5; now <= 60_005; now += 23.7) frames += pacer.due(now);
    expect(frames).toBeGreaterThanOrEqual(2999);
    expect(frames).toBeLessThanOrEqual(3001);
  });

  test('does not make up for a long stall', () => {
    const pacer = new FramePacer();
    expect(pacer.due(0)).toBe(1);
    expect(pacer.due(10)).toBe(0);
    expect(pacer.wait(10)).toBe(10);
    expect(pacer.due(60_000)).toBe(10);
    expect(pacer.due(60_000)).toBe(0);
  });
});
