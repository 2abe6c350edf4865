import { beforeEach, describe, expect, test } from '@jest/globals';
import { CODEC_NAMES } from '@bloom/rtp';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import type { InboundTrack } from '../media-engine.js';
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

function sendAll(peer: MemoryPeer, packets: readonly Buffer[]): void {
  for (const packet of packets) peer.send(packet);
}

function camera(ssrc: number, over: object = {}): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 96, mid: '1', ...over });
}

function microphone(ssrc = 0x201): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 111, mid: '0' });
}

function plis(peer: MemoryPeer): number {
  let count = 0;
  peer.forEachRtcp((reader) => {
    if (reader.isPli) count++;
  });
  return count;
}

const block = (trackId: string, blocked: boolean): void =>
  void world.apply({ type: 'setTrackBlocked', peerId: 'pub', trackId, blocked });

function openTap(trackId: string): () => number {
  const number = world.newNumber();
  world.apply({ type: 'openTap', tap: number, trackId, codecs: CODEC_NAMES });
  return () =>
    world.reports.filter(
      (report) => report.type === 'tapEvent' && report.tap === number && report.event.type === 'frame',
    ).length;
}

describe('a blocked track', () => {
  test('a blocked track reaches neither subscribers nor components, and returns with a keyframe and no gap', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const frames = openTap('cam');
    const source = camera(0x101);
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.advance(300);
    expect(viewer.packets.length).toBe(2);
    expect(frames()).toBe(1);

    block('cam', true);
    const asked = plis(publisher);
    for (let i = 0; i < 20; i++) {
      sendAll(publisher, source.vp8Frame({ key: i % 5 === 0 }));
      world.advance(100);
    }
    expect(viewer.packets.length).toBe(2);
    expect(frames()).toBe(1);
    expect(plis(publisher)).toBe(asked);

    block('cam', false);
    expect(plis(publisher)).toBe(asked + 1);
    sendAll(publisher, source.vp8Frame());
    expect(viewer.packets).toHaveLength(2);
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.advance(20);
    expect(viewer.packets.length).toBe(4);
    expect(frames()).toBe(2);
    expect(viewer.packets[2]!.sequence).toBe((viewer.packets[1]!.sequence + 1) & 0xffff);
  });

  test('a blocked audio track stops immediately and returns with the next packet', () => {
    const publisher = world.join('pub', { inbound: [inboundAudio('mic')] });
    const listener = world.join('sub', { outbound: [audioSlot('mic')] });
    const source = microphone();
    sendAll(publisher, source.opusFrame());
    block('mic', true);
    sendAll(publisher, source.opusFrame());
    expect(listener.packets).toHaveLength(1);
    block('mic', false);
    sendAll(publisher, source.opusFrame());
    expect(listener.packets).toHaveLength(2);
  });

  test('a track stays blocked for newcomers, and when the client replaces it under its id', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    block('cam', true);
    world.negotiate('pub', { inbound: [inboundVideo('cam', { codec: H264 })] });
    publisher.connect();
    const viewer = world.join('sub', { outbound: [videoSlot('cam', { codec: { ...H264, payloadType: 121 } })] });
    const source = camera(0x101, { payloadType: H264.payloadType });
    sendAll(publisher, source.h264Frame({ key: true }));
    expect(viewer.packets).toHaveLength(0);
    block('cam', false);
    sendAll(publisher, source.h264Frame({ key: true }));
    expect(viewer.packets).toHaveLength(2);
  });

  test('a blocked simulcast track returns although its variants seemed inactive', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const sources = (['l', 'm', 'h'] as const).map((rid, i) => camera(0x30 + i, { rid }));
    const play = (): void => {
      for (const source of sources) sendAll(publisher, source.vp8Frame({ key: true }));
      world.advance(100);
    };
    for (let i = 0; i < 10; i++) play();
    block('cam', true);
    const before = viewer.packets.length;
    expect(before).toBeGreaterThan(0);
    for (let i = 0; i < 50; i++) play();
    expect(viewer.packets).toHaveLength(before);
    block('cam', false);
    play();
    expect(viewer.packets).toHaveLength(before + 2);
  });
});

describe('a track withheld from a subscriber', () => {
  const withhold = (trackId: string, withheld: boolean): void =>
    void world.apply({ type: 'setTrackWithheld', peerId: 'sub', trackId, withheld });

  test('stops with the next packet, for this subscriber only, and returns with a keyframe', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const other = world.join('other', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    sendAll(publisher, source.vp8Frame({ key: true }));
    withhold('cam', true);
    sendAll(publisher, source.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(2);
    expect(other.packets).toHaveLength(4);
    withhold('cam', false);
    sendAll(publisher, source.vp8Frame());
    expect(viewer.packets).toHaveLength(2);
    sendAll(publisher, source.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
  });

  test('does not flow on a slot that the subscriber negotiates later, nor on its next transport', () => {
    withhold('mic', true);
    const publisher = world.join('pub', { inbound: [inboundAudio('mic')] });
    const source = microphone();
    for (let i = 0; i < 2; i++) {
      const listener = world.join('sub', { outbound: [audioSlot('mic')] });
      sendAll(publisher, source.opusFrame());
      expect(listener.packets).toHaveLength(0);
    }
  });

  test('does not flow because the subscriber pauses and resumes it', () => {
    const publisher = world.join('pub', { inbound: [inboundAudio('mic')] });
    const listener = world.join('sub', { outbound: [audioSlot('mic')] });
    const source = microphone();
    withhold('mic', true);
    for (const paused of [true, false]) world.apply({ type: 'setTrackPaused', peerId: 'sub', trackId: 'mic', paused });
    sendAll(publisher, source.opusFrame());
    expect(listener.packets).toHaveLength(0);
    withhold('mic', false);
    sendAll(publisher, source.opusFrame());
    expect(listener.packets).toHaveLength(1);
  });

  test('stays paused by the subscriber when it is no longer withheld', () => {
    const publisher = world.join('pub', { inbound: [inboundAudio('mic')] });
    const listener = world.join('sub', { outbound: [audioSlot('mic')] });
    withhold('mic', true);
    world.apply({ type: 'setTrackPaused', peerId: 'sub', trackId: 'mic', paused: true });
    withhold('mic', false);
    sendAll(publisher, microphone().opusFrame());
    expect(listener.packets).toHaveLength(0);
  });
});

describe('a track paused by a subscriber', () => {
  const pause = (paused: boolean, peerId = 'sub'): void =>
    void world.apply({ type: 'setTrackPaused', peerId, trackId: 'cam', paused });

  test('a paused track stops only for this subscriber, and returns with a keyframe and no gap', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const other = world.join('other', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.advance(300);

    pause(true);
    pause(true, 'nobody');
    const asked = plis(publisher);
    for (let i = 0; i < 20; i++) {
      sendAll(publisher, source.vp8Frame({ key: i % 5 === 0 }));
      world.advance(100);
    }
    expect(viewer.packets.length).toBe(2);
    expect(other.packets.length).toBe(42);
    expect(plis(publisher)).toBe(asked);
    const [stats] = world.stats().transports.filter(({ peerId }) => peerId === 'sub');
    expect(stats?.outbound[0]).toMatchObject({ trackId: 'cam', paused: true });

    pause(false);
    expect(plis(publisher)).toBe(asked + 1);
    sendAll(publisher, source.vp8Frame());
    expect(viewer.packets).toHaveLength(2);
    sendAll(publisher, source.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(4);
    expect(viewer.packets[2]!.sequence).toBe((viewer.packets[1]!.sequence + 1) & 0xffff);
    expect(world.stats().transports.find(({ peerId }) => peerId === 'sub')?.outbound[0]).not.toHaveProperty('paused');
  });

  test('a paused track returns in the variant chosen during the pause, unaffected by keyframes of others', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const sources = (['l', 'm', 'h'] as const).map((rid, i) => camera(0x30 + i, { rid }));
    const play = (key: boolean): void => {
      for (const source of sources) sendAll(publisher, source.vp8Frame({ key }));
      world.advance(100);
    };
    play(true);
    const before = viewer.packets.length;
    pause(true);
    const asked = plis(publisher);
    world.setTargetVariant('sub', 'cam', 'h');
    for (let i = 0; i < 5; i++) play(i === 3);
    expect(viewer.packets.length).toBe(before);
    expect(plis(publisher)).toBe(asked);
    pause(false);
    play(false);
    expect(viewer.packets.length).toBe(before);
    expect(plis(publisher)).toBe(asked + 1);
    play(true);
    expect(viewer.packets).toHaveLength(before + 2);
    expect(world.stats().transports.find(({ peerId }) => peerId === 'sub')?.outbound[0]?.variant).toBe('h');
  });

  test('a paused audio track stops immediately and returns with the next packet', () => {
    const publisher = world.join('pub', { inbound: [inboundAudio('cam')] });
    const listener = world.join('sub', { outbound: [audioSlot('cam')] });
    const source = microphone();
    sendAll(publisher, source.opusFrame());
    pause(true);
    sendAll(publisher, source.opusFrame());
    expect(listener.packets).toHaveLength(1);
    pause(false);
    sendAll(publisher, source.opusFrame());
    expect(listener.packets).toHaveLength(2);
  });
});

describe('a removed track', () => {
  test('a removed track ends immediately and cannot return under its id', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.apply({ type: 'removeTrack', peerId: 'pub', trackId: 'cam' });
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.negotiate('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    sendAll(publisher, source.vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(2);
  });

  test('a removed track leaves its id to other publishers', () => {
    world.join('pub', { inbound: [inboundVideo('cam')] });
    world.apply({ type: 'removeTrack', peerId: 'pub', trackId: 'cam' });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const other = world.join('other', { inbound: [inboundVideo('cam')] });
    sendAll(other, camera(0x301).vp8Frame({ key: true }));
    expect(viewer.packets).toHaveLength(2);
  });
});

describe('media permissions', () => {
  const permit = (peerId: string, over: object): void =>
    void world.apply({
      type: 'setPermissions',
      peerId,
      permissions: { audio: true, video: true, data: true, subscribe: true, ...over },
    });

  test('revoked permissions end the tracks of a kind, even of later transports, until they are granted again', () => {
    let publisher = world.join('pub', { inbound: [inboundVideo('cam'), inboundAudio('mic')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam'), audioSlot('mic')] });
    const eye = camera(0x101);
    const ear = microphone();
    const sent = (): number[] => {
      viewer.packets.splice(0);
      sendAll(publisher, eye.vp8Frame({ key: true }));
      sendAll(publisher, ear.opusFrame());
      return viewer.packets.map(({ ssrc }) => ssrc);
    };
    expect(sent()).toEqual([0xaaaa0001, 0xaaaa0001, 0xbbbb0001]);
    permit('pub', { video: false });
    expect(sent()).toEqual([0xbbbb0001]);
    permit('pub', {});
    world.negotiate('pub', { inbound: [inboundVideo('cam'), inboundAudio('mic')] });
    expect(sent()).toEqual([0xaaaa0001, 0xaaaa0001, 0xbbbb0001]);
    permit('pub', { audio: false, video: false });
    expect(sent()).toEqual([]);
    publisher = world.join('pub', { inbound: [inboundVideo('cam'), inboundAudio('mic')] });
    expect(sent()).toEqual([]);
    permit('pub', {});
    world.negotiate('pub', { inbound: [inboundVideo('cam'), inboundAudio('mic')] });
    expect(sent()).toEqual([0xaaaa0001, 0xaaaa0001, 0xbbbb0001]);
  });

  test('restored permissions let simulcast return on SSRCs that browsers name only until the first report', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const sources = (['l', 'm', 'h'] as const).map((rid, i) => camera(0x30 + i, { rid }));
    const repair = camera(0x40, { payloadType: 97, repairedRid: 'm' });
    const play = (): number => {
      viewer.packets.splice(0);
      for (const source of sources) sendAll(publisher, source.vp8Frame({ key: true }));
      return viewer.packets.length;
    };
    expect(play()).toBe(2);
    publisher.send(repair.padding());
    for (const { options } of [...sources, repair]) {
      delete options.mid;
      delete options.rid;
      delete options.repairedRid;
    }
    expect(play()).toBe(2);
    permit('pub', { video: false });
    world.negotiate('pub', { inbound: [] });
    expect(play()).toBe(0);
    permit('pub', {});
    world.negotiate('pub', { inbound: [inboundSimulcast('cam')] });
    expect(play()).toBe(2);
    publisher.send(repair.padding());
    const inbound = world.stats().transports.find(({ peerId }) => peerId === 'pub')?.inbound;
    expect(inbound?.map(({ ssrc, variant, rtx }) => [ssrc, variant, rtx.packets])).toEqual([
      [0x30, 'l', 0],
      [0x31, 'm', 1],
      [0x32, 'h', 0],
    ]);
  });

  test('revoked permissions close the slots of one subscriber, in later answers too', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const other = world.join('other', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    sendAll(publisher, source.vp8Frame({ key: true }));
    permit('sub', { subscribe: false });
    sendAll(publisher, source.vp8Frame({ key: true }));
    world.negotiate('sub', { outbound: [videoSlot('cam')] });
    viewer.connect();
    sendAll(publisher, source.vp8Frame({ key: true }));
    expect(viewer.packets.length).toBe(2);
    expect(other.packets.length).toBe(6);
    permit('sub', {});
    world.negotiate('sub', { outbound: [videoSlot('cam')] });
    viewer.connect();
    sendAll(publisher, source.vp8Frame({ key: true }));
    expect(viewer.packets.length).toBe(4);
    expect(other.packets.length).toBe(8);
  });
});

test('a client that lies gets nothing through, whatever it negotiates and sends', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('offer' as const), tracks: fc.subarray(['cam', 'mic', 'theirs'] as const) }),
    fc.record({ do: fc.constant('send' as const), what: fc.constantFrom('cam', 'mic', 'theirs') }),
    fc.record({ do: fc.constant('permit' as const), audio: fc.boolean(), video: fc.boolean() }),
    fc.record({ do: fc.constant('block' as const), trackId: fc.constantFrom('cam', 'mic'), blocked: fc.boolean() }),
    fc.record({ do: fc.constant('remove' as const), trackId: fc.constantFrom('cam', 'mic') }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 300 }) }),
  );
  const LIAR = 0x66;

  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      world = new MemoryWorld();
      world.join('honest', { inbound: [inboundVideo('theirs')] });
      const offers: Record<string, InboundTrack> = {
        cam: inboundVideo('cam'),
        mic: inboundAudio('mic'),
        theirs: inboundVideo('theirs', { mid: '2' }),
      };
      const sources: Record<string, SyntheticSource> = {
        cam: camera(0x100 + LIAR),
        mic: microphone(0x200 + LIAR),
        theirs: camera(0x300 + LIAR, { mid: '2' }),
      };
      const liar = world.join('pub', { inbound: [offers['cam']!, offers['mic']!] });
      const viewer = world.join('sub', { outbound: [videoSlot('cam'), audioSlot('mic'), theirSlot()] });
      let permitted = { audio: true, video: true };
      const blocked = new Set<string>();
      const removed = new Set<string>();

      for (const action of steps) {
        if (action.do === 'offer') {
          world.negotiate('pub', { inbound: action.tracks.map((id) => offers[id]!) });
          liar.connect();
        } else if (action.do === 'permit') {
          permitted = { audio: action.audio, video: action.video };
          world.apply({
            type: 'setPermissions',
            peerId: 'pub',
            permissions: { ...permitted, data: true, subscribe: true },
          });
        } else if (action.do === 'block') {
          block(action.trackId, action.blocked);
          if (action.blocked) blocked.add(action.trackId);
          else blocked.delete(action.trackId);
        } else if (action.do === 'remove') {
          world.apply({ type: 'removeTrack', peerId: 'pub', trackId: action.trackId });
          removed.add(action.trackId);
        } else if (action.do === 'wait') {
          viewer.packets.splice(0);
          world.advance(action.ms);
        } else {
          const { what } = action;
          viewer.packets.splice(0);
          const source = sources[what]!;
          sendAll(liar, what === 'mic' ? source.opusFrame() : source.vp8Frame({ key: true }));
          const allowed = what !== 'theirs' && permitted[what === 'mic' ? 'audio' : 'video'];
          if (!allowed || blocked.has(what) || removed.has(what)) expect(viewer.packets).toEqual([]);
        }
      }
    }),
    { numRuns: fuzzRuns(100) },
  );
});

function theirSlot() {
  return videoSlot('theirs', { mid: '7', ssrc: 0xaaaa0101, rtxSsrc: 0xaaaa0102 });
}
