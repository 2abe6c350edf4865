import { beforeEach, describe, expect, test } from '@jest/globals';
import { type MemoryPeer, MemoryWorld, type SeenPacket } from '../testing/memory-port.js';
import {
  audioSlot,
  H264,
  inboundAudio,
  inboundSimulcast,
  inboundVideo,
  RECEIVER_EXTENSIONS,
  SyntheticSource,
  videoSlot,
} from '../testing/synthetic-media.js';

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

/** Returns the descriptor of a VP8 packet with all fields, as the synthetic source sends it. */
function descriptor({ payload }: SeenPacket) {
  expect(payload.readUInt16BE(0) | 0x1000).toBe(0x90f0);
  const isKeyframeStart = (payload[0]! & 0x10) !== 0 && (payload[6]! & 1) === 0;
  return {
    isKeyframeStart,
    pictureId: payload.readUInt16BE(2) & 0x7fff,
    tl0PicIdx: payload[4]!,
    keyIdx: payload[5]! & 0x1f,
  };
}

function expectContiguous(packets: readonly SeenPacket[]): void {
  for (let i = 1; i < packets.length; i++) {
    expect(packets[i]!.sequence).toBe((packets[i - 1]!.sequence + 1) & 0xffff);
  }
}

function sendAll(peer: MemoryPeer, packets: readonly Buffer[]): void {
  for (const packet of packets) peer.send(packet);
}

function source(ssrc: number, over: object = {}): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 96, mid: '1', ...over });
}

describe('a track without simulcast', () => {
  test("forwards a track to its subscriber under the slot's numbers, starting with a keyframe", () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const camera = source(0x101);

    sendAll(publisher, camera.vp8Frame());
    expect(viewer.packets).toHaveLength(0);
    sendAll(publisher, camera.vp8Frame({ key: true, packets: 3 }));
    sendAll(publisher, camera.vp8Frame());

    expect(viewer.packets).toHaveLength(5);
    expectContiguous(viewer.packets);
    const [first] = viewer.packets;
    expect(first!.ssrc).toBe(0xaaaa0001);
    expect(first!.payloadType).toBe(120);
    expect(first!.sequence).toBeLessThan(32_768);
    expect(first!.extension(RECEIVER_EXTENSIONS.mid!)!.toString()).toBe('5');
    expect(first!.extension(RECEIVER_EXTENSIONS.transportCc!)!.readUInt16BE()).toBe(0);
    expect(viewer.packets[4]!.extension(RECEIVER_EXTENSIONS.transportCc!)!.readUInt16BE()).toBe(4);
    expect(viewer.packets[2]!.marker).toBe(true);
    expect(first!.payload.subarray(7)).toEqual(Buffer.alloc(99, 0x01));
    expect(world.switches('sub')).toEqual(['cam h other']);
  });

  test('requests a keyframe for a new subscription, repeats it every 500 ms and stops once it has arrived', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const camera = source(0x101);
    sendAll(publisher, camera.vp8Frame({ key: true }));
    world.join('sub', { outbound: [videoSlot('cam')] });
    const plis = (): number => {
      let count = 0;
      publisher.forEachRtcp((reader) => {
        if (!reader.isPli) return;
        expect(reader.mediaSsrc).toBe(0x101);
        count++;
      });
      return count;
    };
    expect(plis()).toBe(1);
    world.advance(1100);
    expect(plis()).toBe(3);
    sendAll(publisher, camera.vp8Frame({ key: true }));
    world.advance(1100);
    expect(plis()).toBe(3);
  });

  test('allows a subscription before the track exists, and resumes when the track returns under the same id', () => {
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const first = world.join('pub', { inbound: [inboundVideo('cam')] });
    sendAll(first, source(0x101).vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(2);

    world.apply({ type: 'closeTransport', peerId: 'pub' });
    expect(first.closed).toBe(true);
    first.send(source(0x101).vp8Frame({ key: true })[0]!);
    expect(viewer.packets).toHaveLength(2);

    const second = world.join('pub', { inbound: [inboundVideo('cam')] });
    sendAll(second, source(0x909, { firstSequence: 77 }).vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
    expectContiguous(viewer.packets);
  });

  test('continues a track on a new SSRC of its publisher, starting with the next keyframe', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    sendAll(publisher, source(0x101).vp8Frame({ key: true }));
    const restarted = source(0x202, { firstSequence: 40_000 });
    sendAll(publisher, restarted.vp8Frame());
    expect(viewer.packets).toHaveLength(2);
    sendAll(publisher, restarted.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
    expectContiguous(viewer.packets);
    expect(viewer.packets[3]!.payload[10]).toBe(0x02);
  });

  test('ignores a request for a variant that the track lacks', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'l');
    const camera = source(0x101);
    sendAll(publisher, camera.vp8Frame({ key: true }));
    world.setTargetVariant('sub', 'cam', 'm');
    world.advance(3000);
    sendAll(publisher, camera.vp8Frame());
    expect(viewer.packets).toHaveLength(4);
    expect(world.switches('sub')).toEqual(['cam h other']);
  });

  test('forwards an H.264 track byte for byte', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { codec: H264 })] });
    const slot = videoSlot('cam', { codec: { ...H264, payloadType: 45 } });
    const viewer = world.join('sub', { outbound: [slot] });
    const camera = source(0x101, { payloadType: 102 });
    sendAll(publisher, camera.h264Frame());
    sendAll(publisher, camera.h264Frame({ key: true }));
    sendAll(publisher, camera.h264Frame());
    expect(viewer.packets.map(({ payload }) => payload[0])).toEqual([0x67, 0x65, 0x41]);
    expect(viewer.packets.map(({ payloadType }) => payloadType)).toEqual([45, 45, 45]);
    expect(viewer.packets[1]!.payload).toEqual(Buffer.concat([Buffer.from([0x65, 0x81]), Buffer.alloc(98, 0x01)]));
  });

  describe('an H.264 track', () => {
    /** Sends pictures with these timestamps, in units of 40 ms. Returns the B-frame events. */
    function order(...pictures: number[]): readonly object[] {
      const publisher = world.join('pub', { inbound: [inboundVideo('cam', { codec: H264 })] });
      const camera = source(0x101, { payloadType: 102, firstTimestamp: 0xffff_ff00 });
      let before = 0;
      for (const at of pictures) {
        sendAll(publisher, camera.h264Frame({ key: at === 0, elapsedMs: (at - before) * 40 }));
        before = at;
      }
      return world.events.filter(({ type }) => type === 'bFrames');
    }

    test('reports a track with B-frames once', () => {
      expect(order(0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 11, 15, 13, 14)).toEqual([
        expect.objectContaining({ type: 'bFrames', trackId: 'cam' }),
      ]);
    });

    test('reports no B-frames for pictures in order or a clock that is set', () => {
      expect(order(...Array.from({ length: 50 }, (_, i) => i))).toEqual([]);
      expect(order(1_000, 500, 1_000, 500, 1_000, 500, 1_000, 500)).toEqual([]);
    });
  });

  test("leaves no gap for the publisher's padding", () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const camera = source(0x101);
    sendAll(publisher, camera.vp8Frame({ key: true }));
    publisher.send(camera.padding());
    publisher.send(camera.padding());
    sendAll(publisher, camera.vp8Frame());
    expect(viewer.packets).toHaveLength(4);
    expectContiguous(viewer.packets);
  });
});

describe('simulcast', () => {
  const sources = { l: source(0x1a, { rid: 'l' }), m: source(0x1b, { rid: 'm' }), h: source(0x1c, { rid: 'h' }) };
  let publisher: MemoryPeer;
  let viewer: MemoryPeer;

  beforeEach(() => {
    sources.l = source(0x1a, { rid: 'l', firstSequence: 65_000, firstTimestamp: 1000 });
    sources.m = source(0x1b, { rid: 'm', firstSequence: 20_000, firstTimestamp: 4_294_960_000 });
    sources.h = source(0x1c, { rid: 'h', firstSequence: 300, firstTimestamp: 77 });
    sources.h.pictureId = 32_700;
    publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    viewer = world.join('sub', { outbound: [videoSlot('cam')] });
  });

  /** Sends frames of all three variants, 33 ms apart. */
  function play(frames: number, { key = [] as string[], without = [] as string[] } = {}): void {
    for (let i = 0; i < frames; i++) {
      for (const variant of ['l', 'm', 'h'] as const) {
        if (without.includes(variant)) continue;
        sendAll(publisher, sources[variant].vp8Frame({ key: i === 0 && key.includes(variant) }));
      }
      world.advance(33);
    }
  }

  test('starts a subscriber with m, whichever variant arrives first', () => {
    play(3, { key: ['l', 'm', 'h'] });
    expect(viewer.packets.length).toBeGreaterThan(0);
    expect(viewer.packets.every(({ payload }) => payload[10] === 0x1b)).toBe(true);
    expect(world.switches('sub')).toEqual(['cam m other']);
  });

  test('starts a subscriber with what is available if m does not arrive within 200 ms', () => {
    play(3, { key: ['l'], without: ['m', 'h'] });
    expect(viewer.packets).toHaveLength(0);
    world.advance(120);
    play(1, { key: ['l'], without: ['m', 'h'] });
    expect(viewer.packets).toHaveLength(2);
    play(1, { key: ['m'], without: ['h'] });
    expect(world.switches('sub')).toEqual(['cam l other', 'cam m other']);
  });

  test('switches variants exactly at a keyframe, with sequence, timestamp and VP8 numbers continued', () => {
    play(10, { key: ['l', 'm', 'h'] });
    world.setTargetVariant('sub', 'cam', 'h');
    play(3);
    expect(viewer.packets.at(-1)!.payload[10]).toBe(0x1b);
    play(5, { key: ['h'] });
    world.setTargetVariant('sub', 'cam', 'l');
    play(5, { key: ['l'] });
    world.setTargetVariant('sub', 'cam', 'm');
    play(5, { key: ['m'] });

    const { packets } = viewer;
    expectContiguous(packets);
    expect(world.switches('sub')).toEqual(['cam m other', 'cam h other', 'cam l other', 'cam m other']);
    const marks = packets.map(({ payload }) => payload[10]);
    expect(marks).toEqual([
      // Where the new variant's keyframe follows a frame of the old one within the same 33 ms, both are sent.
      ...Array.from({ length: 28 }, () => 0x1b),
      ...Array.from({ length: 10 }, () => 0x1c),
      ...Array.from({ length: 12 }, () => 0x1a),
      ...Array.from({ length: 10 }, () => 0x1b),
    ]);
    for (let i = 2; i < packets.length; i += 2) {
      const before = descriptor(packets[i - 1]!);
      const after = descriptor(packets[i]!);
      expect(after.pictureId).toBe((before.pictureId + 1) & 0x7fff);
      expect(after.tl0PicIdx).toBe((before.tl0PicIdx + 1) & 0xff);
      const step = (packets[i]!.timestamp - packets[i - 1]!.timestamp) >>> 0;
      const elapsed = (packets[i]!.atMs - packets[i - 1]!.atMs) * 90;
      expect(Math.abs(step - Math.max(1, elapsed))).toBeLessThanOrEqual(2);
      const isSwitch = marks[i] !== marks[i - 1];
      expect(after.isKeyframeStart).toBe(isSwitch);
      if (isSwitch) expect(after.keyIdx).toBe((before.keyIdx + 1) & 0x1f);
    }
  });

  test('drops late packets from before a switch, and puts those from after it in their place', () => {
    play(2, { key: ['m'] });
    world.setTargetVariant('sub', 'cam', 'h');
    const before = sources.h.vp8Frame();
    const key = sources.h.vp8Frame({ key: true, packets: 3 });
    publisher.send(key[0]!);
    publisher.send(key[2]!);
    sendAll(publisher, before);
    publisher.send(key[1]!);
    const fromHigh = viewer.packets.filter(({ payload }) => payload[10] === 0x1c);
    const base = fromHigh[0]!.sequence;
    expect(fromHigh.map(({ sequence }) => sequence - base)).toEqual([0, 2, 1]);
  });

  test('treats a keyframe as complete even if its first packet arrives last', () => {
    play(2, { key: ['m'] });
    world.setTargetVariant('sub', 'cam', 'h');
    const count = viewer.packets.length;
    const key = sources.h.vp8Frame({ key: true, packets: 3 });
    sendAll(publisher, [key[1]!, key[2]!, key[0]!]);
    sendAll(publisher, sources.h.vp8Frame());
    const after = viewer.packets.slice(count);
    expect(after).toHaveLength(5);
    expectContiguous(viewer.packets.slice(count - 1));
    expect(after.map(({ marker }) => marker)).toEqual([false, false, true, false, true]);
  });

  test('replaces a variant that stops within two seconds, and resumes it after ten good ones', () => {
    play(30, { key: ['l', 'm', 'h'] });
    const stoppedAt = world.nowMs;
    while (world.switches('sub').length < 2 && world.nowMs < stoppedAt + 5000) play(3, { without: ['m'], key: ['h'] });
    expect(world.switches('sub')).toEqual(['cam m other', 'cam h encoding_inactive']);
    expect(world.nowMs - stoppedAt).toBeLessThan(2100);
    const resumedAt = world.nowMs;
    while (world.switches('sub').length < 3 && world.nowMs < resumedAt + 20_000) play(10, { key: ['m'] });
    expect(world.switches('sub')[2]).toBe('cam m other');
    expect(world.nowMs - resumedAt).toBeGreaterThanOrEqual(10_000);
    expect(world.nowMs - resumedAt).toBeLessThan(12_500);
    expectContiguous(viewer.packets);
  });

  test('soon shows newcomers a publisher that stalled for a moment', () => {
    play(30, { key: ['l', 'm', 'h'] });
    world.advance(2_500);
    const late = world.join('late', { outbound: [videoSlot('cam')] });
    const resumedAt = world.nowMs;
    while (late.packets.length === 0 && world.nowMs < resumedAt + 20_000) play(3, { key: ['l', 'm', 'h'] });
    expect(world.nowMs - resumedAt).toBeLessThan(2_200);
    expect(world.switches('late')).toEqual(['cam m other']);
  });

  test('distinguishes two tracks of one client with the same rids by their mids', () => {
    const second = { l: 0x2a, m: 0x2b, h: 0x2c };
    world.negotiate('pub', { inbound: [inboundSimulcast('cam'), inboundSimulcast('screen', { mid: '2' })] });
    const slots = [videoSlot('cam'), videoSlot('screen', { mid: '6', ssrc: 0xaaaa0011, rtxSsrc: 0xaaaa0012 })];
    world.negotiate('sub', { outbound: slots });
    viewer.connect();
    world.setTargetVariant('sub', 'screen', 'h');
    play(1, { key: ['l', 'm', 'h'] });
    for (const rid of ['l', 'm', 'h'] as const) {
      sendAll(publisher, source(second[rid], { mid: '2', rid }).vp8Frame({ key: true }));
    }
    const marks = new Map(viewer.packets.map(({ ssrc, payload }) => [ssrc, payload[10]]));
    expect(marks.get(0xaaaa0001)).toBe(0x1b);
    expect(marks.get(0xaaaa0011)).toBe(0x2c);
  });

  test('gives each subscriber the variant it requested, with one request per variant', () => {
    const other = world.join('other', { outbound: [videoSlot('cam')] });
    play(1, { key: ['l', 'm', 'h'] });
    world.advance(300);
    publisher.rtcp.length = 0;
    world.setTargetVariant('sub', 'cam', 'h');
    world.setTargetVariant('other', 'cam', 'h');
    let plis = 0;
    publisher.forEachRtcp((reader) => (plis += reader.isPli ? 1 : 0));
    expect(plis).toBe(1);
    world.setTargetVariant('other', 'cam', 'l');
    play(2, { key: ['l', 'h'] });
    expect(viewer.packets.at(-1)!.payload[10]).toBe(0x1c);
    expect(other.packets.at(-1)!.payload[10]).toBe(0x1a);
  });

  test('lets a subscriber whose source is replaced while it awaits another variant return with a keyframe', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const [middle, high] = [source(0x1b, { rid: 'm' }), source(0x1c, { rid: 'h' })];
    sendAll(publisher, middle.vp8Frame({ key: true }));
    sendAll(publisher, high.vp8Frame());
    world.setTargetVariant('sub', 'cam', 'h');
    const replaced = source(0x2b, { rid: 'm' });
    sendAll(publisher, replaced.vp8Frame());
    world.setTargetVariant('sub', 'cam', 'm');
    sendAll(publisher, replaced.vp8Frame({ key: true }));
    sendAll(publisher, replaced.vp8Frame());
    expect(viewer.packets.map(({ payload }) => payload[10])).toEqual([0x1b, 0x1b, 0x2b, 0x2b, 0x2b, 0x2b]);
    expectContiguous(viewer.packets);
  });
});

describe('outbound slots', () => {
  test('lets slots flow only after the cycle that introduced them has ended', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam'), inboundAudio('mic')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const camera = source(0x101);
    const microphone = source(0x201, { payloadType: 111, mid: '0' });
    world.negotiate('sub', { outbound: [videoSlot('cam'), audioSlot('mic')] });
    sendAll(publisher, camera.vp8Frame({ key: true }));
    sendAll(publisher, microphone.opusFrame());
    expect(viewer.packets.map(({ ssrc }) => ssrc)).toEqual([0xaaaa0001, 0xaaaa0001]);
    viewer.connect();
    sendAll(publisher, microphone.opusFrame());
    expect(viewer.packets.at(-1)!.ssrc).toBe(0xbbbb0001);
    expect(world.switches('sub')).toEqual(['cam h other', 'mic h other']);
  });

  test('stops slots missing from an answer immediately', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const camera = source(0x101);
    sendAll(publisher, camera.vp8Frame({ key: true }));
    world.negotiate('sub', {});
    sendAll(publisher, camera.vp8Frame());
    expect(viewer.packets).toHaveLength(2);
  });

  test('continues the counters of a slot given to another track', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam'), inboundVideo('screen', { mid: '2' })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    sendAll(publisher, source(0x101).vp8Frame({ key: true }));
    world.negotiate('sub', {});
    viewer.connect();
    world.negotiate('sub', { outbound: [videoSlot('screen')] });
    viewer.connect();
    sendAll(publisher, source(0x303, { mid: '2' }).vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
    expectContiguous(viewer.packets);
    expect(descriptor(viewer.packets[2]!).pictureId).toBe(descriptor(viewer.packets[1]!).pictureId + 1);
  });

  test('does not carry a track that returns in another codec until its slot is renegotiated', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    sendAll(publisher, source(0x101).vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(2);

    world.negotiate('pub', { inbound: [inboundVideo('cam', { ssrc: 0x103, codec: H264 })] });
    publisher.connect();
    const camera = source(0x103, { payloadType: H264.payloadType });
    sendAll(publisher, camera.h264Frame({ key: true }));
    expect(viewer.packets).toHaveLength(2);

    const codec = { ...H264, payloadType: 125, rtxPayloadType: 126 };
    world.negotiate('sub', { outbound: [videoSlot('cam', { codec, ssrc: 0xaaaa0003, rtxSsrc: 0xaaaa0004 })] });
    viewer.connect();
    sendAll(publisher, camera.h264Frame({ key: true }));
    expect(viewer.packets.slice(2).map(({ payloadType }) => payloadType)).toEqual([125, 125]);
  });

  test("copies the audio level to the receiver's extension id", () => {
    const publisher = world.join('pub', { inbound: [inboundAudio('mic')] });
    const viewer = world.join('sub', { outbound: [audioSlot('mic')] });
    sendAll(publisher, source(0x201, { payloadType: 111, mid: '0' }).opusFrame({ level: 0x85 }));
    expect([...viewer.packets[0]!.extension(RECEIVER_EXTENSIONS.audioLevel!)!]).toEqual([0x85]);
  });
});

describe('unwanted packets', () => {
  test('drops and counts an unknown SSRC without mid', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    publisher.send(new SyntheticSource({ ssrc: 1, payloadType: 96 }).vp8Frame()[0]!);
    publisher.send(source(2, { mid: '77' }).vp8Frame()[0]!);
    publisher.send(source(3, { payloadType: 50 }).vp8Frame()[0]!);
    expect(world.context.dropped).toMatchObject({ unknown_ssrc: 1, unpublished: 1, unexpected_payload: 1 });
  });

  test('drops a payload type that was not negotiated', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    publisher.send(source(0x101, { payloadType: 50 }).vp8Frame()[0]!);
    expect(world.context.dropped.unexpected_payload).toBe(1);
  });

  test('drops a rid that was not offered', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam', { rids: ['l', 'm'] })] });
    publisher.send(source(3, { rid: 'h' }).vp8Frame({ key: true })[0]!);
    publisher.send(source(4, { rid: 'x' }).vp8Frame({ key: true })[0]!);
    expect(world.context.dropped.unknown_rid).toBe(2);
  });

  test('drops a packet too large to be sealed, and continues the stream', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const camera = source(0x101);
    sendAll(publisher, camera.vp8Frame({ key: true }));
    sendAll(publisher, camera.vp8Frame({ packets: 1, size: 1700 }));
    sendAll(publisher, camera.vp8Frame());
    expect(world.context.dropped.oversized).toBe(1);
    expect(viewer.packets).toHaveLength(4);
  });
});
