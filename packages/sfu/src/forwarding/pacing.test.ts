// Bursts on their way to a viewer whose link is known to be narrow.
import { beforeEach, expect, test } from '@jest/globals';
import { type MemoryPeer, MemoryWorld, type SeenPacket } from '../testing/memory-port.js';
import { NarrowClient } from '../testing/narrow-client.js';
import { audioSlot, inboundAudio, inboundVideo, SyntheticSource, videoSlot } from '../testing/synthetic-media.js';

let world: MemoryWorld;
let publisher: MemoryPeer;
let viewer: MemoryPeer;
let camera: SyntheticSource;
let seen: SeenPacket[];

/** Lets the server find that the link carries 400 kbit/s. */
beforeEach(() => {
  world = new MemoryWorld();
  publisher = world.join('pub', { inbound: [inboundVideo('cam'), inboundAudio('mic')] });
  viewer = world.join('sub', { outbound: [videoSlot('cam'), audioSlot('mic')] });
  camera = new SyntheticSource({ ssrc: 0x1a, payloadType: 96, mid: '1' });
  const link = new NarrowClient(viewer, 400_000);
  let dueMs = world.nowMs;
  for (const size of [2_500, 1_000]) {
    world.advance(10_000, (nowMs) => {
      link.tick(nowMs);
      if (nowMs < dueMs) return;
      dueMs += 33;
      const key = camera.sequence === 1_000;
      for (const packet of camera.vp8Frame({
        key,
        packets: 2,
        size: size / 2,
        temporal: key ? 0 : camera.sequence % 4 < 2 ? 0 : 1,
      }))
        publisher.send(packet);
    });
  }
  seen = [];
  viewer.onPacket = (packet) => {
    if (!packet.isPadding) seen.push(packet);
  };
  world.advance(1_000);
});

const burst = (packets: number): void => {
  for (const packet of camera.vp8Frame({ packets, size: 1_000 })) publisher.send(packet);
};
const gaps = (): Set<number> =>
  new Set(seen.slice(1).map(({ sequence }, i) => (sequence - seen[i]!.sequence) & 0xffff));

test('a burst leaves over about the time that the link takes for it, in order and without gaps', () => {
  const startMs = world.nowMs;
  burst(20);
  expect(seen.length).toBeLessThan(6);
  world.advance(600);
  expect(seen).toHaveLength(20);
  expect(gaps()).toEqual(new Set([1]));
  expect(seen.at(-1)!.atMs - startMs).toBeGreaterThan(200);
});

test('the packets after a burst wait behind it, and leave at once after that', () => {
  burst(20);
  burst(1);
  world.advance(800);
  expect(seen).toHaveLength(21);
  expect(gaps()).toEqual(new Set([1]));
  burst(1);
  expect(seen).toHaveLength(22);
});

test('a packet without media that comes during a burst leaves no gap', () => {
  burst(10);
  publisher.send(camera.padding());
  burst(10);
  world.advance(800);
  expect(seen).toHaveLength(20);
  expect(gaps()).toEqual(new Set([1]));
});

test('a packet that is lost on its way to the server leaves its gap, and takes it when it comes late', () => {
  const packets = camera.vp8Frame({ packets: 20, size: 1_000 });
  const [late] = packets.splice(15, 1);
  for (const packet of packets) publisher.send(packet);
  world.advance(800);
  expect(gaps()).toEqual(new Set([1, 2]));
  publisher.send(late!);
  expect(seen).toHaveLength(20);
  expect(new Set(seen.map(({ sequence }) => sequence)).size).toBe(20);
});

test('sound does not wait behind a burst', () => {
  const mic = new SyntheticSource({ ssrc: 0x2a, payloadType: 111, mid: '0' });
  burst(20);
  seen = [];
  for (const packet of mic.opusFrame()) publisher.send(packet);
  expect(seen).toHaveLength(1);
});

test('what is too much for the link for long waits for less than a second', () => {
  burst(200);
  world.advance(880);
  expect(seen.length).toBeLessThan(150);
  world.advance(60);
  expect(seen).toHaveLength(200);
});

test('packets leave before the store needs their place', () => {
  for (let bursts = 0; bursts < 18; bursts += 1) {
    burst(50);
    world.advance(50);
  }
  world.advance(920);
  expect(seen).toHaveLength(900);
  expect(gaps()).toEqual(new Set([1]));
});

test('two key pictures that wait together both count', () => {
  const keyframes = (): number => {
    const { outbound } = world.stats().transports.find(({ peerId }) => peerId === 'sub')!;
    return outbound.reduce((sum, track) => sum + track.keyframes, 0);
  };
  const before = keyframes();
  burst(20);
  for (const packet of [1, 2].flatMap(() => camera.vp8Frame({ key: true, size: 1_000 }))) publisher.send(packet);
  world.advance(920);
  expect(keyframes() - before).toBe(2);
});

test.each([1_500, 30_000])('a gap of %d packets during a burst stays visible to the viewer', (packets) => {
  burst(20);
  camera.sequence += packets;
  burst(5);
  world.advance(920);
  expect(seen).toHaveLength(25);
  expect(gaps()).not.toEqual(new Set([1]));
});

test('a viewer sees what is missing because the store had no room for it any longer', () => {
  burst(800);
  world.advance(920);
  expect(seen.length).toBeLessThan(700);
  expect(gaps()).not.toEqual(new Set([1]));
});

test('sound that comes late and begins during a burst does not wait, and comes once', () => {
  const mic = new SyntheticSource({ ssrc: 0x2a, payloadType: 111, mid: '0' });
  const pause = (paused: boolean): void => {
    world.apply({ type: 'setTrackPaused', peerId: 'sub', trackId: 'mic', paused });
  };
  const [first, late, third] = [0, 1, 2].flatMap(() => mic.opusFrame());
  pause(true);
  for (const packet of [first!, third!]) publisher.send(packet);
  pause(false);
  burst(20);
  seen = [];
  publisher.send(late!);
  expect(seen).toHaveLength(2);
  for (const packet of mic.opusFrame()) publisher.send(packet);
  world.advance(920);
  expect(seen.filter(({ ssrc }) => ssrc === seen[0]!.ssrc)).toHaveLength(3);
});

/** Plays slides to a viewer on a good link that has stalled for a moment. Returns the packets sent of two bursts. */
function burstsAfterStall(layers: readonly number[]): { atOnce: number; within1s: number }[] {
  viewer = world.join('other', { outbound: [videoSlot('slides')] });
  const speaker = world.join('pub2', { inbound: [inboundVideo('slides')] });
  const slides = new SyntheticSource({ ssrc: 0x1a, payloadType: 96, mid: '1' });
  const link = new NarrowClient(viewer, 20_000_000);
  let pictures = 0;
  const picture = (packets: number, size: number): void => {
    // A large picture is of the lowest layer, which is never left out.
    const temporal = packets > 1 ? layers[0] : layers[pictures % layers.length];
    const frame = { key: pictures === 0, packets, size, ...(temporal === undefined ? {} : { temporal }) };
    pictures += 1;
    for (const packet of slides.vp8Frame(frame)) speaker.send(packet);
  };
  const play = (ms: number): void => {
    let dueMs = world.nowMs;
    world.advance(ms, (nowMs) => {
      link.tick(nowMs);
      if (nowMs < dueMs) return;
      dueMs += 66;
      picture(1, 200);
    });
  };
  play(5_000);
  link.capacityBps = 20_000;
  play(600);
  link.capacityBps = 20_000_000;

  return [1, 2].map(() => {
    play(5_000);
    let sent = 0;
    viewer.onPacket = ({ isPadding }) => void (sent += isPadding ? 0 : 1);
    picture(100, 1_000);
    const atOnce = sent;
    play(1_000);
    viewer.onPacket = undefined;

    return { atOnce, within1s: sent };
  });
}

test('a burst of a stream without layers leaves at once, because no probe would lift the limit again', () => {
  expect(burstsAfterStall([])[0]!.atOnce).toBe(100);
});

test('a second burst leaves at once after one that has waited in vain, because the limit said too little', () => {
  const [first, second] = burstsAfterStall([0, 1]);
  expect(first!.atOnce).toBeLessThan(100);
  expect(first!.within1s).toBeGreaterThanOrEqual(100);
  expect(second!.atOnce).toBe(100);
});
