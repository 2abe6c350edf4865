// Streams of VP8 and H.264 with temporal layers, of which each subscriber gets a part.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { payloadFormat, RtcpReader, RtcpWriter, RtpView } from '@bloom/rtp';
import type { Variant } from '../media-engine.js';
import { type MemoryPeer, MemoryWorld, type SeenPacket } from '../testing/memory-port.js';
import { NarrowClient } from '../testing/narrow-client.js';
import { H264, inboundSimulcast, inboundVideo, SyntheticSource, videoSlot } from '../testing/synthetic-media.js';

const FRAME_MS = 33;
/** Temporal layers as Chromium sends VP8, and whether the picture refers to the base layer only. */
const PATTERN = [
  [0, false],
  [2, true],
  [1, true],
  [2, false],
  [0, false],
  [2, false],
  [1, false],
  [2, false],
] as const;
/** Part of the bitrate that one picture of each layer has: 40, 20 and 40 % in all. */
const WEIGHTS = [1.6, 0.8, 0.8];

interface Picture {
  pictureId: number;
  temporalLayer: number;
  tl0PicIdx: number;
}

const view = new RtpView();
const reader = payloadFormat('vp8').createReader();

function read({ bytes }: SeenPacket): Picture {
  expect(view.parse(bytes)).toBe(true);
  expect(reader.read(view)).toBe(true);
  const { pictureId, temporalLayer, tl0PicIdx } = reader as typeof reader & Picture;
  return { pictureId, temporalLayer, tl0PicIdx };
}

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

describe('a viewer of VP8 with three temporal layers', () => {
  const rates: Record<Variant, number> = { l: 150_000, m: 500_000, h: 1_500_000 };
  let publisher: MemoryPeer;
  let sources: { rate: number; source: SyntheticSource; count: number }[];
  const keyWanted = new Set<number>();
  let due = 0;
  let frameMs = FRAME_MS;

  /** Publishes these sizes; a track without simulcast has only `h`. */
  function publishes(...rids: Variant[]): void {
    const isSimulcast = rids.length > 1;
    const track = isSimulcast
      ? inboundSimulcast('cam', { rids, bitratesBps: rates })
      : inboundVideo('cam', { bitratesBps: { h: rates.h } });
    publisher = world.join('pub', { inbound: [track] });
    sources = rids.map((rid, i) => {
      const options = { ssrc: 0x1a + i, payloadType: 96, mid: '1', ...(isSimulcast ? { rid } : {}) };
      return { rate: rates[rid], source: new SyntheticSource(options), count: 0 };
    });
    frameMs = FRAME_MS;
    keyWanted.clear();
    for (const { source } of sources) keyWanted.add(source.options.ssrc);
    due = world.nowMs;
  }

  const rtcp = new RtcpReader();
  /** Lets the publisher send, and answer requests for key pictures. */
  function play(seconds: number, onTick: (nowMs: number) => void = () => {}): void {
    world.advance(seconds * 1000, (nowMs) => {
      for (const compound of publisher.rtcp.splice(0)) {
        rtcp.open(compound);
        while (rtcp.next()) if (rtcp.isPli) keyWanted.add(rtcp.mediaSsrc);
      }
      if (nowMs >= due) {
        due += frameMs;
        for (const each of sources) {
          const { source, rate } = each;
          const key = keyWanted.delete(source.options.ssrc);
          each.count = key ? 0 : each.count + 1;
          const [temporal, synchronises] = PATTERN[each.count % PATTERN.length]!;
          const bytes = (rate * FRAME_MS * WEIGHTS[temporal]!) / 8000;
          const packets = Math.max(1, Math.round(bytes / 1000));
          const size = Math.floor(bytes / packets) - 40;
          for (const packet of source.vp8Frame({ key, packets, size, temporal, synchronises: key || synchronises }))
            publisher.send(packet);
        }
      }
      onTick(nowMs);
    });
  }

  const join = (): MemoryPeer => {
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'h');
    return viewer;
  };
  const outbound = () => world.stats().transports.find(({ peerId }) => peerId === 'sub')!.outbound[0]!;

  test('gets all of the largest size on a wide link', () => {
    publishes('l', 'm', 'h');
    const link = new NarrowClient(join(), 20_000_000);
    play(10, (nowMs) => link.tick(nowMs));
    expect(outbound()).toMatchObject({ variant: 'h', layers: { temporal: 2, maxTemporal: 2 }, reason: 'other' });
    expect(world.switches('sub')).toHaveLength(1);
  });

  test.each([
    [1_250_000, 'h', 1],
    [750_000, 'm', 2],
    [450_000, 'm', 1],
    [240_000, 'l', 2],
    [110_000, 'l', 1],
  ] as const)('settles at %d bit/s on %s up to the temporal layer %d', (capacityBps, variant, temporal) => {
    publishes('l', 'm', 'h');
    const link = new NarrowClient(join(), 20_000_000);
    play(5, (nowMs) => link.tick(nowMs));
    link.capacityBps = capacityBps;
    play(25, (nowMs) => link.tick(nowMs));
    const settled = world.switches('sub').length;
    link.lost = 0;
    play(20, (nowMs) => link.tick(nowMs));
    expect(outbound()).toMatchObject({ variant, layers: { temporal }, reason: 'low_bandwidth' });
    expect(world.switches('sub')).toHaveLength(settled);
    expect(link.lost).toBe(0);
  });

  test.each([
    [30, 2],
    [20, 1],
    [15, 1],
    [10, 0],
    [1, 0],
  ])(
    'that wants at most %d pictures per second gets the temporal layers up to %d of the size it chose',
    (fps, temporal) => {
      publishes('l', 'm', 'h');
      const link = new NarrowClient(join(), 20_000_000);
      const limit = (framesPerSecond: number | null): unknown =>
        world.apply({ type: 'setMaxFrameRate', peerId: 'sub', trackId: 'cam', framesPerSecond });
      play(5, (nowMs) => link.tick(nowMs));
      limit(fps);
      play(1, (nowMs) => link.tick(nowMs));
      const pictures = new Set<number>();
      link.markOf = ({ timestamp }) => (pictures.add(timestamp), 0);
      play(4, (nowMs) => link.tick(nowMs));
      const all = 4_000 / FRAME_MS;
      expect(Math.abs(pictures.size - all / 2 ** (2 - temporal))).toBeLessThanOrEqual(2);
      expect(outbound()).toMatchObject({ variant: 'h', layers: { temporal, maxTemporal: 2 }, reason: 'other' });
      limit(null);
      play(1, (nowMs) => link.tick(nowMs));
      expect(outbound()).toMatchObject({ variant: 'h', layers: { temporal: 2 } });
      expect(world.switches('sub')).toHaveLength(1);
    },
  );

  test('that wants few pictures per second gets as many when its publisher halves its rate', () => {
    publishes('l', 'm', 'h');
    const link = new NarrowClient(join(), 20_000_000);
    world.apply({ type: 'setMaxFrameRate', peerId: 'sub', trackId: 'cam', framesPerSecond: 15 });
    play(10, (nowMs) => link.tick(nowMs));
    expect(outbound()).toMatchObject({ layers: { temporal: 1 } });
    frameMs = 2 * FRAME_MS;
    play(12, (nowMs) => link.tick(nowMs));
    expect(outbound()).toMatchObject({ layers: { temporal: 2 }, reason: 'other' });
  });

  test('still lacks bandwidth in the statistics when it gets more, but not all that it wants', () => {
    publishes('l', 'm', 'h');
    const link = new NarrowClient(join(), 110_000);
    play(25, (nowMs) => link.tick(nowMs));
    link.capacityBps = 750_000;
    play(25, (nowMs) => link.tick(nowMs));
    expect(outbound()).toMatchObject({ variant: 'm', layers: { temporal: 2 }, reason: 'low_bandwidth' });
    expect(world.switches('sub').at(-1)).toBe('cam m other');
  });

  test('has all of the largest size within 5 s of a wide link', () => {
    publishes('l', 'm', 'h');
    const link = new NarrowClient(join(), 70_000);
    play(30, (nowMs) => link.tick(nowMs));
    expect(outbound()).toMatchObject({ variant: 'l', layers: { temporal: 0 } });
    link.capacityBps = 20_000_000;
    const wideAtMs = world.nowMs;
    while (outbound().variant !== 'h' && world.nowMs - wideAtMs < 60_000) play(0.05, (nowMs) => link.tick(nowMs));
    expect(world.nowMs - wideAtMs).toBeLessThanOrEqual(5_000);
    play(2, (nowMs) => link.tick(nowMs));
    expect(outbound()).toMatchObject({ layers: { temporal: 2 }, reason: 'other' });
  });

  test('sees pictures without gaps in their numbers, and none in part, whichever layers it gets', () => {
    publishes('h');
    const seen: SeenPacket[] = [];
    const link = new NarrowClient(join(), 20_000_000);
    link.markOf = (packet) => seen.push(packet);
    play(5, (nowMs) => link.tick(nowMs));
    for (const capacityBps of [900_000, 20_000_000, 1_300_000]) {
      link.capacityBps = capacityBps;
      play(4, (nowMs) => link.tick(nowMs));
      link.lost = 0;
      const from = seen.length;
      play(6, (nowMs) => link.tick(nowMs));
      expect(link.lost).toBe(0);
      for (const [i, packet] of seen.entries()) {
        if (i <= from) continue;
        const before = seen[i - 1]!;
        const [picture, previous] = [read(packet), read(before)];
        expect((packet.sequence - before.sequence) & 0xffff).toBe(1);
        const isNext = packet.timestamp !== before.timestamp;
        expect((picture.pictureId - previous.pictureId) & 0x7fff).toBe(isNext ? 1 : 0);
        expect(before.marker).toBe(isNext);
        const isBase = isNext && picture.temporalLayer === 0;
        expect((picture.tl0PicIdx - previous.tl0PicIdx) & 0xff).toBe(isBase ? 1 : 0);
      }
    }
    const layers = new Set(seen.map((packet) => read(packet).temporalLayer));
    expect(layers).toEqual(new Set([0, 1, 2]));
  });

  test('begins with an upper layer at pictures that refer to the base layer only', () => {
    publishes('h');
    const seen: Picture[] = [];
    const link = new NarrowClient(join(), 600_000);
    play(20, (nowMs) => link.tick(nowMs));
    expect(outbound().layers?.temporal).toBe(0);
    link.markOf = (packet) => (seen.push(read(packet)), 0);
    link.capacityBps = 20_000_000;
    const begun = () => sources[0]!.count % PATTERN.length;
    while (!seen.some(({ temporalLayer }) => temporalLayer > 0)) play(0.01, (nowMs) => link.tick(nowMs));
    // The third picture of the pattern, and the one that has arrived since.
    expect([3, 4]).toContain(begun() + 1);
  });

  test('gets the packets of layers that flow again, and nothing for those that are left out', () => {
    publishes('h');
    const viewer = join();
    const link = new NarrowClient(viewer, 900_000);
    play(20, (nowMs) => link.tick(nowMs));
    const seen: SeenPacket[] = [];
    viewer.onPacket = (packet) => seen.push(packet);
    play(0.3);
    const last = seen.findLast(({ ssrc }) => ssrc === 0xaaaa0001)!;
    const writer = new RtcpWriter();
    writer.nack(5, last.ssrc, [last.sequence]);
    seen.length = 0;
    viewer.sendControl(writer.bytes());
    expect(seen.map(({ payload }) => payload.subarray(2))).toEqual([last.payload]);
  });
});

describe('a viewer of H.264 in which every second picture can be left out', () => {
  let publisher: MemoryPeer;
  let camera: SyntheticSource;
  beforeEach(() => {
    publisher = world.join('pub', { inbound: [inboundVideo('cam', { codec: H264 })] });
    camera = new SyntheticSource({ ssrc: 0x1a, payloadType: H264.payloadType, mid: '1' });
  });
  const join = (): MemoryPeer =>
    world.join('sub', { outbound: [videoSlot('cam', { codec: { ...H264, payloadType: 120, rtxPayloadType: 121 } })] });
  let count = -1;
  beforeEach(() => {
    count = -1;
  });
  const picture = (): Buffer[] => {
    count += 1;
    return camera.h264Frame({ key: count === 0, size: 1_000, temporal: count % 2 });
  };
  function play(seconds: number, onTick: (nowMs: number) => void): void {
    let due = world.nowMs;
    world.advance(seconds * 1000, (nowMs) => {
      if (nowMs >= due) {
        due += FRAME_MS;
        for (const packet of picture()) publisher.send(packet);
      }
      onTick(nowMs);
    });
  }
  /** Makes the server leave out the upper layer, so that the next picture is one of the base layer. */
  function narrow(viewer: MemoryPeer): void {
    const link = new NarrowClient(viewer, 200_000);
    play(15, (nowMs) => link.tick(nowMs));
    while (count % 2 === 0) for (const packet of picture()) publisher.send(packet);
    viewer.onPacket = undefined;
    viewer.packets.length = 0;
  }

  test('gets the others on a narrow link, without gaps in their packets, and all once it is wide', () => {
    const viewer = join();
    narrow(viewer);
    for (let i = 0; i < 20; i += 1) {
      for (const packet of picture()) publisher.send(packet);
      world.advance(33);
    }
    const seen = viewer.packets.filter(({ isPadding }) => !isPadding);
    expect(seen).toHaveLength(10);
    for (const [i, packet] of seen.slice(1).entries()) {
      expect((packet.sequence - seen[i]!.sequence) & 0xffff).toBe(1);
      expect(packet.payload[0]).toBe(0x41);
    }
    const link = new NarrowClient(viewer, 20_000_000);
    const types: number[] = [];
    link.markOf = ({ payload }) => types.push(payload[0]!);
    play(5, (nowMs) => link.tick(nowMs));
    expect(types.slice(-2).toSorted()).toEqual([0x01, 0x41]);
  });

  test.each([true, false])('does not make a publisher that sends nothing encode key pictures, muted: %s', (muted) => {
    const viewer = join();
    narrow(viewer);
    publisher.rtcp.length = 0;
    if (muted) world.apply({ type: 'setTrackMuted', peerId: 'pub', trackId: 'cam', muted });
    const link = new NarrowClient(viewer, 20_000_000);
    world.advance(30_000, (nowMs) => link.tick(nowMs));
    let requests = 0;
    publisher.forEachRtcp((reader) => void (reader.isPli && requests++));
    expect(requests).toBe(0);
  });

  test('gets nothing of a picture that is left out, not even its delimiter in a packet of its own', () => {
    const viewer = join();
    narrow(viewer);
    for (const header of [0x40, 0x00, 0x40]) {
      camera.timestamp += 2_970;
      const fragment = (flags: number): Buffer => Buffer.from([header | 28, flags | 1, 0x9a, 1, 2]);
      for (const payload of [Buffer.from([9, 0xf0]), Buffer.from([6, 5]), fragment(0x80)])
        publisher.send(camera.packet(payload, false));
      publisher.send(camera.packet(fragment(0x40), true));
    }
    expect(new Set(viewer.packets.map(({ timestamp }) => timestamp)).size).toBe(2);
    expect(viewer.packets.map(({ payload, marker }) => [payload[0], marker])).toEqual([
      [0x5c, false],
      [0x5c, true],
      [0x5c, false],
      [0x5c, true],
    ]);
    for (const [i, { sequence }] of viewer.packets.slice(1).entries())
      expect((sequence - viewer.packets[i]!.sequence) & 0xffff).toBe(1);
  });

  test('gets no fillers of a picture that is left out', () => {
    const viewer = join();
    narrow(viewer);
    for (const header of [0x41, 0x01, 0x41]) {
      camera.timestamp += 2_970;
      publisher.send(camera.packet(Buffer.from([header, 0x9a, 1]), false));
      publisher.send(camera.packet(Buffer.from([0x0c, 0xff, 0xff, 0x80]), true));
    }
    expect(viewer.packets.map(({ payload, marker }) => [payload.toString('hex'), marker])).toEqual([
      ['419a01', false],
      ['0c80', true],
      ['419a01', false],
      ['0c80', true],
    ]);
  });

  test('has no layers to leave out where only delimiters have a packet of their own', () => {
    join();
    for (let i = 0; i < 60; i += 1) {
      publisher.send(camera.packet(Buffer.from([9, 0xf0]), false));
      for (const packet of camera.h264Frame({ key: i === 0, elapsedMs: 33 })) publisher.send(packet);
      world.advance(33);
    }
    expect(world.stats().transports.find(({ peerId }) => peerId === 'sub')!.outbound[0]!.layers).toBeUndefined();
  });

  test.each([
    ['on the retransmission stream', 121],
    ['again', undefined],
  ])('gets an empty packet for a picture left out that comes late, and %s if that is lost', (_how, rtxPayloadType) => {
    const { rtxPayloadType: _rtx, ...codec } = { ...H264, payloadType: 120 };
    const slot = { codec: rtxPayloadType === undefined ? codec : { ...codec, rtxPayloadType } };
    const viewer = world.join('sub', { outbound: [videoSlot('cam', slot)] });
    narrow(viewer);
    const [[first], [late], [last]] = [picture(), picture(), picture()];
    for (const packet of [first!, last!, late!]) {
      publisher.send(packet);
      world.advance(33);
    }
    expect(viewer.packets.map(({ payload }) => payload.length)).toEqual([1_000, 1_000, 0]);
    const [{ sequence }, after, filled] = viewer.packets as [SeenPacket, SeenPacket, SeenPacket];
    expect((after.sequence - sequence) & 0xffff).toBe(2);
    expect((filled.sequence - sequence) & 0xffff).toBe(1);
    expect(filled.marker).toBe(false);
    const writer = new RtcpWriter();
    writer.nack(5, filled.ssrc, [filled.sequence]);
    viewer.forgetReplays();
    viewer.sendControl(writer.bytes());
    viewer.sendControl(writer.bytes());
    expect(viewer.packets).toHaveLength(4);
    const resent = viewer.packets[3]!;
    expect([resent.payloadType, resent.timestamp, resent.marker]).toEqual([
      rtxPayloadType ?? 120,
      filled.timestamp,
      false,
    ]);
    if (rtxPayloadType === undefined) expect([resent.sequence, resent.payload.length]).toEqual([filled.sequence, 0]);
    else expect([resent.payload.length, resent.payload.readUInt16BE()]).toEqual([2, filled.sequence]);
  });
});
