import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { CODEC_NAMES, RtcpType, RtcpWriter, splitAnnexB, toAnnexB, toNtp } from '@bloom/rtp';
import { type FeedFrame, TAP_LIMITS, type TapEvent, type TappedFrame } from '../media-frames.js';
import { type MemoryPeer, MemoryWorld } from '../testing/memory-port.js';
import {
  audioSlot,
  H264,
  inboundAudio,
  inboundSimulcast,
  inboundVideo,
  SyntheticSource,
  videoSlot,
} from '../testing/synthetic-media.js';

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

function camera(ssrc: number, over: object = {}): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 96, mid: '1', ...over });
}

function sendAll(peer: MemoryPeer, packets: readonly Buffer[]): void {
  for (const packet of packets) peer.send(packet);
}

interface Tapped {
  readonly events: TapEvent[];
  frames(): TappedFrame[];
  consumed(frames: number, bytes: number): void;
  close(): void;
}

function tap(trackId: string, codecs = CODEC_NAMES): Tapped {
  const number = world.newNumber();
  world.apply({ type: 'openTap', tap: number, trackId, codecs });
  const events = (): TapEvent[] =>
    world.reports.flatMap((report) => (report.type === 'tapEvent' && report.tap === number ? [report.event] : []));
  return {
    get events() {
      return events();
    },
    frames: () => events().flatMap((event) => (event.type === 'frame' ? [event.frame] : [])),
    consumed: (frames, bytes) => void world.apply({ type: 'tapConsumed', tap: number, frames, bytes }),
    close: () => void world.apply({ type: 'closeTap', tap: number }),
  };
}

function plis(peer: MemoryPeer): number {
  let count = 0;
  peer.forEachRtcp((reader) => {
    if (reader.isPli) count++;
  });
  return count;
}

describe('frame tap', () => {
  test('gives a tap whole frames in order even if packets arrive out of order', () => {
    const cam = tap('cam');
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const source = camera(0x101);
    const [a, b, c] = [source.vp8Frame({ key: true, packets: 3 }), source.vp8Frame({ packets: 2 }), source.vp8Frame()];
    sendAll(publisher, [a[0]!, a[2]!, b[0]!, a[1]!, c[1]!, b[1]!, c[0]!]);
    expect(cam.events).toEqual([]);
    world.advance(20);

    expect(cam.frames().map(({ key, timestamp }) => [key, timestamp])).toEqual([
      [true, 0],
      [false, 2970],
      [false, 5940],
    ]);
    expect(cam.frames()[0]).toMatchObject({ codec: 'vp8', ssrc: 0x101, arrivalMs: 10_000 });
    expect(cam.frames()[0]!.data.length).toBe(300);
    expect(cam.events.every(({ type }) => type === 'frame')).toBe(true);
  });

  test('costs its track nothing when a tap is for other codecs', () => {
    const warn = jest.fn();
    world = new MemoryWorld({ ...silentLog, warn });
    const cam = tap('cam', ['h264']);
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    sendAll(publisher, camera(0x101).vp8Frame({ key: true }));
    world.advance(300);
    expect(cam.events).toEqual([]);
    expect(plis(publisher)).toBe(0);
    expect(warn.mock.calls).toEqual([['media.tap_codec_refused', { roomId: 'room', trackId: 'cam', codec: 'vp8' }]]);
  });

  test('requests a key frame for a late tap, which gets nothing before it', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const source = camera(0x101);
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.advance(300);
    const cam = tap('cam');
    expect(plis(publisher)).toBe(1);
    sendAll(publisher, source.vp8Frame());
    world.advance(20);
    expect(cam.events).toEqual([]);
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.advance(20);
    expect(cam.frames()).toHaveLength(1);
  });

  test('reports unrepaired loss to a tap, requests a key frame and resumes with it', () => {
    const cam = tap('cam');
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const source = camera(0x101);
    sendAll(publisher, source.vp8Frame({ key: true }));
    source.vp8Frame();
    sendAll(publisher, source.vp8Frame());
    world.advance(100);
    expect(cam.frames()).toHaveLength(1);
    world.advance(200);
    expect(cam.frames()).toHaveLength(1);
    expect(plis(publisher)).toBeGreaterThanOrEqual(1);
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.advance(20);
    expect(cam.events.slice(1)).toMatchObject([
      { type: 'gap', lostPackets: 2, droppedFrames: 0 },
      { type: 'frame', frame: { key: true } },
    ]);
  });

  test('gives a tap the highest active variant, with continuous time across changes', () => {
    const cam = tap('cam');
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const sources = (['l', 'm', 'h'] as const).map((rid, i) =>
      camera(0x30 + i, { rid, firstTimestamp: i * 1_000_000 }),
    );
    const play = (alive: number): void => {
      for (const source of sources.slice(0, alive)) {
        source.timestamp += 3000 - 2970;
        sendAll(publisher, source.vp8Frame({ key: true }));
      }
    };
    let ms = 0;
    world.advance(1_500, () => ms++ % 33 === 0 && play(3));
    expect(new Set(cam.frames().map(({ ssrc }) => ssrc))).toEqual(new Set([0x32]));
    // Its last frame was a keyframe, so the first silent second is excused.
    world.advance(3_500, () => ms++ % 33 === 0 && play(2));
    expect(cam.frames().at(-1)).toMatchObject({ ssrc: 0x31 });
    const times = cam.frames().map(({ timestamp }) => timestamp);
    for (let i = 1; i < times.length; i++) expect(times[i]).toBeGreaterThan(times[i - 1]!);
    expect(times.at(-1)! / 90).toBeGreaterThan(4_700);
    expect(times.at(-1)! / 90).toBeLessThan(5_200);
  });

  test("takes the publisher's clock of a tap from its sender reports", () => {
    const mic = tap('mic');
    const publisher = world.join('pub', { inbound: [inboundAudio('mic', { ssrc: 0x201 })] });
    const source = new SyntheticSource({ ssrc: 0x201, payloadType: 111, mid: '0' });
    sendAll(publisher, source.opusFrame());
    world.advance(20);
    expect(mic.frames()[0]!.senderMs).toBeUndefined();
    const { seconds, fraction } = toNtp(1_700_000_000_000);
    const report = {
      ssrc: 0x201,
      ntpSeconds: seconds,
      ntpFraction: fraction,
      rtpTimestamp: source.timestamp,
      packetCount: 1,
      octetCount: 1,
    };
    publisher.sendControl(new RtcpWriter().senderReport(report).bytes());
    sendAll(publisher, source.opusFrame());
    world.advance(20);
    expect(mic.frames()[1]!.senderMs).toBeCloseTo(1_700_000_000_020, 0);
    expect(mic.frames()[1]).toMatchObject({ codec: 'opus', timestamp: 960, key: true });
  });

  test('drops frames of a tap up to the next key frame when it holds too much, and reports how many', () => {
    const cam = tap('cam');
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const source = camera(0x101);
    for (let i = 0; i < TAP_LIMITS.frames + 10; i++) {
      sendAll(publisher, source.vp8Frame({ key: i === 0 }));
      if (i % 30 === 0) world.advance(20);
    }
    world.advance(20);
    expect(cam.frames()).toHaveLength(TAP_LIMITS.frames);
    cam.consumed(TAP_LIMITS.frames, 1e9);
    sendAll(publisher, source.vp8Frame());
    world.advance(20);
    expect(cam.frames()).toHaveLength(TAP_LIMITS.frames);
    expect(plis(publisher)).toBeGreaterThan(0);
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.advance(20);
    expect(cam.events.slice(-2)).toMatchObject([
      { type: 'gap', lostPackets: 0, droppedFrames: 11 },
      { type: 'frame', frame: { key: true } },
    ]);
    expect(world.context.dropped.tap_overrun).toBe(11);
  });

  test('requests no key frame while a tap holds too many bytes, however few the frames', () => {
    const cam = tap('cam');
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const source = camera(0x101);
    const play = (frames: number): void => {
      for (let i = 0; i < frames; i++) {
        sendAll(publisher, source.vp8Frame({ key: i % 25 === 0, packets: 100, size: 1_100 }));
        world.advance(40);
      }
    };
    play(100);
    const held = cam.frames();
    expect(held.length).toBeLessThan(TAP_LIMITS.frames / 2);
    const before = plis(publisher);
    play(100);
    expect(cam.frames().length).toBe(held.length);
    expect(plis(publisher)).toBe(before);

    cam.consumed(held.length, held.length * 110_000);
    world.advance(20);
    expect(plis(publisher)).toBe(before + 1);
  });

  test('notifies a tap of the end of its track, and gives it a later track with the same id', () => {
    const cam = tap('cam');
    const first = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    sendAll(first, camera(0x101).vp8Frame({ key: true }));
    world.apply({ type: 'closeTransport', peerId: 'pub' });
    world.advance(20);
    expect(cam.events.map(({ type }) => type)).toEqual(['frame', 'ended']);
    const second = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x102 })] });
    sendAll(second, camera(0x102).vp8Frame({ key: true }));
    world.advance(20);
    expect(cam.frames()).toHaveLength(2);
    expect(cam.frames()[1]!.timestamp).toBeGreaterThan(0);
  });

  test('delivers the frames it has when a tap is closed, and requests nothing more', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const source = camera(0x101);
    const cam = tap('cam');
    sendAll(publisher, source.vp8Frame({ key: true }));
    cam.close();
    sendAll(publisher, source.vp8Frame());
    world.advance(500);
    expect(cam.frames()).toHaveLength(1);
  });
});

describe('frame feed', () => {
  const sps = Buffer.from([0x67, 0x42, 0xe0, 0x1f]);
  const pps = Buffer.from([0x68, 0xce]);
  const idr = (size: number): Buffer => Buffer.concat([Buffer.from([0x65]), Buffer.alloc(size, 0xf7)]);
  const h264Slot = (): ReturnType<typeof videoSlot> => videoSlot('film', { codec: { ...H264, payloadType: 120 } });

  function feed(codec: 'h264' | 'opus'): { send(frame: FeedFrame): void; close(): void; wishes(): number } {
    const number = world.newNumber();
    const kind = codec === 'opus' ? 'audio' : 'video';
    world.apply({ type: 'openFeed', feed: number, options: { trackId: 'film', endpointId: 'player', kind, codec } });
    return {
      send: (frame) => void world.apply({ type: 'feedFrame', feed: number, frame }),
      close: () => void world.apply({ type: 'closeFeed', feed: number }),
      wishes: () => world.reports.filter((report) => report.type === 'keyframeWanted' && report.feed === number).length,
    };
  }

  test("sends a feed to the room's clients and taps with its frames unchanged", () => {
    const film = feed('h264');
    const viewer = world.join('sub', { outbound: [h264Slot()] });
    const tapped = tap('film');
    const key = toAnnexB([sps, pps, idr(5_000)]);
    film.send({ timestamp: 0, data: Buffer.from(key) });
    film.send({ timestamp: 3000, data: toAnnexB([Buffer.concat([Buffer.from([0x41]), Buffer.alloc(50, 9)])]) });
    world.advance(20);

    expect(viewer.packets.length).toBeGreaterThan(5);
    expect(viewer.packets.filter(({ marker }) => marker)).toHaveLength(2);
    expect(viewer.packets.at(-1)!.timestamp - viewer.packets[0]!.timestamp).toBe(3000);
    expect(splitAnnexB(Buffer.from(tapped.frames()[0]!.data))).toEqual(splitAnnexB(key));
    expect(tapped.frames()).toHaveLength(2);
    expect(tapped.frames()[1]!.senderMs).toBeCloseTo(10_000 + 3000 / 90, 0);
  });

  test('keeps the due time of frames, however late they are sent', () => {
    const film = feed('opus');
    const tapped = tap('film');
    const dueMs = world.context.world.now();
    world.advance(80);
    film.send({ timestamp: 0, dueMs, data: Buffer.alloc(40, 0xfc) });
    film.send({ timestamp: 960, dueMs: dueMs + 20, data: Buffer.alloc(40, 0xfc) });
    world.advance(20);
    // Its source has slowed down by 30 ms.
    film.send({ timestamp: 1920, dueMs: dueMs + 70, data: Buffer.alloc(40, 0xfc) });
    world.advance(100);
    expect(tapped.frames().map(({ senderMs }) => Math.round(senderMs! - dueMs))).toEqual([0, 20, 70]);
  });

  test('keeps its time when frames are held up briefly, and adjusts once they stay late', () => {
    const phone = feed('opus');
    const tapped = tap('film');
    const startMs = world.context.world.now();
    const send = (...frames: number[]): void => {
      for (const i of frames) phone.send({ timestamp: i * 960, data: Buffer.alloc(40, 0xfc) });
    };
    send(0);
    world.advance(340);
    send(...Array.from({ length: 17 }, (_, i) => i + 1));
    const offMs = (): number[] => tapped.frames().map(({ senderMs }, i) => Math.round(senderMs! - startMs) - i * 20);
    expect(new Set(offMs())).toEqual(new Set([0]));
    world.advance(300);
    for (let i = 18; i < 80; i++) {
      send(i);
      world.advance(20);
    }
    expect(offMs()[18]).toBe(0);
    expect(offMs()[67]).toBe(0);
    expect(offMs()[69]).toBe(280);
    expect(offMs().at(-1)).toBe(280);
  });

  test('asks its component for a key frame when a subscriber needs one', () => {
    const film = feed('h264');
    film.send({ timestamp: 0, data: toAnnexB([sps, pps, idr(100)]) });
    expect(film.wishes()).toBe(0);
    world.join('sub', { outbound: [h264Slot()] });
    expect(film.wishes()).toBe(1);
  });

  test('spreads a large picture over several ticks, and never queues without limit', () => {
    const film = feed('h264');
    const viewer = world.join('sub', { outbound: [h264Slot()] });
    film.send({ timestamp: 0, data: toAnnexB([sps, pps, idr(100_000)]) });
    const atOnce = viewer.packets.length;
    world.advance(100);
    expect(atOnce).toBe(32);
    expect(viewer.packets.length).toBeGreaterThan(80);
    for (let i = 1; i < 200; i++) film.send({ timestamp: i * 3000, data: toAnnexB([sps, pps, idr(100_000)]) });
    expect(world.context.dropped.feed_overrun).toBeGreaterThan(100);
  });

  test("reports an audio feed on the wall clock under its endpoint's name", () => {
    const film = feed('opus');
    const viewer = world.join('sub', { outbound: [audioSlot('film')] });
    for (let i = 0; i < 10; i++) {
      film.send({ timestamp: i * 960, data: Buffer.alloc(40, 0xfc) });
      world.advance(20);
    }
    expect(viewer.packets).toHaveLength(10);
    let reports = 0;
    viewer.forEachRtcp((reader) => {
      if (reader.type === RtcpType.SR) reports++;
    });
    expect(reports).toBeGreaterThan(0);
    expect(viewer.rtcp.some((compound) => compound.includes('player'))).toBe(true);
  });

  test('ends for its subscribers when closed, and may be opened again', () => {
    const film = feed('opus');
    const viewer = world.join('sub', { outbound: [audioSlot('film')] });
    film.send({ timestamp: 0, data: Buffer.alloc(40, 0xfc) });
    film.close();
    film.send({ timestamp: 960, data: Buffer.alloc(40, 0xfc) });
    expect(viewer.packets).toHaveLength(1);
    feed('opus').send({ timestamp: 0, data: Buffer.alloc(40, 0xfc) });
    expect(viewer.packets).toHaveLength(2);
  });
});
