// The second encoding of a track, for receivers who cannot decode the first.
import { beforeEach, describe, expect, jest, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { MemoryWorld, type MemoryPeer } from '../testing/memory-port.js';
import { SpanningWorld } from '../testing/spanning-world.js';
import { inboundVideo, SyntheticSource, videoSlot, VP9 } from '../testing/synthetic-media.js';

const FIRST = inboundVideo('cam', { codec: VP9, ssrc: 0x101 });
const SECOND = inboundVideo('cam', { mid: '2', ssrc: 0x102, fallback: true });
/** A slot of a client that decodes VP9; others decode VP8. */
const modernSlot = () => videoSlot('cam', { codec: { ...VP9, payloadType: 122, rtxPayloadType: 123 } });
const firstCamera = () => new SyntheticSource({ ssrc: 0x101, payloadType: 98, mid: '1' });
const secondCamera = () => new SyntheticSource({ ssrc: 0x102, payloadType: 96, mid: '2' });

function sendAll(peer: MemoryPeer, packets: readonly Buffer[]): void {
  for (const packet of packets) peer.send(packet);
}

/** Returns what the publisher was told of its second encoding. */
const wanted = ({ events }: MemoryWorld): boolean[] =>
  events.flatMap((event) => (event.type === 'fallbackWanted' ? [event.wanted] : []));

const statsOf = (world: MemoryWorld, id: string) => world.stats().transports.find(({ peerId }) => peerId === id);

describe('on one worker', () => {
  let world: MemoryWorld;
  let ann: MemoryPeer;
  beforeEach(() => {
    world = new MemoryWorld();
    ann = world.join('ann', { inbound: [FIRST, SECOND] });
  });

  test('each subscriber gets the encoding in the codec of its slot, under the id of the track', () => {
    const old = world.join('old', { outbound: [videoSlot('cam')] });
    const modern = world.join('modern', { outbound: [modernSlot()] });
    sendAll(ann, firstCamera().vp9Picture({ key: true }));
    sendAll(ann, secondCamera().vp8Frame({ key: true }));
    expect(old.packets.map(({ payloadType }) => payloadType)).toEqual([120, 120]);
    expect(modern.packets.map(({ payloadType }) => payloadType)).toEqual([122]);
    expect(world.switches('old')).toEqual(['cam h other']);
    expect(statsOf(world, 'old')?.outbound).toMatchObject([{ trackId: 'cam', codec: 'vp8' }]);
    const inbound = statsOf(world, 'ann')?.inbound ?? [];
    expect(inbound.map(({ codec, fallback = false }) => [codec, fallback])).toEqual([
      ['vp9', false],
      ['vp8', true],
    ]);
  });

  test('is wanted while a subscriber needs it, and for 3 s after', () => {
    world.join('modern', { outbound: [modernSlot()] });
    world.advance(1_000);
    expect(wanted(world)).toEqual([]);
    world.join('old', { outbound: [videoSlot('cam')] });
    world.advance(20);
    expect(world.events).toContainEqual(
      expect.objectContaining({ type: 'fallbackWanted', peerId: 'ann', trackId: 'cam', wanted: true }),
    );
    world.apply({ type: 'closeTransport', peerId: 'old' });
    world.advance(2_900);
    expect(wanted(world)).toEqual([true]);
    world.advance(200);
    expect(wanted(world)).toEqual([true, false]);
  });

  test('is wanted while a subscriber still connects', () => {
    const relay = { username: 'old', password: 'secret' };
    world.apply({ type: 'openTransport', peerId: 'old', relay, transport: world.newNumber() });
    world.negotiate('old', { outbound: [videoSlot('cam')] });
    world.advance(20);
    expect(wanted(world)).toEqual([true]);
  });

  test('is not wanted again for a later answer to a subscriber who has paused it', () => {
    const old = world.join('old', { outbound: [videoSlot('cam')] });
    world.apply({ type: 'setTrackPaused', peerId: 'old', trackId: 'cam', paused: true });
    world.advance(3_200);
    world.negotiate('old', { outbound: [videoSlot('cam')] });
    old.connect();
    world.advance(100);
    expect(wanted(world)).toEqual([true, false]);
  });

  test('is not wanted by a subscriber who has paused it or may not receive it', () => {
    world.join('old', { outbound: [videoSlot('cam')] });
    world.advance(20);
    world.apply({ type: 'setTrackPaused', peerId: 'old', trackId: 'cam', paused: true });
    world.advance(3_200);
    expect(wanted(world)).toEqual([true, false]);
    world.apply({ type: 'setTrackPaused', peerId: 'old', trackId: 'cam', paused: false });
    world.advance(20);
    world.apply({ type: 'setTrackWithheld', peerId: 'old', trackId: 'cam', withheld: true });
    world.advance(3_200);
    expect(wanted(world)).toEqual([true, false, true, false]);
  });

  test('begins again with a keyframe, which is requested', () => {
    const camera = secondCamera();
    world.join('old', { outbound: [videoSlot('cam')] });
    sendAll(ann, camera.vp8Frame({ key: true }));
    world.apply({ type: 'closeTransport', peerId: 'old' });
    world.advance(60_000);
    ann.rtcp.length = 0;
    const again = world.join('again', { outbound: [videoSlot('cam')] });
    world.advance(1_000);
    sendAll(ann, camera.vp8Frame());
    expect(again.packets).toHaveLength(0);
    let requests = 0;
    ann.forEachRtcp((reader) => void (reader.isPli && reader.mediaSsrc === 0x102 && requests++));
    expect(requests).toBeGreaterThan(0);
    sendAll(ann, camera.vp8Frame({ key: true }));
    expect(again.packets).toHaveLength(2);
  });

  test('of a simulcast track has all its sizes at once when it begins again', () => {
    const sizes = ['l', 'm', 'h'] as const;
    const simulcast = { rids: sizes, mid: '2', fallback: true } as const;
    const { ssrc: _one, ...first } = FIRST;
    world.negotiate('ann', { inbound: [{ ...first, rids: sizes }, inboundVideo('cam', simulcast)] });
    ann.connect();
    const cameras = sizes.map((rid, i) => new SyntheticSource({ ssrc: 0x200 + i, payloadType: 96, mid: '2', rid }));
    const play = () => {
      for (const camera of cameras) sendAll(ann, camera.vp8Frame({ key: true }));
    };
    world.join('old', { outbound: [videoSlot('cam')] });
    play();
    world.apply({ type: 'closeTransport', peerId: 'old' });
    world.advance(3_100, (nowMs) => void (nowMs % 100 === 0 && play()));
    expect(wanted(world)).toEqual([true, false]);
    world.advance(30_000);
    world.join('again', { outbound: [videoSlot('cam')] });
    world.advance(40);
    play();
    expect(world.switches('again')).toEqual(['cam m other']);
    world.setTargetVariant('again', 'cam', 'h');
    play();
    expect(world.switches('again').at(-1)).toBe('cam h other');
  });

  test('is muted, blocked and removed with its track', () => {
    const camera = secondCamera();
    const old = world.join('old', { outbound: [videoSlot('cam')] });
    world.apply({ type: 'setTrackBlocked', peerId: 'ann', trackId: 'cam', blocked: true });
    sendAll(ann, camera.vp8Frame({ key: true }));
    expect(old.packets).toHaveLength(0);
    world.apply({ type: 'setTrackBlocked', peerId: 'ann', trackId: 'cam', blocked: false });
    sendAll(ann, camera.vp8Frame({ key: true }));
    expect(old.packets).toHaveLength(2);
    world.apply({ type: 'removeTrack', peerId: 'ann', trackId: 'cam' });
    sendAll(ann, camera.vp8Frame({ key: true }));
    expect(old.packets).toHaveLength(2);
    world.negotiate('ann', { inbound: [FIRST, SECOND] });
    sendAll(ann, camera.vp8Frame({ key: true }));
    expect(old.packets).toHaveLength(2);
  });

  test.each(['before', 'after'])(
    'is delivered to a component that lacks the first, opened %s it, without a complaint',
    (when) => {
      const warn = jest.fn();
      const other = new MemoryWorld({ ...silentLog, warn });
      const open = () => other.apply({ type: 'openTap', tap: 7, trackId: 'cam', codecs: ['h264', 'vp8'] });
      if (when === 'before') open();
      const publisher = other.join('ann', { inbound: [FIRST, SECOND] });
      if (when === 'after') open();
      other.advance(40);
      expect(wanted(other)).toEqual([true]);
      const camera = secondCamera();
      for (let i = 0; i < 2; i++) sendAll(publisher, camera.vp8Frame({ key: i === 0 }));
      other.advance(100);
      const codecs = other.reports.flatMap((report) =>
        report.type === 'tapEvent' && report.event.type === 'frame' ? [report.event.frame.codec] : [],
      );
      expect(codecs).toEqual(['vp8', 'vp8']);
      expect(warn).not.toHaveBeenCalled();
      other.apply({ type: 'closeTap', tap: 7 });
      other.advance(3_200);
      expect(wanted(other)).toEqual([true, false]);
    },
  );

  test('is left alone by a component that takes the first, or neither', () => {
    world.apply({ type: 'openTap', tap: 1, trackId: 'cam', codecs: ['vp9', 'vp8'] });
    world.apply({ type: 'openTap', tap: 2, trackId: 'cam', codecs: ['h264'] });
    world.advance(100);
    expect(wanted(world)).toEqual([]);
  });

  test('is not expected to send, so its silence is no fault', () => {
    const camera = firstCamera();
    world.advance(15_000, (nowMs) => {
      if (nowMs % 40 === 0) sendAll(ann, camera.vp9Picture());
    });
    expect(world.events.filter(({ type }) => type === 'trackStalled')).toEqual([]);
  });

  test('stalls when it is wanted and not sent, and no longer once nobody wants it', () => {
    const old = world.join('old', { outbound: [videoSlot('cam')] });
    const stalls = () =>
      world.events.flatMap((event) => (event.type === 'trackStalled' && event.fallback ? [event.stalled] : []));
    const [first, second] = [firstCamera(), secondCamera()];
    world.advance(2_900, (nowMs) => void (nowMs % 40 === 0 && sendAll(ann, first.vp9Picture())));
    expect(stalls()).toEqual([]);
    world.advance(600, (nowMs) => void (nowMs % 40 === 0 && sendAll(ann, first.vp9Picture())));
    expect(stalls()).toEqual([true]);
    sendAll(ann, second.vp8Frame({ key: true }));
    world.advance(300, (nowMs) => void (nowMs % 40 === 0 && sendAll(ann, first.vp9Picture())));
    expect(stalls()).toEqual([true, false]);
    world.advance(3_500, (nowMs) => void (nowMs % 40 === 0 && sendAll(ann, first.vp9Picture())));
    world.apply({ type: 'closeTransport', peerId: old.id });
    world.advance(10_000, (nowMs) => void (nowMs % 40 === 0 && sendAll(ann, first.vp9Picture())));
    expect(stalls()).toEqual([true, false, true, false]);
  });

  test('is active in the statistics while it is wanted', () => {
    const active = () => statsOf(world, 'ann')?.inbound.map((stream) => stream.active);
    world.join('old', { outbound: [videoSlot('cam')] });
    world.advance(40);
    sendAll(ann, secondCamera().vp8Frame({ key: true }));
    expect(active()).toEqual([true]);
    world.apply({ type: 'closeTransport', peerId: 'old' });
    world.advance(3_200);
    expect(active()).toEqual([false]);
  });

  test('keeps flowing when the same offer is made again', () => {
    const camera = secondCamera();
    const old = world.join('old', { outbound: [videoSlot('cam')] });
    sendAll(ann, camera.vp8Frame({ key: true }));
    world.negotiate('ann', { inbound: [FIRST, SECOND] });
    ann.connect();
    sendAll(ann, camera.vp8Frame());
    expect(old.packets).toHaveLength(4);
  });

  test('hands over to the first encoding at its keyframe when a client begins to decode that', () => {
    const [first, second] = [firstCamera(), secondCamera()];
    const viewer = world.join('viewer', { outbound: [videoSlot('cam')] });
    sendAll(ann, second.vp8Frame({ key: true }));
    world.negotiate('viewer', { outbound: [modernSlot()] });
    viewer.connect();
    sendAll(ann, second.vp8Frame());
    sendAll(ann, first.vp9Picture({ key: true }));
    sendAll(ann, second.vp8Frame());
    expect(viewer.packets.map(({ payloadType }) => payloadType)).toEqual([120, 120, 120, 120, 122]);
  });

  test('of one client is never shown as the track of another with the same id', () => {
    const bob = world.join('bob', { inbound: [{ ...FIRST, trackId: 'x' }] });
    world.join('eve', { inbound: [FIRST, SECOND].map((track) => ({ ...track, trackId: 'x' })) });
    const eve = world.peers.get('eve')!;
    const old = world.join('old', { outbound: [videoSlot('x')] });
    const camera = secondCamera();
    sendAll(eve, camera.vp8Frame({ key: true }));
    expect(old.packets).toHaveLength(0);
    world.apply({ type: 'closeTransport', peerId: bob.id });
    sendAll(eve, camera.vp8Frame({ key: true }));
    expect(old.packets).toHaveLength(2);
  });

  test('is wanted exactly while subscribers need it, whatever they do', () => {
    const act = fc.oneof(
      fc.record({ id: fc.constantFrom('x', 'y'), does: fc.constantFrom('join', 'leave', 'pause', 'resume') }),
      fc.record({ waits: fc.integer({ min: 20, max: 4_000 }) }),
    );
    fc.assert(
      fc.property(fc.array(act, { maxLength: 10 }), (acts) => {
        const other = new MemoryWorld();
        other.join('ann', { inbound: [FIRST, SECOND] });
        const needs = new Set<string>();
        const present = new Set<string>();
        let neededAtMs = -Infinity;
        const wait = (ms: number) => {
          other.advance(ms);
          if (needs.size > 0) neededAtMs = other.nowMs;
        };
        for (const one of acts) {
          if ('waits' in one) {
            wait(one.waits);
            continue;
          }
          const { id: peerId, does } = one;
          if (does === 'join') other.join(peerId, { outbound: [videoSlot('cam')] });
          if (does === 'leave') other.apply({ type: 'closeTransport', peerId });
          if (does === 'pause' || does === 'resume') {
            other.apply({ type: 'setTrackPaused', peerId, trackId: 'cam', paused: does === 'pause' });
          }
          if (does === 'join') present.add(peerId);
          if (does === 'leave') present.delete(peerId);
          if (does === 'join' || (does === 'resume' && present.has(peerId))) needs.add(peerId);
          else needs.delete(peerId);
          wait(40);
        }
        const said = wanted(other);
        expect(said).toEqual(said.map((_, i) => i % 2 === 0));
        const silentMs = other.nowMs - neededAtMs;
        if (silentMs < 2_900) expect(said.at(-1)).toBe(true);
        if (silentMs > 3_100) expect(said.at(-1) ?? false).toBe(false);
      }),
      { numRuns: fuzzRuns(15) },
    );
  });
});

describe('on another worker than its subscribers', () => {
  test('is wanted while one of them needs it, and crosses only then', () => {
    const worlds = new SpanningWorld();
    const ann = worlds.one.join('ann', { inbound: [FIRST, SECOND] });
    const camera = secondCamera();
    worlds.two.join('modern', { outbound: [modernSlot()] });
    worlds.advance(3_000);
    expect(wanted(worlds.one)).toEqual([]);
    const old = worlds.two.join('old', { outbound: [videoSlot('cam')] });
    worlds.advance(40);
    expect(wanted(worlds.one)).toEqual([true]);
    sendAll(ann, camera.vp8Frame({ key: true }));
    worlds.settle();
    expect(old.packets.map(({ payloadType }) => payloadType)).toEqual([120, 120]);
    worlds.two.apply({ type: 'closeTransport', peerId: 'old' });
    worlds.advance(6_000);
    expect(wanted(worlds.one)).toEqual([true, false]);
    expect(wanted(worlds.two)).toEqual([]);
    const crossed = worlds.there.crossed[2];
    sendAll(ann, camera.vp8Frame({ key: true }));
    worlds.settle();
    expect(worlds.there.crossed[2]).toBe(crossed);
  });
});
