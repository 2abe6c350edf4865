import { beforeEach, describe, expect, test } from '@jest/globals';
import { RtcpWriter } from '@bloom/rtp';
import type { MemoryPeer, SeenPacket } from '../testing/memory-port.js';
import { SpanningWorld } from '../testing/spanning-world.js';
import {
  audioSlot,
  inboundAudio,
  inboundSimulcast,
  inboundVideo,
  SyntheticSource,
  videoSlot,
} from '../testing/synthetic-media.js';

let worlds: SpanningWorld;
beforeEach(() => {
  worlds = new SpanningWorld();
});

function source(ssrc: number, over: object = {}): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 96, mid: '1', ...over });
}

/** Sends packets and lets them cross. */
function play(peer: MemoryPeer, packets: readonly Buffer[]): void {
  for (const packet of packets) peer.send(packet);
  worlds.settle();
}

function plis(publisher: MemoryPeer): number {
  let count = 0;
  publisher.forEachRtcp((reader) => void (reader.isPli && count++));
  return count;
}

const numbers = (packets: readonly SeenPacket[]): number[] =>
  packets.map(({ sequence }) => (sequence - packets[0]!.sequence) & 0xffff);

/** A camera on the first worker, watched by somebody on the second. */
function call(over: Parameters<typeof inboundVideo>[1] = { ssrc: 0x101 }) {
  const publisher = worlds.one.join('pub', { inbound: [inboundVideo('cam', over)] });
  worlds.settle();
  const viewer = worlds.two.join('sub', { outbound: [videoSlot('cam')] });
  worlds.settle();
  return { publisher, viewer, camera: source(0x101) };
}

describe('a track with subscribers on another worker', () => {
  test('starts there with its first keyframe, under numbers without gaps', () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true, packets: 3 }));
    play(publisher, camera.vp8Frame());
    expect(viewer.packets).toHaveLength(5);
    expect(numbers(viewer.packets)).toEqual([0, 1, 2, 3, 4]);
    expect(viewer.packets[0]!.ssrc).toBe(0xaaaa0001);
  });

  test('crosses once, however many subscribers it has there', () => {
    const { publisher, viewer, camera } = call();
    const others = ['x', 'y', 'z'].map((id) => worlds.two.join(id, { outbound: [videoSlot('cam')] }));
    worlds.settle();
    play(publisher, camera.vp8Frame({ key: true, packets: 4 }));
    expect(worlds.there.crossed).toEqual([0, 0, 4]);
    for (const each of [viewer, ...others]) expect(each.packets).toHaveLength(4);
  });

  test('does not cross without a subscriber there, nor once the last one has been gone for two seconds', () => {
    const { publisher, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    worlds.two.apply({ type: 'closeTransport', peerId: 'sub' });
    worlds.advance(3_000);
    const before = worlds.there.crossed[2];
    play(publisher, camera.vp8Frame({ key: true }));
    expect(worlds.there.crossed[2]).toBe(before);
    worlds.two.join('again', { outbound: [videoSlot('cam')] });
    worlds.settle();
    play(publisher, camera.vp8Frame({ key: true }));
    expect(worlds.two.peers.get('again')!.packets).toHaveLength(2);
  });

  test('sends nothing to a paused subscriber, and a keyframe when it resumes', () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    worlds.two.apply({ type: 'setTrackPaused', peerId: 'sub', trackId: 'cam', paused: true });
    worlds.advance(3_000);
    const crossed = worlds.there.crossed[2];
    play(publisher, camera.vp8Frame());
    expect(worlds.there.crossed[2]).toBe(crossed);
    const asked = plis(publisher);
    worlds.two.apply({ type: 'setTrackPaused', peerId: 'sub', trackId: 'cam', paused: false });
    worlds.settle();
    expect(plis(publisher)).toBe(asked + 1);
    play(publisher, camera.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
  });

  test('merges keyframe requests of both workers for the publisher', () => {
    const { publisher, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    worlds.advance(1_000);
    const asked = plis(publisher);
    worlds.one.join('here', { outbound: [videoSlot('cam')] });
    for (const id of ['x', 'y', 'z']) worlds.two.join(id, { outbound: [videoSlot('cam')] });
    worlds.settle();
    expect(plis(publisher)).toBe(asked + 1);
  });

  test("resends a packet that its subscriber lost from the subscriber's own worker", () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    play(publisher, camera.vp8Frame({ packets: 3 }));
    const [, , lost] = viewer.packets;
    worlds.advance(100);
    const asked = publisher.rtcp.length;
    viewer.packets.length = 0;
    const writer = new RtcpWriter(200);
    writer.nack(1, lost!.ssrc, [lost!.sequence]);
    viewer.sendControl(writer.bytes());
    worlds.settle();
    expect(viewer.packets).toHaveLength(1);
    expect(viewer.packets[0]!.payload.readUInt16BE()).toBe(lost!.sequence);
    expect(publisher.rtcp.length).toBe(asked);
  });

  test('delivers a packet that the publisher repairs late, in its place', () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    const [first, second] = camera.vp8Frame();
    play(publisher, [second!]);
    play(publisher, [first!]);
    expect(numbers(viewer.packets)).toEqual([0, 1, 3, 2]);
  });

  test("leaves no gap for the publisher's padding", () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    play(publisher, [camera.padding()]);
    play(publisher, camera.vp8Frame());
    expect(numbers(viewer.packets)).toEqual([0, 1, 2, 3]);
  });

  test('starts a new source of the publisher with its keyframe', () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    worlds.one.negotiate('pub', { inbound: [inboundVideo('cam', { ssrc: 0x202 })] });
    const next = source(0x202);
    play(publisher, next.vp8Frame());
    expect(viewer.packets).toHaveLength(2);
    play(publisher, next.vp8Frame({ key: true }));
    expect(numbers(viewer.packets)).toEqual([0, 1, 2, 3]);
  });

  test('delivers nothing of a blocked track, whose picture returns with a keyframe', () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    worlds.one.apply({ type: 'setTrackBlocked', peerId: 'pub', trackId: 'cam', blocked: true });
    play(publisher, camera.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(2);
    worlds.advance(300);
    worlds.one.apply({ type: 'setTrackBlocked', peerId: 'pub', trackId: 'cam', blocked: false });
    worlds.advance(300);
    play(publisher, camera.vp8Frame());
    expect(viewer.packets).toHaveLength(2);
    play(publisher, camera.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
  });

  test('removes a track that ends there, and lets another one follow under its id from a third worker', () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    // The peer has moved: its new transport arrives before the end of the old one.
    const moved = worlds.two.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x303 })] });
    worlds.one.apply({ type: 'closeTransport', peerId: 'pub' });
    worlds.settle();
    play(moved, source(0x303).vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
  });

  test('crosses sound with its level, and tells newcomers whether somebody speaks', () => {
    const publisher = worlds.one.join('pub', { inbound: [inboundAudio('mic', { ssrc: 0x201 })] });
    worlds.settle();
    const viewer = worlds.two.join('sub', { outbound: [audioSlot('mic')] });
    worlds.settle();
    const mic = new SyntheticSource({ ssrc: 0x201, payloadType: 111, mid: '0' });
    for (let i = 0; i < 30; i++) {
      play(publisher, mic.opusFrame());
      worlds.advance(20);
    }
    expect(viewer.packets).toHaveLength(30);
    worlds.two.join('late', { outbound: [audioSlot('mic')] });
    worlds.settle();
    expect(worlds.two.events).toContainEqual({
      type: 'voiceActivity',
      trackId: 'mic',
      status: expect.stringMatching('speech|silence'),
      peerId: 'late',
    });
    // The publisher's worker reports what concerns everybody, once.
    expect(worlds.two.events.filter((event) => event.type === 'voiceActivity' && event.peerId === undefined)).toEqual(
      [],
    );
  });

  test("sends subscribers reports on the publisher's clock", () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    const ntpSeconds = 3_900_000_000;
    const writer = new RtcpWriter(200);
    const counts = { packetCount: 1, octetCount: 1 };
    writer.senderReport({ ssrc: 0x101, ntpSeconds, ntpFraction: 0, rtpTimestamp: camera.timestamp, ...counts });
    publisher.sendControl(writer.bytes());
    worlds.advance(1_100);
    play(publisher, camera.vp8Frame());
    worlds.advance(1_100);
    const seconds: number[] = [];
    viewer.forEachRtcp((reader) => {
      const { senderInfo } = worlds.two.context;
      if (reader.type === 200 && reader.readSenderInfo(senderInfo)) seconds.push(senderInfo.ntpSeconds);
    });
    expect(seconds[0]).toBeGreaterThanOrEqual(ntpSeconds);
    expect(seconds.at(-1)).toBeLessThan(ntpSeconds + 5);
  });
});

describe('simulcast across workers', () => {
  const layers = (['l', 'm', 'h'] as const).map((rid, i) => ({ rid, ssrc: 0x30 + i }));

  function simulcast() {
    const publisher = worlds.one.join('pub', { inbound: [inboundSimulcast('cam')] });
    worlds.settle();
    const viewer = worlds.two.join('sub', { outbound: [videoSlot('cam')] });
    worlds.settle();
    const sources = layers.map(({ rid, ssrc }) => source(ssrc, { rid }));
    const send = (key: boolean): void => {
      for (const each of sources) play(publisher, each.vp8Frame({ key }));
    };
    return { publisher, viewer, send, sources };
  }

  test('crosses only the variants that somebody there needs', () => {
    const { send } = simulcast();
    send(true);
    expect(worlds.there.crossed).toEqual([0, 2, 0]);
    worlds.advance(40);
    worlds.two.setTargetVariant('sub', 'cam', 'l');
    worlds.settle();
    send(true);
    expect(worlds.there.crossed).toEqual([2, 4, 0]);
    expect(worlds.two.switches('sub')).toEqual(['cam m other', 'cam l other']);
    worlds.advance(1_000);
    for (let i = 0; i < 30; i++) {
      worlds.advance(100);
      send(false);
    }
    const [, medium] = worlds.there.crossed;
    send(false);
    expect(worlds.there.crossed[1]).toBe(medium);
  });

  test('replaces a variant that goes silent there as it does here', () => {
    const { publisher, send } = simulcast();
    const here = worlds.one.join('here', { outbound: [videoSlot('cam')] });
    send(true);
    const low = source(0x30, { rid: 'l' });
    low.sequence = 2_000;
    for (let i = 0; i < 60; i++) {
      worlds.advance(50);
      play(publisher, low.vp8Frame({ key: true }));
    }
    expect(here.packets.length).toBeGreaterThan(20);
    expect(worlds.two.switches('sub')).toEqual(worlds.one.switches('here'));
    expect(worlds.two.switches('sub').at(-1)).toBe('cam l encoding_inactive');
  });

  test('does not return to a variant that is inactive for its publisher, although its packets still cross', () => {
    const { publisher, send, sources } = simulcast();
    worlds.one.join('here', { outbound: [videoSlot('cam')] });
    send(true);
    for (let i = 0; i < 60 && !worlds.two.switches('sub').includes('cam l encoding_inactive'); i++) {
      worlds.advance(50);
      play(publisher, sources[0]!.vp8Frame({ key: true }));
    }
    for (let i = 0; i < 10; i++) {
      worlds.advance(50);
      send(true);
    }
    expect(worlds.one.switches('here')).toEqual(['cam m other', 'cam l encoding_inactive']);
    expect(worlds.two.switches('sub')).toEqual(worlds.one.switches('here'));
  });
});

describe('another worker that fails', () => {
  test('drops and counts packets for one that is too far behind, and slows nobody down', () => {
    const { publisher, viewer, camera } = call();
    const here = worlds.one.join('here', { outbound: [videoSlot('cam')] });
    play(publisher, camera.vp8Frame({ key: true }));
    worlds.there.stuck = true;
    for (let i = 0; i < 10; i++) play(publisher, camera.vp8Frame());
    expect(here.packets).toHaveLength(22);
    expect(viewer.packets).toHaveLength(2);
    expect(worlds.one.context.dropped.crossing_overrun).toBe(20);
    worlds.there.stuck = false;
    play(publisher, camera.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
  });

  test('removes the tracks of one that has ended, and keeps those of others', () => {
    const { publisher, viewer, camera } = call();
    const own = worlds.two.join('own', { inbound: [inboundVideo('own', { ssrc: 0x404, mid: '1' })] });
    worlds.two.join('both', { outbound: [videoSlot('own')] });
    play(publisher, camera.vp8Frame({ key: true }));
    worlds.two.apply({ type: 'unspan', worker: 1 });
    worlds.two.apply({ type: 'unspan', worker: 1 });
    play(publisher, camera.vp8Frame());
    expect(viewer.packets).toHaveLength(2);
    for (const packet of source(0x404).vp8Frame({ key: true })) own.send(packet);
    expect(worlds.two.peers.get('both')!.packets).toHaveLength(2);
  });

  test('announces a track again to a part that was reopened', () => {
    const { publisher, viewer, camera } = call();
    play(publisher, camera.vp8Frame({ key: true }));
    for (const [world, worker] of [
      [worlds.one, 2],
      [worlds.two, 1],
    ] as const) {
      world.apply({ type: 'unspan', worker });
      world.apply({ type: 'span', room: 1, worker });
    }
    worlds.settle();
    play(publisher, camera.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
  });

  test('ignores messages about tracks and rooms that have ended', () => {
    const { one } = worlds;
    const link = worlds.back;
    link.post({ room: 1, type: 'need', track: 99, variants: ['h'], highest: 2 });
    link.post({ room: 1, type: 'keyframe', track: 99, variant: 'h' });
    link.post({ room: 1, type: 'gone', track: 99 });
    link.post({ room: 1, type: 'clock', track: 99, variant: 'h', ssrc: 1, ntp: [1, 1], rtp: 1 });
    link.post({ room: 1, type: 'channelClosed', label: 'nothing' });
    worlds.settle();
    expect(one.reports).toEqual([]);
  });
});
