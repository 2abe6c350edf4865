import { beforeEach, expect, test } from '@jest/globals';
import { MemoryWorld, type MemoryPeer } from '../testing/memory-port.js';
import { audioSlot, inboundAudio, inboundVideo, SyntheticSource, videoSlot } from '../testing/synthetic-media.js';

let world: MemoryWorld;
let ann: MemoryPeer;
let bob: MemoryPeer;
let viewer: MemoryPeer;
const annCamera = () => new SyntheticSource({ ssrc: 0x101, payloadType: 96, mid: '1' });
const bobCamera = () => new SyntheticSource({ ssrc: 0x102, payloadType: 96, mid: '1' });

beforeEach(() => {
  world = new MemoryWorld();
  ann = world.join('ann', { inbound: [inboundVideo('ann-v', { ssrc: 0x101 })] });
  bob = world.join('bob', { inbound: [inboundVideo('bob-v', { ssrc: 0x102 })] });
  viewer = world.join('viewer', { outbound: [videoSlot('ann-v')] });
});

function sendAll(peer: MemoryPeer, packets: readonly Buffer[]): void {
  for (const packet of packets) peer.send(packet);
}

/** Shows another track on the first track's SSRC. */
function show(trackId: string): void {
  world.negotiate('viewer', { outbound: [videoSlot(trackId)] });
  viewer.connect();
}

test('hands over to another track on the same SSRC at its keyframe, and sends the previous one until then', () => {
  const [first, second] = [annCamera(), bobCamera()];
  sendAll(bob, second.vp8Frame({ key: true }));
  sendAll(ann, first.vp8Frame({ key: true }));
  world.advance(100);
  show('bob-v');
  world.advance(40);
  const before = viewer.packets.length;
  sendAll(ann, first.vp8Frame());
  sendAll(bob, second.vp8Frame());
  expect(viewer.packets.length).toBeGreaterThan(before);

  const flowing = viewer.packets.length;
  sendAll(bob, second.vp8Frame({ key: true }));
  expect(viewer.packets.length).toBeGreaterThan(flowing);
  const taken = viewer.packets.length;
  sendAll(ann, first.vp8Frame());
  expect(viewer.packets).toHaveLength(taken);
  sendAll(bob, second.vp8Frame());

  // The viewer sees one stream: one SSRC, numbers without a gap, rising timestamps.
  const { packets } = viewer;
  expect(new Set(packets.map(({ ssrc }) => ssrc)).size).toBe(1);
  for (let i = 1; i < packets.length; i++) {
    expect((packets[i]!.sequence - packets[i - 1]!.sequence) & 0xffff).toBe(1);
    expect((packets[i]!.timestamp - packets[i - 1]!.timestamp) | 0).toBeGreaterThanOrEqual(0);
  }
});

test('never hands over to a track that is no longer wanted', () => {
  const [first, second] = [annCamera(), bobCamera()];
  sendAll(ann, first.vp8Frame({ key: true }));
  world.advance(100);
  show('bob-v');
  world.advance(40);
  show('ann-v');
  world.advance(40);
  const before = viewer.packets.length;
  sendAll(bob, second.vp8Frame({ key: true }));
  expect(viewer.packets).toHaveLength(before);
  sendAll(ann, first.vp8Frame());
  expect(viewer.packets.length).toBeGreaterThan(before);
});

test('hands over to an audio track with its next packet', () => {
  const carl = world.join('carl', { inbound: [inboundAudio('carl-a')] });
  const dora = world.join('dora', { inbound: [inboundAudio('dora-a', { ssrc: 0x302 })] });
  const listener = world.join('listener', { outbound: [audioSlot('carl-a')] });
  const first = new SyntheticSource({ ssrc: inboundAudio('carl-a').ssrc!, payloadType: 111, mid: '0' });
  const second = new SyntheticSource({ ssrc: 0x302, payloadType: 111, mid: '0' });
  sendAll(carl, first.opusFrame());
  world.advance(20);
  sendAll(carl, first.opusFrame());
  world.negotiate('listener', { outbound: [audioSlot('dora-a')] });
  listener.connect();
  world.advance(20);
  const before = listener.packets.length;
  sendAll(dora, second.opusFrame());
  sendAll(carl, first.opusFrame());
  expect(listener.packets).toHaveLength(before + 1);
  expect(listener.packets.at(-1)!.payload[0]).toBe(second.mark);
  expect(new Set(listener.packets.map(({ ssrc }) => ssrc)).size).toBe(1);
});
