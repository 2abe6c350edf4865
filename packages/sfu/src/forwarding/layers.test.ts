// Streams with several layers, of which each subscriber gets a part (SVC).
import { beforeEach, describe, expect, test } from '@jest/globals';
import { payloadFormat, type PayloadReader, RtcpReader, RtcpWriter, RtpView } from '@bloom/rtp';
import { type MemoryPeer, MemoryWorld, type SeenPacket } from '../testing/memory-port.js';
import { NarrowClient } from '../testing/narrow-client.js';
import { AV1, inboundVideo, SyntheticSource, videoSlot, VP9 } from '../testing/synthetic-media.js';

/** Bytes of the spatial layers of a picture: 120, 400 and 1,200 kbit/s at 30 pictures per second. */
const SIZES = [500, 1_670, 5_000];
/** Temporal layers of successive pictures, as in the mode L3T3. */
const PATTERN = [0, 2, 1, 2];
const FRAME_MS = 33;

let world: MemoryWorld;
let publisher: MemoryPeer;
let camera: SyntheticSource;
beforeEach(() => {
  world = new MemoryWorld();
  publisher = world.join('pub', { inbound: [inboundVideo('cam', { codec: VP9 })] });
  camera = new SyntheticSource({ ssrc: 0x1a, payloadType: VP9.payloadType, mid: '1' });
});

const view = new RtpView();
const reader: PayloadReader = payloadFormat('vp9').createReader();

/** Reads the descriptor of a packet that a viewer gets. */
function read(packet: SeenPacket): PayloadReader & { pictureId: number } {
  expect(view.parse(packet.bytes)).toBe(true);
  expect(reader.read(view)).toBe(true);
  return reader as PayloadReader & { pictureId: number };
}

const join = (): MemoryPeer =>
  world.join('sub', { outbound: [videoSlot('cam', { codec: { ...VP9, payloadType: 120, rtxPayloadType: 121 } })] });

/** Lets the publisher send, and answer requests for key pictures. `onTick` runs every 5 ms or so. */
function publish(
  seconds: number,
  onTick: (nowMs: number) => void = () => {},
  sizesOf: (count: number) => number[] = () => SIZES,
): void {
  const rtcp = new RtcpReader();
  let due = world.nowMs;
  let count = 0;
  let isKeyWanted = camera.pictureId === 100;
  world.advance(seconds * 1000, (nowMs) => {
    for (const compound of publisher.rtcp.splice(0)) {
      rtcp.open(compound);
      while (rtcp.next()) isKeyWanted ||= rtcp.isPli;
    }
    if (nowMs >= due) {
      due += FRAME_MS;
      const key = isKeyWanted;
      isKeyWanted = false;
      count = key ? 0 : count + 1;
      const temporal = PATTERN[count % PATTERN.length]!;
      for (const packet of camera.vp9Picture({ key, temporal, sizes: sizesOf(count) })) publisher.send(packet);
    }
    onTick(nowMs);
  });
}

/** A viewer behind a link, which counts the packets of each spatial layer. */
function narrow(viewer: MemoryPeer, capacityBps: number): NarrowClient {
  const link = new NarrowClient(viewer, capacityBps);
  link.markOf = (packet) => read(packet).spatialLayer;
  return link;
}

/** Widens the link. Returns after how many ms the largest size arrives, up to 60,000. */
function widen(link: NarrowClient, sizesOf?: (count: number) => number[]): number {
  link.capacityBps = 20_000_000;
  const wideAtMs = world.nowMs;
  while (link.shown.get(2) === undefined && world.nowMs - wideAtMs < 60_000)
    publish(0.05, (nowMs) => link.tick(nowMs), sizesOf);
  return world.nowMs - wideAtMs;
}

describe('a viewer of a VP9 stream with three sizes', () => {
  test('gets the next good packet after malformed descriptors, which are counted', () => {
    const viewer = join();
    for (const packet of camera.vp9Picture({ key: true, sizes: SIZES })) publisher.send(packet);
    const before = viewer.packets.length;
    // No picture id, half of one, a fourth reference index, and a structure of 255 pictures that is cut off.
    const malformed = ['80', '8091', 'd01103030302ff', `8a1108ff${'0c'.repeat(1_000)}`];
    for (const payload of malformed) publisher.send(camera.packet(Buffer.from(payload, 'hex'), false));
    expect(viewer.packets).toHaveLength(before);
    expect(world.context.dropped.malformed_media).toBe(malformed.length);
    const [good] = camera.vp9Picture({ sizes: [200] });
    publisher.send(good!);
    const [last, previous] = [viewer.packets.at(-1)!, viewer.packets.at(-2)!];
    expect(last.payload.length).toBe(205);
    expect((last.sequence - previous.sequence) & 0xffff).toBe(1);
  });

  test('gets the whole stream on a wide link, without a request for a key picture', () => {
    const viewer = join();
    const link = narrow(viewer, 20_000_000);
    publish(1, (nowMs) => link.tick(nowMs));
    const before = world.stats().transports.find(({ peerId }) => peerId === 'pub')!.inbound[0]!.keyframes;
    publish(10, (nowMs) => link.tick(nowMs));
    const after = world.stats().transports.find(({ peerId }) => peerId === 'pub')!.inbound[0]!.keyframes;
    expect(after).toBe(before);
    expect([...link.shown.keys()].toSorted()).toEqual([0, 1, 2]);
    expect(link.shown.get(2)).toBeGreaterThan(4 * 290);
  });

  test('gets the whole stream without feedback on its transport, after a while', () => {
    publish(2);
    const viewer = join();
    publish(1);
    expect(new Set(viewer.packets.map((packet) => read(packet).spatialLayer))).toEqual(new Set([0]));
    publish(3);
    expect(read(viewer.packets.at(-1)!).spatialLayer).toBe(2);
  });

  test('gets the sizes that fit on a narrow link, and the largest again once the link is wide', () => {
    const viewer = join();
    const link = narrow(viewer, 200_000);
    publish(20, (nowMs) => link.tick(nowMs));
    link.shown.clear();
    link.lost = 0;
    publish(20, (nowMs) => link.tick(nowMs));
    expect(link.shown.get(0)).toBeGreaterThan(400);
    expect(link.shown.get(2)).toBeUndefined();
    expect(link.lost).toBe(0);
    const flowing = () => world.stats().transports.find(({ peerId }) => peerId === 'sub')!.outbound[0]!;
    const layers = { maxSpatial: 2, maxTemporal: 2 };
    expect(flowing()).toMatchObject({ layers: { ...layers, spatial: 0 }, reason: 'low_bandwidth' });

    const wideAtMs = world.nowMs;
    expect(widen(link)).toBeLessThanOrEqual(5_000);
    // It may return with fewer pictures per second at first.
    while (flowing().layers?.temporal !== 2 && world.nowMs - wideAtMs < 60_000)
      publish(0.05, (nowMs) => link.tick(nowMs));
    expect(world.nowMs - wideAtMs).toBeLessThanOrEqual(5_000);
    expect(flowing()).toMatchObject({ layers: { ...layers, spatial: 2, temporal: 2 }, reason: 'other' });
  });

  test('gets a larger size with fewer pictures per second before a smaller one', () => {
    const viewer = join();
    const link = narrow(viewer, 300_000);
    publish(20, (nowMs) => link.tick(nowMs));
    link.shown.clear();
    link.lost = 0;
    publish(40, (nowMs) => link.tick(nowMs));
    expect(link.shown.get(0)).toBeGreaterThan(550);
    expect(link.shown.get(1)).toBeGreaterThan(550);
    expect(link.shown.get(2)).toBeUndefined();
    expect(link.lost).toBe(0);
    const { layers } = world.stats().transports.find(({ peerId }) => peerId === 'sub')!.outbound[0]!;
    expect(layers).toMatchObject({ spatial: 1, temporal: 1 });
  });

  test.each([
    [70_000, 17],
    [300_000, 10],
    [300_000, 23],
    [300_000, 31],
  ])('follows a link of %d bit/s for %d s and a wide one within 5 s, with rates that vary', (capacityBps, seconds) => {
    const link = narrow(join(), 20_000_000);
    const varying = (count: number): number[] => SIZES.map((size) => size * (0.5 + 0.25 * Math.sin(count / 40)));
    publish(5, (nowMs) => link.tick(nowMs), varying);
    link.capacityBps = capacityBps;
    publish(5, (nowMs) => link.tick(nowMs), varying);
    link.shown.clear();
    publish(seconds - 5, (nowMs) => link.tick(nowMs), varying);
    expect(link.shown.get(2)).toBeUndefined();
    expect(widen(link, varying)).toBeLessThanOrEqual(5_000);
  });

  test('is not flooded with what it requests after its link has become narrow', () => {
    const link = narrow(join(), 20_000_000);
    link.requests = true;
    const sizes = (): number[] => SIZES.map((size) => size * 0.6);
    publish(5, (nowMs) => link.tick(nowMs), sizes);
    link.capacityBps = 300_000;
    publish(6, (nowMs) => link.tick(nowMs), sizes);
    link.lost = 0;
    publish(10, (nowMs) => link.tick(nowMs), sizes);
    expect(link.lost).toBe(0);
  });

  test('sees complete pictures without gaps in their packets, whichever layers it gets', () => {
    const viewer = join();
    const seen: SeenPacket[] = [];
    const link = new NarrowClient(viewer, 200_000);
    publish(20, (nowMs) => link.tick(nowMs));
    link.lost = 0;
    link.markOf = (packet) => seen.push(packet);
    publish(10, (nowMs) => link.tick(nowMs));
    expect(link.lost).toBe(0);
    expect(new Set(seen.map((packet) => read(packet).spatialLayer))).toEqual(new Set([0]));
    expect(seen.length).toBeGreaterThan(250);
    for (const [i, packet] of seen.slice(1).entries()) {
      const before = seen[i]!;
      expect((packet.sequence - before.sequence) & 0xffff).toBe(1);
      expect((read(packet).pictureId - read(before).pictureId) & 0x7fff).toBe(1);
      expect(packet.marker).toBe(true);
    }
  });

  test('gets the last packet of its largest size resent with the marker that the publisher set on a larger one', () => {
    const viewer = join();
    const link = new NarrowClient(viewer, 300_000);
    publish(20, (nowMs) => link.tick(nowMs));
    const resent: SeenPacket[] = [];
    let last: SeenPacket | undefined;
    viewer.onPacket = (packet) => {
      if (packet.payloadType === 121 && packet.payload.length < 1_000) resent.push(packet);
      else last = packet;
    };
    publish(0.2);
    const writer = new RtcpWriter();
    writer.nack(5, last!.ssrc, [last!.sequence]);
    viewer.sendControl(writer.bytes());
    expect(resent).toHaveLength(1);
    expect(resent[0]?.payload.readUInt16BE()).toBe(last!.sequence);
    expect(resent[0]?.payload.subarray(2)).toEqual(last!.payload);
    expect(resent[0]?.marker).toBe(true);
  });

  test('gets fewer pictures per second of a stream with one size', () => {
    const viewer = join();
    const link = new NarrowClient(viewer, 300_000);
    link.markOf = (packet) => read(packet).temporalLayer;
    publish(
      20,
      (nowMs) => link.tick(nowMs),
      () => [2_000],
    );
    link.shown.clear();
    link.lost = 0;
    publish(
      10,
      (nowMs) => link.tick(nowMs),
      () => [2_000],
    );
    expect(link.lost).toBe(0);
    expect(link.shown.get(0)).toBeGreaterThan(100);
    expect(link.shown.get(2)).toBeUndefined();
  });
});

describe('a viewer of an AV1 stream with two sizes', () => {
  /** Templates of Chromium's mode L2T3_KEY: 0, 1 to 4 are of the smaller size. */
  const templateOf = (packet: SeenPacket): number => packet.extension(2)![0]! & 0x3f;
  const isLarge = (packet: SeenPacket): boolean => templateOf(packet) > 4;

  /** Lets the publisher send, and answer requests for key pictures. */
  function publishAv1(seconds: number, onTick: (nowMs: number) => void): void {
    const rtcp = new RtcpReader();
    let [due, count, isKeyWanted] = [world.nowMs, 0, camera.pictureId === 100];
    world.advance(seconds * 1000, (nowMs) => {
      for (const compound of publisher.rtcp.splice(0)) {
        rtcp.open(compound);
        while (rtcp.next()) isKeyWanted ||= rtcp.isPli;
      }
      if (nowMs >= due) {
        due += FRAME_MS;
        count = isKeyWanted ? 0 : count + 1;
        const temporal = PATTERN[count % PATTERN.length]!;
        for (const packet of camera.av1Picture({ key: isKeyWanted, temporal, sizes: [300, 1_000] }))
          publisher.send(packet);
        isKeyWanted = false;
      }
      onTick(nowMs);
    });
  }

  let viewer: MemoryPeer;
  beforeEach(() => {
    world = new MemoryWorld();
    publisher = world.join('pub', { inbound: [inboundVideo('cam', { codec: AV1 })] });
    camera = new SyntheticSource({ ssrc: 0x1a, payloadType: AV1.payloadType, mid: '1' });
    viewer = world.join('sub', {
      outbound: [videoSlot('cam', { codec: { ...AV1, payloadType: 120, rtxPayloadType: 121 } })],
    });
  });

  test('gets the size that fits on a narrow link with its descriptors, and the larger one once the link is wide', () => {
    const seen: SeenPacket[] = [];
    const link = new NarrowClient(viewer, 130_000);
    publishAv1(10, (nowMs) => link.tick(nowMs));
    link.markOf = (packet) => seen.push(packet);
    publishAv1(5, (nowMs) => link.tick(nowMs));
    expect(seen.length).toBeGreaterThan(140);
    expect(seen.filter(isLarge)).toEqual([]);
    expect(seen.every(({ marker }) => marker)).toBe(true);
    for (const [i, packet] of seen.slice(1).entries()) expect((packet.sequence - seen[i]!.sequence) & 0xffff).toBe(1);

    link.capacityBps = 20_000_000;
    publishAv1(5, (nowMs) => link.tick(nowMs));
    expect(seen.some(isLarge)).toBe(true);
    expect(seen.find((packet) => packet.extension(2)!.length > 16)?.payload[0]).toBe(0x18);
  });

  test('gets descriptors with retransmissions too', () => {
    publishAv1(0.2, () => {});
    const [first] = viewer.packets;
    const resent: SeenPacket[] = [];
    viewer.onPacket = (packet) => resent.push(packet);
    const writer = new RtcpWriter();
    writer.nack(5, first!.ssrc, [first!.sequence]);
    viewer.sendControl(writer.bytes());
    expect(resent.map((packet) => packet.extension(2))).toEqual([first!.extension(2)]);
  });

  test('gets the next good packet after malformed descriptors, which are counted', () => {
    publishAv1(0.2, () => {});
    const before = viewer.packets.length;
    for (const descriptor of ['c0', 'c0020080', `c0020180${'00'.repeat(200)}`]) {
      publisher.send(camera.packet(Buffer.from([0x10, 1]), true, { more: [[13, Buffer.from(descriptor, 'hex')]] }));
    }
    expect(viewer.packets).toHaveLength(before);
    expect(world.context.dropped.malformed_media).toBe(3);
    for (const packet of camera.av1Picture()) publisher.send(packet);
    const [last, previous] = [viewer.packets.at(-1)!, viewer.packets.at(-3)!];
    expect((last.sequence - previous.sequence) & 0xffff).toBe(2);
  });
});
