import { beforeEach, describe, expect, test } from '@jest/globals';
import { type MemoryPeer, MemoryWorld } from '../testing/memory-port.js';
import { H264, inboundVideo, SyntheticSource, videoSlot } from '../testing/synthetic-media.js';

const SPS = Buffer.from('6742e01f8c8d40', 'hex');
const PPS = Buffer.from('68ce3c80', 'hex');
const formatParameters = announcing(SPS, PPS);
const STAP_A = 24;

let world: MemoryWorld;
let publisher: MemoryPeer;
let viewer: MemoryPeer;
let camera: SyntheticSource;
beforeEach(() => {
  world = new MemoryWorld();
  publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x11, codec: H264, formatParameters })] });
  viewer = world.join('sub', { outbound: [videoSlot('cam', { codec: { ...H264, payloadType: 45 } })] });
  camera = new SyntheticSource({ ssrc: 0x11, payloadType: 102 });
});

function announcing(...sets: readonly Buffer[]): string {
  return `packetization-mode=1;sprop-parameter-sets=${sets.map((set) => set.toString('base64')).join()}`;
}

/** Returns the packets of a key picture without parameter sets, in two slices. */
function keyPicture(): Buffer[] {
  camera.timestamp = (camera.timestamp + 3_600) >>> 0;

  return [camera.packet(Buffer.from([0x65, 0x88, 1]), false), camera.packet(Buffer.from([0x65, 0x08, 2]), true)];
}

function send(...packets: readonly Buffer[]): void {
  for (const packet of packets) publisher.send(packet);
  world.advance(200);
}

const kinds = (): number[] => viewer.packets.map(({ payload }) => payload[0]! & 0x1f);
const isContiguous = (): boolean =>
  viewer.packets.every(({ sequence }, i) => sequence === ((viewer.packets[0]!.sequence + i) & 0xffff));

test('inserts announced parameter sets before each key picture that lacks them, for clients', () => {
  send(...keyPicture());
  send(...camera.h264Frame());
  send(...keyPicture());
  expect(kinds()).toEqual([STAP_A, 5, 5, 1, STAP_A, 5, 5]);
  expect(isContiguous()).toBe(true);
  const [sets, slice] = viewer.packets;
  expect(sets!.payload.toString('hex')).toBe(`780007${SPS.toString('hex')}0004${PPS.toString('hex')}`);
  expect(sets!.timestamp).toBe(slice!.timestamp);
  expect(sets!.marker).toBe(false);
});

test('inserts parameter sets after a delimiter and before the first slice, also in the first picture', () => {
  world.apply({ type: 'openTap', tap: 1, trackId: 'cam', codecs: ['h264'] });
  camera.timestamp = (camera.timestamp + 3_600) >>> 0;
  const before = [camera.packet(Buffer.from([9, 0x10]), false), camera.packet(Buffer.alloc(600, 6), false)];
  const slices = [
    [0x65, 0x88, 1],
    [0x65, 0x01, 2],
  ].map((slice, i) => camera.packet(Buffer.from(slice), i === 1));
  send(...before, ...slices);
  send(...camera.h264Frame());
  expect(kinds()).toEqual([STAP_A, 5, 5, 1]);
  const frames = world.reports.filter((report) => report.type === 'tapEvent' && report.event.type === 'frame');
  expect(frames).toHaveLength(2);
});

test('gives components key pictures with parameter sets', () => {
  world.apply({ type: 'openTap', tap: 1, trackId: 'cam', codecs: ['h264'] });
  send(...keyPicture());
  send(...camera.h264Frame());
  const frames = world.reports.flatMap((report) =>
    report.type === 'tapEvent' && report.event.type === 'frame' ? [report.event.frame] : [],
  );
  expect(frames.map(({ key }) => key)).toEqual([true, false]);
  const start = Buffer.concat([Buffer.from([0, 0, 0, 1]), SPS, Buffer.from([0, 0, 0, 1]), PPS]);
  expect(Buffer.from(frames[0]!.data).subarray(0, start.length)).toEqual(start);
});

test('inserts nothing for a sender that sends its own parameter sets', () => {
  const sets = (): Buffer => {
    camera.timestamp = (camera.timestamp + 3_600) >>> 0;
    return camera.packet(Buffer.concat([Buffer.from([STAP_A, 0, 7]), SPS, Buffer.from([0, 4]), PPS]), false);
  };
  send(sets(), camera.packet(Buffer.from([0x65, 0x88, 1]), true));
  expect(kinds()).toEqual([STAP_A, 5]);
  // A picture without them follows: the announcement still holds.
  send(...keyPicture());
  expect(kinds()).toEqual([STAP_A, 5, STAP_A, 5, 5]);
});

test('does not insert announced parameter sets once the sender has sent others', () => {
  camera.timestamp += 3_600;
  send(camera.packet(Buffer.from('6742e01fffff', 'hex'), false), camera.packet(Buffer.from([0x65, 0x88, 1]), true));
  send(...keyPicture());
  expect(kinds()).toEqual([7, 5, 5, 5]);
});

describe('a new offer', () => {
  const OTHER_SPS = Buffer.from('6742e01fffff', 'hex');

  function offer(parameters: string): void {
    world.negotiate('pub', {
      inbound: [inboundVideo('cam', { ssrc: 0x11, codec: H264, formatParameters: parameters })],
    });
  }

  test('replaces the announced parameter sets, also those that the sender had contradicted', () => {
    send(...keyPicture());
    camera.timestamp += 3_600;
    send(camera.packet(OTHER_SPS, false), camera.packet(Buffer.from([0x65, 0x88, 1]), true));
    offer(announcing(OTHER_SPS, PPS));
    send(...keyPicture());
    expect(kinds()).toEqual([STAP_A, 5, 5, 7, 5, STAP_A, 5, 5]);
    expect(viewer.packets[5]!.payload.includes(OTHER_SPS)).toBe(true);
    expect(isContiguous()).toBe(true);
  });

  test('ends the insertions when a new offer announces no sets, and keeps numbers continuous', () => {
    send(...keyPicture());
    offer('packetization-mode=1');
    send(...camera.h264Frame());
    send(...keyPicture());
    expect(kinds()).toEqual([STAP_A, 5, 5, 1, 5, 5]);
    expect(isContiguous()).toBe(true);
  });

  test('inserts sets that a later offer is the first to announce', () => {
    publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x11, codec: H264 })] });
    send(...camera.h264Frame({ key: true }));
    offer(formatParameters);
    send(...keyPicture());
    expect(kinds()).toEqual([7, 5, STAP_A, 5, 5]);
    expect(isContiguous()).toBe(true);
  });

  test('changes nothing when a new offer announces the same parameters', () => {
    camera.timestamp += 3_600;
    send(camera.packet(OTHER_SPS, false), camera.packet(Buffer.from([0x65, 0x88, 1]), true));
    offer(formatParameters);
    send(...keyPicture());
    expect(kinds()).toEqual([7, 5, 5, 5]);
  });
});

test("requests and reports lost packets by the sender's numbers, and puts them in their place", () => {
  send(...keyPicture());
  send(...keyPicture());
  const [first, lost, ...rest] = [...camera.h264Frame(), ...camera.h264Frame(), ...camera.h264Frame()];
  send(first!, ...rest);
  const number = lost!.readUInt16BE(2);
  const asked = new Set<number>();
  publisher.forEachRtcp((reader) => reader.forEachNack((sequence) => asked.add(sequence)));
  expect([...asked]).toEqual([number]);
  send(lost!);
  expect(kinds()).toEqual([STAP_A, 5, 5, STAP_A, 5, 5, 1, 1, 1]);
  const numbers = viewer.packets.map(({ sequence }) => sequence - viewer.packets[0]!.sequence);
  expect(numbers).toEqual([0, 1, 2, 3, 4, 5, 6, 8, 7]);
  expect(world.stats().transports[0]?.inbound[0]).toMatchObject({ lost: 0, packets: 7 });
});

test('starts no viewer at a key picture whose start comes late, but at the next one', () => {
  const [start, end] = keyPicture();
  send(end!, ...camera.h264Frame(), start!);
  expect(viewer.packets).toEqual([]);
  send(...keyPicture());
  expect(kinds()).toEqual([STAP_A, 5, 5]);
});

describe('key pictures without parameter sets', () => {
  const reports = () => world.events.filter(({ type }) => type === 'bareKeyframes');

  test('reports key pictures without parameter sets once if the offer does not announce them', () => {
    publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x11, codec: H264 })] });
    for (let i = 0; i < 8; i++) send(...keyPicture());
    expect(reports()).toEqual([expect.objectContaining({ type: 'bareKeyframes', trackId: 'cam' })]);
  });

  test('reports no missing parameter sets if the offer announces them', () => {
    for (let i = 0; i < 8; i++) send(...keyPicture());
    expect(reports()).toEqual([]);
  });

  test('reports no missing parameter sets if some key pictures have them', () => {
    publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x11, codec: H264 })] });
    for (let i = 0; i < 8; i++) send(...keyPicture(), ...camera.h264Frame({ key: true }));
    expect(reports()).toEqual([]);
  });
});

test('limits insertions for tiny consecutive key pictures to ten per second', () => {
  for (let i = 0; i < 500; i++) {
    for (const packet of keyPicture()) publisher.send(packet);
    world.advance(2);
  }
  expect(kinds().filter((kind) => kind === STAP_A)).toHaveLength(10);
  expect(isContiguous()).toBe(true);
});
