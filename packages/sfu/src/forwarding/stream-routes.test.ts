import { beforeEach, describe, expect, test } from '@jest/globals';
import type { RtpDropCause, StreamStats } from '../media-engine.js';
import { type MemoryPeer, MemoryWorld } from '../testing/memory-port.js';
import {
  audioSlot,
  inboundAudio,
  inboundSimulcast,
  inboundVideo,
  type SourceOptions,
  SyntheticSource,
  videoSlot,
} from '../testing/synthetic-media.js';

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

/** A stream with neither a mid nor a rid, as many encoders send it. */
function plain(ssrc: number, over: Partial<SourceOptions> = {}): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 96, ...over });
}

function sendKey(peer: MemoryPeer, source: SyntheticSource): void {
  for (const packet of source.vp8Frame({ key: true })) peer.send(packet);
}

/** Sends a picture of each source every 40 ms. */
function play(peer: MemoryPeer, ms: number, ...sources: readonly SyntheticSource[]): void {
  let n = 0;
  world.advance(ms, (nowMs) => {
    if (nowMs % 40 !== 0) return;
    for (const source of sources) for (const packet of source.vp8Frame({ key: n % 25 === 0 })) peer.send(packet);
    n++;
  });
}

const reports = (): unknown[] =>
  world.events.flatMap((event) => (event.type === 'mediaDropped' ? [`${event.cause} ${event.trackId}`] : []));
const dropped = (cause: RtpDropCause): number => world.context.dropped[cause];
const marks = (viewer: MemoryPeer): Set<number> => new Set(viewer.packets.map(({ payload }) => payload.at(-1)!));
const own = { hasOwnPayloadTypes: true };

describe('streams without identification', () => {
  test('a payload type that only one m-line has identifies the track', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', own), inboundAudio('mic', own)] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam'), audioSlot('mic')] });
    sendKey(publisher, plain(0x11));
    for (const packet of plain(0x22, { payloadType: 111 }).opusFrame()) publisher.send(packet);
    expect(viewer.packets.map(({ ssrc }) => ssrc)).toEqual([0xaaaa0001, 0xaaaa0001, 0xbbbb0001]);
  });

  test('a stream replaces the one that the SDP announced and the client never sends', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ...own, ssrc: 0x99 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    sendKey(publisher, plain(0x11));
    expect(viewer.packets).toHaveLength(2);
  });

  test('packets whose payload type belongs to several m-lines are dropped, and reported once', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam'), inboundVideo('screen', { mid: '2' })] });
    play(publisher, 1_900, plain(0x11));
    expect(reports()).toEqual([]);
    play(publisher, 4_000, plain(0x11));
    expect(reports()).toEqual(['unknown_ssrc undefined']);
    expect(dropped('unknown_ssrc')).toBeGreaterThan(200);
    expect(world.stats().transports[0]?.inboundDropped).toEqual([
      { cause: 'unknown_ssrc', trackId: undefined, packets: dropped('unknown_ssrc') },
    ]);
  });

  test('late packets of a removed track do not become a source of the remaining one', () => {
    const cam = inboundVideo('cam', { ssrc: 0x11 });
    const publisher = world.join('pub', { inbound: [cam, inboundVideo('screen', { mid: '2', ssrc: 0x22 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const [camera, screen] = [plain(0x11), plain(0x22)];
    play(publisher, 200, camera, screen);
    world.negotiate('pub', { inbound: [{ ...cam, ...own }] });
    play(publisher, 4_000, camera, screen);
    expect(marks(viewer)).toEqual(new Set([0x11]));
    expect(dropped('ended')).toBeGreaterThan(150);
    expect(reports()).toEqual([]);
  });
});

describe('changed SSRCs', () => {
  test.each([
    ['without a mid', {}],
    ['with a mid', { mid: '1' }],
  ])('a new SSRC %s replaces the stream, and late packets of the old one do not return', (_title, name) => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ...own, ssrc: 0x11 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const [before, after] = [plain(0x11, name), plain(0x22, name)];
    play(publisher, 400, before);
    const late = before.vp8Frame();
    sendKey(publisher, after);
    for (const packet of late) publisher.send(packet);
    viewer.packets.splice(0);
    play(publisher, 400, after);
    expect(marks(viewer)).toEqual(new Set([0x22]));
    expect(viewer.packets).toHaveLength(20);
    expect(dropped('ssrc_changes')).toBe(2);
  });

  test('a replaced source returns once the other one is silent', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', own)] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const [first, second] = [plain(0x11), plain(0x22)];
    play(publisher, 400, first);
    play(publisher, 400, second);
    viewer.packets.splice(0);
    play(publisher, 2_000, first);
    expect(marks(viewer)).toEqual(new Set([0x11]));
  });

  test('two sources at once do not take turns', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', own)] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    play(publisher, 4_000, plain(0x11), plain(0x22));
    expect(marks(viewer).size).toBe(2);
    expect(new Set(viewer.packets.slice(8).map(({ payload }) => payload.at(-1))).size).toBe(1);
    expect(reports()).toEqual(['ssrc_changes cam']);
  });

  test('an SSRC that changes with each packet opens a few streams a second, on all tracks together', () => {
    const inbound = Array.from({ length: 30 }, (_, i) => inboundSimulcast(`cam${i}`, { mid: `${i}` }));
    const publisher = world.join('pub', { inbound });
    const streams = new Set<unknown>();
    let ssrc = 1;
    world.advance(1_000, () => {
      for (const { trackId, mid } of inbound) {
        const source = plain(ssrc++, { mid, rid: ['l', 'm', 'h'][ssrc % 3]! });
        publisher.send(source.vp8Frame({ key: true, packets: 1 })[0]!);
        for (const stream of world.room.transport('pub')!.inbound.withId(trackId)[0]!.streams) streams.add(stream);
      }
    });
    // One for each of the 90 encodings, 64 replacements, and "none".
    expect(streams.size).toBeLessThanOrEqual(90 + 64 + 1);
    expect(dropped('ssrc_changes')).toBeGreaterThan(29_000);
  });

  test('an SSRC in use cannot move to another m-line', () => {
    const inbound = [inboundVideo('cam', { ...own, ssrc: 0x11 }), inboundAudio('mic', { ...own, ssrc: 0x22 })];
    const publisher = world.join('pub', { inbound });
    const viewer = world.join('sub', { outbound: [videoSlot('cam'), audioSlot('mic')] });
    const [camera, thief] = [plain(0x11), plain(0x11, { payloadType: 111, mid: '0' })];
    sendKey(publisher, camera);
    for (const packet of thief.opusFrame()) publisher.send(packet);
    sendKey(publisher, camera);
    expect(viewer.packets).toHaveLength(4);
    expect(dropped('unexpected_payload')).toBe(1);
  });
});

describe('retransmissions', () => {
  const announced = { ...own, ssrc: 0x11, rtxSsrc: 0x12 };
  const camera = (ssrc: number, firstSequence: number, name: { mid?: string }) =>
    plain(ssrc, { firstSequence, ...name });
  const repairs = (ssrc: number, name: { mid?: string } = {}) => plain(ssrc, { payloadType: 97, ...name });

  /** Sends a picture whose last packet is lost, another one, and the lost packet on the retransmission stream. */
  function repair(publisher: MemoryPeer, source: SyntheticSource, rtx: SyntheticSource): void {
    const [first, lost] = source.vp8Frame();
    for (const packet of [first!, ...source.vp8Frame()]) publisher.send(packet);
    publisher.send(source.retransmit(lost!.readUInt16BE(2), rtx));
  }

  describe.each([
    ['without a mid', {}],
    ['with a mid', { mid: '1' }],
  ])('%s', (_title, name) => {
    test.each([
      ['in the same track', undefined],
      ['announced by the SDP', inboundVideo('cam', { ...own, ssrc: 0x21, rtxSsrc: 0x22 })],
      ['of another track', inboundVideo('next', { ...own, ssrc: 0x21, rtxSsrc: 0x22 })],
      ['of another track that the SDP does not announce', inboundVideo('next', own)],
    ])('retransmissions do not disturb the source that has replaced theirs, %s', (_how, next) => {
      const publisher = world.join('pub', { inbound: [inboundVideo('cam', announced)] });
      const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
      const [before, after] = [camera(0x11, 30_000, name), camera(0x21, 1_000, name)];
      const rtx = repairs(0x12, name);
      play(publisher, 400, before);
      if (next !== undefined) {
        world.negotiate('pub', { inbound: [next] });
        world.negotiate('sub', { outbound: [videoSlot(next.trackId)] });
        viewer.connect();
        publisher.send(before.retransmit(before.sequence - 2, rtx));
      }
      play(publisher, 200, after);
      viewer.packets.splice(0);
      publisher.send(before.retransmit(before.sequence - 1, rtx));
      play(publisher, 2_000, after);
      expect(viewer.packets).toHaveLength(100);
      viewer.packets.splice(0);
      repair(publisher, after, repairs(0x22, name));
      expect(viewer.packets).toHaveLength(4);
    });
  });

  test('retransmissions are accepted again when their source returns', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', announced)] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x11, 30_000, {});
    play(publisher, 400, source);
    play(publisher, 400, camera(0x21, 1_000, {}));
    play(publisher, 2_000, source);
    viewer.packets.splice(0);
    repair(publisher, source, repairs(0x12));
    expect(viewer.packets).toHaveLength(4);
  });

  test('retransmissions far ahead of the media are dropped', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', announced)] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const [source, stranger] = [camera(0x11, 1_000, {}), camera(0x31, 20_000, {})];
    stranger.vp8Frame();
    play(publisher, 400, source);
    viewer.packets.splice(0);
    publisher.send(stranger.retransmit(20_000, repairs(0x12)));
    play(publisher, 2_000, source);
    expect(marks(viewer)).toEqual(new Set([0x11]));
    expect(viewer.packets).toHaveLength(100);
  });

  test('retransmissions come from the source that the SDP announces, then from the replacement it announces', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', announced)] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x11, 1_000, {});
    play(publisher, 400, source);
    viewer.packets.splice(0);
    repair(publisher, source, repairs(0x42));
    expect(viewer.packets).toHaveLength(3);
    expect(dropped('ssrc_changes')).toBe(1);
    world.negotiate('pub', { inbound: [inboundVideo('cam', { ...announced, rtxSsrc: 0x42 })] });
    repair(publisher, source, repairs(0x42));
    expect(viewer.packets).toHaveLength(7);
  });
});

describe('rids', () => {
  const layers: readonly StreamStats['ssrc'][] = [0x11, 0x22, 0x33];
  const encoder = (rids: readonly string[]): SyntheticSource[] =>
    rids.map((rid, i) => plain(layers[i]!, { mid: '1', rid }));

  test('rids of any name stand for the variants in the order of the answer', () => {
    const wireRids = ['0', '1', '2'];
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam', { rids: ['h', 'm', 'l'], wireRids })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'm');
    play(publisher, 1_000, ...encoder(wireRids));
    expect(marks(viewer)).toEqual(new Set([0x22]));
    const variants = world.stats().transports[0]?.inbound.map(({ ssrc, variant }) => `${ssrc} ${variant}`);
    expect(variants).toEqual([`${0x33} l`, `${0x22} m`, `${0x11} h`]);
  });

  test('repaired rids use the same names', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam', { rids: ['h'], wireRids: ['a'] })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    world.setTargetVariant('sub', 'cam', 'h');
    const source = plain(0x11, { mid: '1', rid: 'a' });
    const [first, lost] = source.vp8Frame({ key: true });
    publisher.send(first!);
    for (const packet of source.vp8Frame()) publisher.send(packet);
    const repair = plain(0x12, { payloadType: 97, mid: '1', repairedRid: 'a' });
    publisher.send(source.retransmit(lost!.readUInt16BE(2), repair));
    expect(viewer.packets).toHaveLength(4);
  });

  test('packets of encodings that are not accepted are never mixed in, and are reported once', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ...own, wireRids: ['a'] })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const [best, ...others] = encoder(['a', 'b', 'c']);
    // The others come first, and later omit their rid, as some clients do.
    play(publisher, 1_000, ...others, best!);
    for (const source of others) delete (source.options as { rid?: string }).rid;
    play(publisher, 4_000, ...others, best!);
    expect(marks(viewer)).toEqual(new Set([0x11]));
    expect(viewer.packets.length).toBeGreaterThan(240);
    expect(reports()).toEqual(['unknown_rid cam']);
  });

  test('rids of any length and number cost no memory and are reported once', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const camera = plain(0x11, { mid: '1', rid: 'h' });
    let n = 0;
    world.advance(5_000, () => {
      const name = Buffer.alloc(240, `${++n}`);
      const header = Buffer.concat([Buffer.from([0x90, 96, 0, 1]), Buffer.alloc(8, n), Buffer.from([0x10, 0, 0, 62])]);
      header.writeUInt32BE(0x1000 + n, 8);
      const elements = Buffer.concat([Buffer.from([4, 1]), Buffer.from('1'), Buffer.from([10, 240]), name]);
      publisher.send(Buffer.concat([header, elements, Buffer.alloc(248 - elements.length), Buffer.from([0x10, 0])]));
    });
    play(publisher, 2_000, camera);
    expect(dropped('unknown_rid')).toBe(5_000);
    expect(reports()).toEqual(['unknown_rid cam']);
    expect(marks(viewer)).toEqual(new Set([0x11]));
  });
});

test('a client that only drops late packets is not reported, and one with many tracks is reported 32 times', () => {
  const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x11 })] });
  const stray = plain(0x22, { mid: 'gone' });
  for (let i = 0; i < 100; i++) {
    for (const packet of stray.vp8Frame({ packets: 5 })) publisher.send(packet);
    world.advance(2_500);
  }
  expect(reports()).toEqual([]);
  for (let i = 0; i < 50; i++) {
    world.negotiate('pub', { inbound: [inboundVideo(`cam${i}`, { mid: `${i}` })] });
    play(publisher, 2_500, plain(1_000 + i, { mid: `${i}`, payloadType: 77 }));
  }
  expect(reports()).toHaveLength(32);
});
