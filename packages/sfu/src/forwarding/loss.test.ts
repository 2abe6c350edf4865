import { beforeEach, describe, expect, test } from '@jest/globals';
import { RtcpReader, RtcpWriter, sequenceDelta } from '@bloom/rtp';
import { type MemoryPeer, MemoryWorld, type SeenPacket, seededRandom } from '../testing/memory-port.js';
import { H264, inboundSimulcast, inboundVideo, SyntheticSource, videoSlot, VP8 } from '../testing/synthetic-media.js';

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

function camera(ssrc: number, over: object = {}): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 96, mid: '1', ...over });
}

function nackedBy(peer: MemoryPeer): number[] {
  const numbers: number[] = [];
  peer.forEachRtcp((reader) => reader.forEachNack((sequence) => numbers.push(sequence)));
  return numbers;
}

function nack(peer: MemoryPeer, ssrc: number, sequences: number[]): void {
  const writer = new RtcpWriter();
  writer.nack(1, ssrc, sequences);
  peer.sendControl(writer.bytes());
}

describe('loss between publisher and server', () => {
  test('requests a lost packet again and puts its retransmission in its place at the subscribers', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101, rtxSsrc: 0x102 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    const rtx = camera(0x102, { payloadType: 97 });
    for (const packet of source.vp8Frame({ key: true, packets: 2 })) publisher.send(packet);
    const lost = source.vp8Frame({ packets: 3 });
    publisher.send(lost[0]!);
    publisher.send(lost[2]!);
    const missing = source.sequence - 2;
    world.advance(40);
    expect(nackedBy(publisher)).toEqual([missing]);

    publisher.send(source.retransmit(missing, rtx));
    // A client that sends it twice does no harm.
    publisher.send(source.retransmit(missing, rtx));
    const first = viewer.packets[0]!.sequence;
    expect(viewer.packets.map(({ sequence }) => sequence - first)).toEqual([0, 1, 2, 4, 3]);
    expect(viewer.packets[4]!.payload.subarray(6)).toEqual(Buffer.alloc(100, 0x01));
    world.advance(500);
    expect(nackedBy(publisher)).toEqual([missing]);
    const [stats] = world.stats().transports.find(({ peerId }) => peerId === 'pub')!.inbound;
    expect(stats).toMatchObject({ packets: 5, lost: 0, nacks: 1, rtx: { packets: 2 } });
  });

  test('sends nothing under the number of a retransmitted packet when its original comes late, and differs', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101, rtxSsrc: 0x102 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    const rtx = camera(0x102, { payloadType: 97 });
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    const lost = source.vp8Frame({ packets: 3 });
    publisher.send(lost[0]!);
    publisher.send(lost[2]!);
    publisher.send(source.retransmit(source.sequence - 2, rtx));
    viewer.forgetReplays();
    lost[1]!.writeUInt8(0xee, lost[1]!.length - 1);
    publisher.send(lost[1]!);
    expect(viewer.packets).toHaveLength(5);
  });

  test('forwards a late retransmission in order, however often it was requested', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101, rtxSsrc: 0x102 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    const rtx = camera(0x102, { payloadType: 97 });
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    const lost = source.vp8Frame({ packets: 3 });
    publisher.send(lost[0]!);
    publisher.send(lost[2]!);
    const missing = source.sequence - 2;
    world.advance(650);
    publisher.send(source.retransmit(missing, rtx));
    expect(viewer.packets).toHaveLength(5);
  });

  test('finds simulcast retransmission streams by mid and repaired rid, and repairs with them', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x1b, { rid: 'm' });
    const rtx = camera(0x2b, { payloadType: 97, repairedRid: 'm' });
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    const lost = source.vp8Frame({ packets: 3 });
    publisher.send(lost[0]!);
    publisher.send(lost[2]!);
    publisher.send(source.retransmit(source.sequence - 2, rtx));
    expect(viewer.packets).toHaveLength(5);
    expect(world.context.dropped.unknown_ssrc).toBe(0);
  });

  test('does not start an H.264 subscriber with a slice while the parameter sets before it are missing', () => {
    const inbound = [inboundVideo('cam', { ssrc: 0x101, rtxSsrc: 0x102, codec: H264 })];
    const publisher = world.join('pub', { inbound });
    const codec = { ...H264, payloadType: 120, rtxPayloadType: 121 };
    const viewer = world.join('sub', { outbound: [videoSlot('cam', { codec })] });
    const source = camera(0x101, { payloadType: 102 });
    const rtx = camera(0x102, { payloadType: 103 });
    publisher.send(source.h264Frame()[0]!);
    const [, slice] = source.h264Frame({ key: true });
    publisher.send(slice!);
    world.advance(40);
    expect(viewer.packets).toHaveLength(0);
    publisher.send(source.retransmit(source.sequence - 2, rtx));
    publisher.send(source.h264Frame()[0]!);
    expect(viewer.packets.map(({ payload }) => payload[0])).toEqual([0x67, 0x65, 0x41]);
    const first = viewer.packets[0]!.sequence;
    expect(viewer.packets.map(({ sequence }) => sequence - first)).toEqual([0, 1, 2]);
  });

  test('does not treat probing retransmissions as media and forwards them to no subscriber', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x1b, { rid: 'm' });
    const rtx = camera(0x2b, { payloadType: 97, repairedRid: 'm' });
    publisher.send(rtx.padding());
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    publisher.send(source.retransmit(source.sequence - 1, rtx));
    publisher.send(rtx.padding());
    expect(viewer.packets).toHaveLength(2);
  });

  test('sends no NACK to a publisher that did not negotiate it', () => {
    const codec = { ...VP8, feedback: ['nack pli'] };
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { codec })] });
    const packets = camera(0x101).vp8Frame({ key: true, packets: 5 });
    publisher.send(packets[0]!);
    publisher.send(packets[4]!);
    world.advance(200);
    expect(nackedBy(publisher)).toEqual([]);
  });
});

describe('a publisher that is away for a while', () => {
  test('asks a returning publisher for the keyframe that subscribers still wait for', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const source = camera(0x101);
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const asked = (): number => {
      let count = 0;
      publisher.forEachRtcp((reader) => (count += reader.isPli ? 1 : 0));
      return count;
    };
    world.advance(15_000);
    const inVain = asked();
    world.advance(1_000);
    expect(asked()).toBe(inVain);
    for (const packet of source.vp8Frame()) publisher.send(packet);
    expect(asked()).toBe(inVain + 1);
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    expect(viewer.packets).toHaveLength(2);
  });
});

describe('loss between server and subscriber', () => {
  function played(codec = videoSlot('cam').codec): { viewer: MemoryPeer; before: SeenPacket[] } {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam', { codec })] });
    const source = camera(0x101);
    for (let i = 0; i < 5; i++) {
      for (const packet of source.vp8Frame({ key: i === 0, packets: 3 })) publisher.send(packet);
      world.advance(33);
    }
    return { viewer, before: viewer.packets.splice(0) };
  }

  test('answers a NACK on the retransmission stream with the original packet, number for number', () => {
    const { viewer, before } = played();
    const wanted = [before[4]!, before[5]!];
    nack(
      viewer,
      0xaaaa0001,
      wanted.map(({ sequence }) => sequence),
    );
    expect(viewer.packets).toHaveLength(2);
    for (const [i, packet] of viewer.packets.entries()) {
      const original = wanted[i]!;
      expect(packet.ssrc).toBe(0xaaaa0002);
      expect(packet.payloadType).toBe(121);
      expect(packet.payload.readUInt16BE(0)).toBe(original.sequence);
      expect(packet.payload.subarray(2)).toEqual(original.payload);
      expect(packet.timestamp).toBe(original.timestamp);
      expect(packet.marker).toBe(original.marker);
    }
    expect(sequenceDelta(viewer.packets[0]!.sequence, viewer.packets[1]!.sequence)).toBe(1);
  });

  test('resends the original packet without RTX', () => {
    const { rtxPayloadType: _, ...codec } = videoSlot('cam').codec;
    const { viewer, before } = played(codec);
    const opened: SeenPacket[] = [];
    viewer.onPacket = (packet) => opened.push(packet);
    // In this scenario the packet never arrived.
    viewer.forgetReplays();
    nack(viewer, 0xaaaa0001, [before[4]!.sequence]);
    expect(opened).toHaveLength(1);
    expect(opened[0]!.ssrc).toBe(0xaaaa0001);
    expect(opened[0]!.sequence).toBe(before[4]!.sequence);
    expect(opened[0]!.payload).toEqual(before[4]!.payload);
  });

  test('does not resend a packet twice within a round trip, and cuts off a storm', () => {
    const { viewer, before } = played();
    for (let i = 0; i < 50; i++) nack(viewer, 0xaaaa0001, [before[4]!.sequence]);
    expect(viewer.packets).toHaveLength(1);
    world.advance(100);
    nack(viewer, 0xaaaa0001, [before[4]!.sequence]);
    expect(viewer.packets).toHaveLength(2);
    const stats = world.stats().transports.find(({ peerId }) => peerId === 'sub')!.outbound[0]!;
    expect(stats).toMatchObject({ nacks: 51, retransmitted: 2 });
  });

  test('sends packets beyond the budget of one tick when they are requested in the next', () => {
    const world = new MemoryWorld();
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = new SyntheticSource({ ssrc: 0x101, payloadType: 96, mid: '1' });
    for (const packet of source.vp8Frame({ key: true, packets: 160 })) publisher.send(packet);
    const sent = viewer.packets.map(({ sequence }) => sequence);
    const ssrc = viewer.packets[0]?.ssrc ?? 0;
    const nack = (sequences: number[]): number => {
      const before = viewer.packets.length;
      const writer = new RtcpWriter();
      writer.nack(1, ssrc, sequences);
      viewer.sendControl(writer.bytes());
      return viewer.packets.length - before;
    };
    expect(nack(sent.slice(0, 150))).toBe(100);
    world.advance(20);
    expect(nack(sent.slice(100, 150))).toBe(50);
  });

  test('does not invent packets that were never sent', () => {
    const { viewer, before } = played();
    nack(viewer, 0xaaaa0001, [(before.at(-1)!.sequence + 5) & 0xffff]);
    nack(viewer, 0x12345678, [before[0]!.sequence]);
    expect(viewer.packets).toHaveLength(0);
  });

  test('resends a packet from before a switch unchanged, even after the switch', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const m = camera(0x1b, { rid: 'm', firstSequence: 500 });
    const h = camera(0x1c, { rid: 'h', firstSequence: 500 });
    for (const packet of m.vp8Frame({ key: true })) publisher.send(packet);
    for (const packet of h.vp8Frame({ key: true })) publisher.send(packet);
    world.setTargetVariant('sub', 'cam', 'h');
    for (const packet of h.vp8Frame({ key: true })) publisher.send(packet);
    const [first] = viewer.packets.splice(0);
    nack(viewer, 0xaaaa0001, [first!.sequence]);
    expect(viewer.packets).toHaveLength(1);
    expect(viewer.packets[0]!.payload.subarray(2)).toEqual(first!.payload);
  });

  test('resends a packet from after a switch with its original numbers', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const m = camera(0x1b, { rid: 'm' });
    const h = camera(0x1c, { rid: 'h' });
    h.pictureId = 20_000;
    for (const packet of m.vp8Frame({ key: true })) publisher.send(packet);
    for (const packet of h.vp8Frame({ key: true })) publisher.send(packet);
    world.setTargetVariant('sub', 'cam', 'h');
    for (const packet of h.vp8Frame({ key: true })) publisher.send(packet);
    const last = viewer.packets.splice(0).at(-1)!;
    expect(last.payload[10]).toBe(0x1c);
    nack(viewer, 0xaaaa0001, [last.sequence]);
    expect(viewer.packets[0]!.payload.subarray(2)).toEqual(last.payload);
  });

  test('turns PLI and FIR into a keyframe request for the variant that flows now', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const sources = (['l', 'm', 'h'] as const).map((rid, i) => camera(0x1a + i, { rid }));
    for (const source of sources) for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    world.advance(1000);
    const requests = (): number[] => {
      const ssrcs: number[] = [];
      publisher.forEachRtcp((reader) => {
        if (reader.isPli) ssrcs.push(reader.mediaSsrc);
      });
      publisher.rtcp.length = 0;
      return ssrcs;
    };
    requests();
    viewer.sendControl(new RtcpWriter().pli(1, 0xaaaa0001).bytes());
    expect(requests()).toEqual([0x1b]);
    for (const packet of sources[1]!.vp8Frame({ key: true })) publisher.send(packet);
    world.advance(1000);
    requests();
    viewer.sendControl(new RtcpWriter().fir(1, 0xaaaa0001, 7).bytes());
    expect(requests()).toEqual([0x1b]);
  });
});

describe('keyframe requests of a subscriber', () => {
  test('treats keyframe requests as stale while the last keyframe may still be on its way', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    world.advance(1000);
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    const requests = (): number => {
      let count = 0;
      publisher.forEachRtcp((reader) => (count += reader.isPli ? 1 : 0));
      publisher.rtcp.length = 0;
      return count;
    };
    requests();
    world.advance(40);
    viewer.sendControl(new RtcpWriter().pli(1, 0xaaaa0001).bytes());
    world.advance(600);
    expect(requests()).toBe(0);
    viewer.sendControl(new RtcpWriter().pli(1, 0xaaaa0001).bytes());
    expect(requests()).toBe(1);
  });
});

test('omits extension ids and mids beyond the one-byte form instead of failing the slot', () => {
  const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
  const extensions = { mid: 4, transportCc: 200 };
  const viewer = world.join('sub', { outbound: [videoSlot('cam', { mid: 'm'.repeat(40), extensions })] });
  for (const packet of camera(0x101).vp8Frame({ key: true })) publisher.send(packet);
  expect(viewer.packets).toHaveLength(2);
  expect(viewer.packets[0]!.extension(4)).toBeUndefined();
});

/** Models a call with loss in both directions, all of which is recovered. */
test('leaves no packet missing in the end with five per cent of loss on both legs', () => {
  const random = seededRandom(99);
  const isLost = (): boolean => (random() >>> 8) % 100 < 5;
  const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101, rtxSsrc: 0x102 })] });
  const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
  const source = camera(0x101);
  const rtx = camera(0x102, { payloadType: 97 });
  const received = new Set<number>();
  let newest = -1;
  let lostToViewer = 0;
  viewer.onPacket = (packet) => {
    if (isLost()) {
      lostToViewer++;
      return;
    }
    const sequence = packet.ssrc === 0xaaaa0002 ? packet.payload.readUInt16BE(0) : packet.sequence;
    received.add(sequence);
    newest = Math.max(newest, sequence);
  };
  let first = -1;
  let sent = 0;
  let lostToServer = 0;
  const reader = new RtcpReader();
  for (let frame = 0; frame < 600; frame++) {
    for (const packet of source.vp8Frame({ key: frame === 0, packets: 3 })) {
      sent++;
      if (frame > 0 && isLost()) lostToServer++;
      else publisher.send(packet);
    }
    if (first < 0) first = Math.min(...received);
    world.advance(33);
    for (const compound of publisher.rtcp.splice(0)) {
      reader.open(compound);
      while (reader.next()) {
        reader.forEachNack((sequence) => {
          if (!isLost()) publisher.send(source.retransmit(sequence, rtx));
        });
      }
    }
    const missing: number[] = [];
    for (let sequence = first; sequence <= newest; sequence++) if (!received.has(sequence)) missing.push(sequence);
    if (missing.length > 0) nack(viewer, 0xaaaa0001, missing.slice(0, 60));
  }
  expect(lostToServer).toBeGreaterThan(50);
  expect(lostToViewer).toBeGreaterThan(50);
  const recoverable = [...received].filter((sequence) => sequence >= first).length;
  expect(recoverable).toBeGreaterThan(sent - 15);
});
