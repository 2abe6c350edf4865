import { beforeEach, describe, expect, test } from '@jest/globals';
import { operationsOf } from '@bloom/time/testing';
import { RtcpWriter, TransportCcRecorder } from '@bloom/rtp';
import { MemoryWorld, seededRandom } from '../testing/memory-port.js';
import {
  audioSlot,
  H264,
  inboundAudio,
  inboundSimulcast,
  inboundVideo,
  SyntheticSource,
  videoSlot,
} from '../testing/synthetic-media.js';

const operations = operationsOf('transport-cc.ts');
const historyOperations = operationsOf('send-history.ts');
const storeOperations = operationsOf('packet-store.ts');

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

function camera(ssrc: number, over: object = {}): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 96, mid: '1', ...over });
}

describe('faults and garbage', () => {
  test('fails only the transport of a slot with a fault', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const bad = world.join('bad', { outbound: [videoSlot('cam')] });
    const good = world.join('good', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    // Acts like a bug: the slot's part of the packet path throws.
    const [slot] = world.room.transport('bad')!.outbound.slots.values();
    Object.defineProperty(slot, 'forward', {
      value: () => {
        throw new Error('a fault of this slot');
      },
    });
    for (const packet of source.vp8Frame()) publisher.send(packet);
    world.advance(40);
    for (const packet of source.vp8Frame()) publisher.send(packet);
    expect(good.packets).toHaveLength(6);
    expect(bad.packets).toHaveLength(2);
    const failed = world.events.filter(({ type }) => type === 'transportFailed');
    expect(failed).toEqual([{ type: 'transportFailed', peerId: 'bad', reason: 'Internal server error', transport: 2 }]);
  });

  test('skips feedback that claims an impossible number of packets, and reads again at the next tick', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    for (const packet of camera(0x101).vp8Frame({ key: true, packets: 3 })) publisher.send(packet);
    // A run length: 24 bytes claim 4,096 packets, a datagram 237,568.
    const claim = Buffer.from('8fcd0005000000010000000202bc10000000000010000000', 'hex');
    const effort = operations(() => {
      for (let i = 0; i < 50; i++) viewer.sendControl(Buffer.concat(Array.from({ length: 58 }, () => claim)));
    });
    // Out of 11.9 million claimed packets.
    expect(effort).toBeLessThan(100_000);

    const feedback = (): Buffer => {
      const recorder = new TransportCcRecorder({ senderSsrc: 5 });
      for (let sequence = 0; sequence < 3; sequence++) recorder.record(sequence, world.nowMs + sequence);
      const writer = new RtcpWriter();
      recorder.write(writer, 0xaaaa0001, world.nowMs);
      return writer.bytes();
    };
    const estimation = (): number | undefined =>
      world.stats().transports.find(({ peerId }) => peerId === 'sub')?.estimationBps;
    viewer.sendControl(feedback());
    expect(estimation()).toBeUndefined();
    world.advance(20);
    viewer.sendControl(feedback());
    expect(estimation()).toBeDefined();
  });

  test('limits the work on a flood of NACKs, and answers one on the next tick', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    for (const packet of camera(0x101).vp8Frame({ key: true, packets: 3 })) publisher.send(packet);
    const { ssrc, sequence } = viewer.packets[1]!;
    const numbers = Array.from({ length: 4_000 }, (_, i) => sequence - 5_000 + i);
    const writer = new RtcpWriter(1_200);
    writer.nack(1, ssrc, numbers);
    const flood = Buffer.from(writer.bytes());
    const effort = historyOperations(() => {
      for (let i = 0; i < 100; i++) viewer.sendControl(flood);
    });
    expect(effort).toBeLessThan(20_000);

    world.advance(20);
    const before = viewer.packets.length;
    writer.reset().nack(1, ssrc, [sequence]);
    viewer.sendControl(writer.bytes());
    expect(viewer.packets.length).toBe(before + 1);
  });

  test('does not search for what is missing once per H.264 slice of a picture', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101, codec: H264 })] });
    const source = camera(0x101, { payloadType: 102 });
    publisher.send(source.h264Frame()[0]!);
    // Its parameter sets are lost.
    const [, slice] = source.h264Frame({ key: true });
    publisher.send(slice!);
    const stream = world.room.transport('pub')!.inbound.withId('cam')[0]!.stream('h')!;
    let looks = 0;
    const isMissing = stream.losses.isMissing.bind(stream.losses);
    stream.losses.isMissing = (sequence) => {
      looks++;
      return isMissing(sequence);
    };
    for (let i = 0; i < 500; i++) publisher.send(source.packet(Buffer.from([0x65, 0]), false));
    expect(looks).toBeLessThan(500 * 40);
  });

  test('does not let two sources that claim one variant replace each other with each packet', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const sources = [camera(0x201), camera(0x202)];
    const stream = () => world.room.transport('pub')!.inbound.withId('cam')[0]!.stream('h');
    const seen = new Set<unknown>();
    world.advance(1_000, () => {
      for (const source of sources) {
        publisher.send(source.vp8Frame({ key: true, packets: 1 })[0]!);
        seen.add(stream());
      }
    });
    expect(seen.size).toBeLessThanOrEqual(5);
    expect(world.context.dropped.ssrc_changes).toBeGreaterThan(900);
  });

  test('visits only stored packets when catching up after a late key frame, however wide the gap', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    const late = source.vp8Frame({ key: true, packets: 2 });
    const far = camera(0x101, { firstSequence: 30_000 }).vp8Frame({ packets: 1 });
    publisher.send(source.vp8Frame({ packets: 1 })[0]!);
    publisher.send(far[0]!);
    const effort = storeOperations(() => publisher.send(late[0]!));
    expect(effort).toBeLessThan(5_000);
  });

  test('refuses random packets and reports without throwing', () => {
    const random = seededRandom(3);
    const publisher = world.join('pub', {
      inbound: [inboundSimulcast('cam'), inboundAudio('mic')],
      outbound: [videoSlot('x')],
    });
    const viewer = world.join('sub', { outbound: [videoSlot('cam'), audioSlot('mic')] });
    const source = camera(0x1b, { rid: 'm' });
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    for (let i = 0; i < 10_000; i++) {
      const template = i % 2 === 0 ? source.vp8Frame({ packets: 1, size: 30 })[0]! : Buffer.alloc(random() % 80);
      const bytes = Buffer.from(template);
      for (let flips = 0; flips < 4 && bytes.length > 0; flips++) bytes[random() % bytes.length] = random() & 0xff;
      (i % 3 === 0 ? viewer : publisher).send(bytes);
      const control = Buffer.alloc(8 + (random() % 60));
      for (let at = 0; at < control.length; at++) control[at] = random() & 0xff;
      control[0] = 0x80 | (random() % 16);
      control[1] = 200 + (random() % 8);
      control.writeUInt16BE(Math.floor(control.length / 4) - 1, 2);
      (i % 2 === 0 ? viewer : publisher).sendControl(control);
      if (i % 50 === 0) world.advance(20);
    }
    expect(world.events.filter(({ type }) => type === 'transportFailed')).toEqual([]);
    const before = viewer.packets.length;
    // Includes sources created by the noise.
    world.advance(1_000);
    const fresh = camera(0x77, { rid: 'm', firstSequence: 9 });
    for (const packet of fresh.vp8Frame({ key: true })) publisher.send(packet);
    expect(viewer.packets.length).toBeGreaterThan(before);
  });
});
