import { beforeEach, describe, expect, test } from '@jest/globals';
import { RtcpReader } from '@bloom/rtp';
import type { OutboundSlot } from '../media-engine.js';
import { type MemoryPeer, MemoryWorld } from '../testing/memory-port.js';
import { NarrowClient } from '../testing/narrow-client.js';
import { inboundSimulcast, SyntheticSource, videoSlot, VP8 } from '../testing/synthetic-media.js';

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

function camera(ssrc: number, over: object = {}): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 96, mid: '1', ...over });
}

describe('a client behind its own link', () => {
  const announced = { l: 150_000, m: 500_000, h: 1_500_000 } as const;

  function start(
    capacityBps: number,
    rates: Record<'l' | 'm' | 'h', number> = announced,
    bitratesBps: Record<'l' | 'm' | 'h', number> = announced,
    slot: Partial<OutboundSlot> = {},
  ): {
    play(seconds: number): void;
    publish(trackId: string): void;
    show(...trackIds: string[]): void;
    /** Variants that the publishers have switched off. */
    off: Set<'l' | 'm' | 'h'>;
    link: NarrowClient;
    current(): string;
  } {
    const publishers: { peer: MemoryPeer; sources: { rid: 'l' | 'm' | 'h'; source: SyntheticSource }[] }[] = [];
    const publish = (trackId: string): void => {
      const first = 0x1a + 16 * publishers.length;
      publishers.push({
        peer: world.join(`pub-${trackId}`, { inbound: [inboundSimulcast(trackId, { bitratesBps })] }),
        sources: (['l', 'm', 'h'] as const).map((rid, i) => ({ rid, source: camera(first + i, { rid }) })),
      });
    };
    publish('cam');
    const viewer = world.join('sub', { outbound: [videoSlot('cam', slot)] });
    const link = new NarrowClient(viewer, capacityBps);
    world.setTargetVariant('sub', 'cam', 'h');
    const show = (...trackIds: string[]): void => {
      const outbound = trackIds.map((trackId, at) =>
        videoSlot(trackId, { mid: `${5 + at}`, ssrc: 0xaaaa0001 + 2 * at, rtxSsrc: 0xaaaa0002 + 2 * at }),
      );
      for (const trackId of trackIds) world.setTargetVariant('sub', trackId, 'h');
      world.negotiate('sub', { outbound });
      viewer.connect();
    };
    const off = new Set<'l' | 'm' | 'h'>();
    let nextFrame = world.nowMs;
    const keyWanted = new Set<number>();
    const reader = new RtcpReader();
    const play = (seconds: number): void =>
      world.advance(seconds * 1000, (nowMs) => {
        const isFrameDue = nowMs >= nextFrame;
        if (isFrameDue) nextFrame += 33;
        for (const { peer, sources } of publishers) {
          for (const compound of peer.rtcp.splice(0)) {
            reader.open(compound);
            while (reader.next()) if (reader.isPli) keyWanted.add(reader.mediaSsrc);
          }
          for (const { rid, source } of isFrameDue ? sources : []) {
            if (off.has(rid)) continue;
            const bytes = (rates[rid] * 33) / 8000;
            const packets = Math.max(1, Math.round(bytes / 1000));
            const key = keyWanted.delete(source.options.ssrc) || source.pictureId === 100;
            for (const packet of source.vp8Frame({ key, packets, size: Math.floor(bytes / packets) - 40 }))
              peer.send(packet);
          }
        }
        link.tick(nowMs);
      });
    const current = (): string =>
      world.stats().transports.find(({ peerId }) => peerId === 'sub')!.outbound[0]!.variant ?? 'none';
    return { play, publish, show, off, link, current };
  }

  test('gets what it requested on a wide link and keeps it', () => {
    const { play, current } = start(20_000_000);
    play(3);
    expect(current()).toBe('h');
    const before = world.switches('sub').length;
    play(60);
    expect(world.switches('sub')).toHaveLength(before);
    const estimations = world.events.filter(({ type }) => type === 'bandwidthEstimation');
    expect(estimations.length).toBeGreaterThan(0);
    expect(estimations.length).toBeLessThan(63);
  });

  test('gets a picture of 12 Mbit/s after a small one on a wide link', () => {
    const rates = { l: 150_000, m: 500_000, h: 12_000_000 };
    const { play, current } = start(100_000_000, rates, rates);
    world.setTargetVariant('sub', 'cam', 'm');
    play(5);
    expect(current()).toBe('m');
    world.setTargetVariant('sub', 'cam', 'h');
    play(15);
    expect(current()).toBe('h');
  });

  test('is not flooded with padding for an absurdly high announced variant on a wide link', () => {
    const { play } = start(1_000_000_000, announced, { ...announced, h: 1e12 });
    world.setTargetVariant('sub', 'cam', 'm');
    play(5);
    world.setTargetVariant('sub', 'cam', 'h');
    play(30);
    const { outbound } = world.stats().transports.find(({ peerId }) => peerId === 'sub')!;
    expect(outbound[0]!.paddingPackets / 35).toBeLessThan(1_000);
  });

  test('settles within 5 s at 400 kbit/s for a minute, and recovers within 15 s on a wider link', () => {
    const { play, link, current } = start(400_000);
    play(5);
    expect(current()).toBe('l');
    const settled = world.switches('sub').length;
    link.worstDelayMs = 0;
    play(60);
    expect(current()).toBe('l');
    expect(world.switches('sub')).toHaveLength(settled);
    expect(link.worstDelayMs).toBeLessThan(400);
    link.capacityBps = 20_000_000;
    play(15);
    expect(current()).toBe('h');
    expect(world.switches('sub')).toContain('cam l low_bandwidth');
  });

  test('occasionally tries for more without probes, and gets it on a wider link', () => {
    const { name, payloadType, clockRate, feedback } = VP8;
    const codec = { name, payloadType, clockRate, feedback };
    const { play, link, current } = start(400_000, announced, announced, { codec });
    play(10);
    expect(current()).toBe('l');
    const before = world.switches('sub').length;
    play(120);
    expect(world.switches('sub').length - before).toBeLessThan(10);
    link.capacityBps = 20_000_000;
    play(150);
    expect(current()).toBe('h');
  });

  test('steps down when the publisher fills the link beyond its announcement', () => {
    const { play, link, current } = start(20_000_000, { l: 300_000, m: 1_200_000, h: 3_000_000 });
    world.setTargetVariant('sub', 'cam', 'm');
    play(5);
    expect(current()).toBe('m');
    link.capacityBps = 700_000;
    play(10);
    expect(current()).toBe('l');
    link.worstDelayMs = 0;
    const settled = world.switches('sub').length;
    play(60);
    expect(current()).toBe('l');
    expect(world.switches('sub')).toHaveLength(settled);
    expect(link.worstDelayMs).toBeLessThan(300);
  });

  test('keeps its share at 700 kbit/s when another track continues its stream', () => {
    const { play, publish, show, link, current } = start(700_000);
    publish('second');
    play(30);
    expect(current()).toBe('m');
    link.lost = 0;
    const settled = world.switches('sub').length;
    show('second');
    play(5);
    show('cam');
    play(5);
    world.apply({ type: 'closeTransport', peerId: 'pub-cam' });
    show('second');
    play(5);
    expect(world.switches('sub').slice(settled)).toEqual(['second m other', 'cam m other', 'second m other']);
    expect(link.lost).toBe(0);
  });

  test('keeps the share of each track over a pause at 400 kbit/s', () => {
    const { play, publish, show, link } = start(400_000);
    publish('second');
    show('cam', 'second');
    play(30);
    link.lost = 0;
    const settled = world.switches('sub').length;
    for (const paused of [true, false, true, false]) {
      world.apply({ type: 'setTrackPaused', peerId: 'sub', trackId: 'cam', paused });
      play(5);
    }
    expect(world.switches('sub').slice(settled)).toEqual(['cam l other', 'cam l other']);
    expect(link.lost).toBe(0);
  });

  test('starts with the best variant on a wide link while its target is switched off', () => {
    const { play, off, current } = start(20_000_000);
    world.setTargetVariant('sub', 'cam', 'm');
    off.add('m');
    play(10);
    expect(current()).toBe('h');
    const settled = world.switches('sub').length;
    play(30);
    expect(world.switches('sub')).toHaveLength(settled);
  });

  test('gets the best variant on a wide link while its target is off, and the target when it returns', () => {
    const { play, off, current } = start(20_000_000);
    world.setTargetVariant('sub', 'cam', 'm');
    play(10);
    expect(current()).toBe('m');
    off.add('m');
    play(5);
    expect(current()).toBe('h');
    off.delete('m');
    play(15);
    expect(current()).toBe('m');
  });

  test('tries a replacement for a switched-off target once at 1.2 Mbit/s, and stays with what fits', () => {
    const { play, off, link, current } = start(1_200_000);
    world.setTargetVariant('sub', 'cam', 'm');
    play(10);
    off.add('m');
    const before = world.switches('sub').length;
    play(10);
    expect(current()).toBe('l');
    link.worstDelayMs = 0;
    play(60);
    expect(current()).toBe('l');
    expect(world.switches('sub').length - before).toBeLessThanOrEqual(3);
    expect(link.worstDelayMs).toBeLessThan(300);
  });

  test('settles at 2.5 Mbit/s with two tracks without their targets, requesting hardly any keyframes', () => {
    const { play, publish, show, off } = start(2_500_000);
    publish('second');
    show('cam', 'second');
    for (const trackId of ['cam', 'second']) world.setTargetVariant('sub', trackId, 'm');
    play(20);
    off.add('m');
    play(20);
    const settled = world.switches('sub').length;
    play(60);
    expect(world.switches('sub').length - settled).toBeLessThanOrEqual(2);
  });

  test('gets the middle variant at 1 Mbit/s', () => {
    const { play, current } = start(1_000_000);
    play(25);
    expect(current()).toBe('m');
    const settled = world.switches('sub').length;
    play(60);
    expect(current()).toBe('m');
    expect(world.switches('sub').length - settled).toBeLessThanOrEqual(2);
  });
});
