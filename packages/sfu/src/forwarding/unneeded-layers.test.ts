// Layers that nobody needs: what their publisher is told, and how they come back.
import { beforeEach, describe, expect, test } from '@jest/globals';
import { type MemoryPeer, MemoryWorld } from '../testing/memory-port.js';
import { SpanningWorld } from '../testing/spanning-world.js';
import { inboundSimulcast, SyntheticSource, videoSlot } from '../testing/synthetic-media.js';

const CAMERA = inboundSimulcast('cam', { stopsUnneeded: true });
const FRAME_MS = 40;
let sources: Record<'l' | 'm' | 'h', SyntheticSource>;

beforeEach(() => {
  const source = (ssrc: number, rid: string): SyntheticSource =>
    new SyntheticSource({ ssrc, payloadType: 96, mid: '1', rid });
  sources = { l: source(0x1a, 'l'), m: source(0x1b, 'm'), h: source(0x1c, 'h') };
});

interface Played {
  advance: (ms: number) => void;
  publisher: MemoryPeer;
}

/** Sends these variants, each frame a keyframe. */
function play(variants: readonly ('l' | 'm' | 'h')[], ms: number, { advance, publisher }: Played): void {
  for (let atMs = 0; atMs < ms; atMs += FRAME_MS) {
    for (const variant of variants) {
      for (const packet of sources[variant].vp8Frame({ key: true, packets: 6, elapsedMs: FRAME_MS }))
        publisher.send(packet);
    }
    advance(FRAME_MS);
  }
}

/** Returns what the publisher has been told. */
const told = ({ events }: MemoryWorld): (string | null)[] =>
  events.flatMap((event) => (event.type === 'layersNeeded' ? [event.highest] : []));

const stalls = ({ events }: MemoryWorld): unknown[] => events.filter(({ type }) => type === 'trackStalled');

describe('the publisher of a simulcast track', () => {
  let world: MemoryWorld;
  let played: Played;

  beforeEach(() => {
    world = new MemoryWorld();
    const publisher = world.join('pub', { inbound: [CAMERA] });
    played = { publisher, advance: (ms) => world.advance(ms) };
  });

  test('is told 5 s after the last viewer of a layer has chosen a lower one', () => {
    world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'h');
    play(['l', 'm', 'h'], 2_000, played);
    world.setTargetVariant('sub', 'cam', 'l');
    play(['l', 'm', 'h'], 4_800, played);
    expect(told(world)).toEqual([]);
    play(['l', 'm', 'h'], 400, played);
    expect(told(world)).toEqual(['l']);
  });

  test('is told at once that a layer is needed again, which its viewer gets with the first keyframe', () => {
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'l');
    play(['l', 'm', 'h'], 6_000, played);
    play(['l'], 4_000, played);
    world.setTargetVariant('sub', 'cam', 'h');
    play(['l'], 200, played);
    expect(told(world)).toEqual(['l', 'h']);
    viewer.packets.length = 0;
    play(['l', 'm', 'h'], 3 * FRAME_MS, played);
    expect(viewer.packets.at(-1)?.payload[10]).toBe(0x1c);
  });

  test('is told when nobody watches, and that its silence is no stall', () => {
    play(['l', 'm', 'h'], 5_400, played);
    expect(told(world)).toEqual([null]);
    world.advance(10_000);
    expect(stalls(world)).toEqual([]);
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'h');
    world.advance(200);
    expect(told(world)).toEqual([null, 'h']);
    play(['l', 'm', 'h'], 3 * FRAME_MS, played);
    expect(viewer.packets.at(-1)?.payload[10]).toBe(0x1c);
  });

  test('is not told of a viewer that has paused the track, which needs no layer', () => {
    world.join('sub', { outbound: [videoSlot('cam')] });
    world.apply({ type: 'setTrackPaused', peerId: 'sub', trackId: 'cam', paused: true });
    play(['l', 'm', 'h'], 5_400, played);
    expect(told(world)).toEqual([null]);
    world.apply({ type: 'setTrackPaused', peerId: 'sub', trackId: 'cam', paused: false });
    play(['l', 'm', 'h'], 200, played);
    expect(told(world)).toEqual([null, 'm']);
  });

  test('keeps the losses of a layer while it is stopped, so that they are not new ones when it resumes', () => {
    world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'h');
    const signs = () => world.room.transport('pub')!.inbound.qualitySigns();
    for (let i = 0; i < 50; i += 1) {
      const [first] = sources.h.vp8Frame({ key: true, packets: 6, elapsedMs: FRAME_MS });
      played.publisher.send(first!);
      play(['l'], FRAME_MS, played);
    }
    world.setTargetVariant('sub', 'cam', 'l');
    play(['l', 'm', 'h'], 6_000, played);
    expect(told(world)).toEqual(['l']);
    const { missing, received } = signs();
    expect(missing).toBeGreaterThan(200);
    play(['l'], 4_000, played);
    expect(signs().missing).toBe(missing);
    expect(signs().received).toBeGreaterThan(received);
  });

  test('resumes a layer at once that is needed again before its silence is noticed', () => {
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'h');
    play(['l', 'm', 'h'], 2_000, played);
    world.setTargetVariant('sub', 'cam', 'l');
    while (told(world).length === 0) play(['l', 'm', 'h'], FRAME_MS, played);
    play(['l'], 200, played);
    world.setTargetVariant('sub', 'cam', 'h');
    play(['l'], 3_200, played);
    expect(told(world)).toEqual(['l', 'h']);
    play(['l', 'm', 'h'], 3 * FRAME_MS, played);
    expect(viewer.packets.at(-1)?.payload[10]).toBe(0x1c);
  });

  test('that goes on sending an unneeded layer keeps it available', () => {
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'l');
    play(['l', 'm', 'h'], 10_000, played);
    world.setTargetVariant('sub', 'cam', 'h');
    play(['l', 'm', 'h'], 3 * FRAME_MS, played);
    expect(viewer.packets.at(-1)?.payload[10]).toBe(0x1c);
  });
});

test('a publisher whose client cannot stop layers is told nothing', () => {
  const world = new MemoryWorld();
  const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
  play(['l', 'm', 'h'], 6_000, { publisher, advance: (ms) => world.advance(ms) });
  expect(told(world)).toEqual([]);
});

test('a viewer on another worker counts, also while the layer that it wants is not sent', () => {
  const worlds = new SpanningWorld();
  const publisher = worlds.one.join('pub', { inbound: [CAMERA] });
  const played = { publisher, advance: (ms: number) => worlds.advance(ms) };
  worlds.settle();
  worlds.two.join('sub', { outbound: [videoSlot('cam')] });
  worlds.two.setTargetVariant('sub', 'cam', 'l');
  play(['l', 'm', 'h'], 6_000, played);
  expect(told(worlds.one)).toEqual(['l']);
  play(['l'], 4_000, played);
  worlds.two.setTargetVariant('sub', 'cam', 'h');
  play(['l'], 1_000, played);
  expect(told(worlds.one)).toEqual(['l', 'h']);
});
