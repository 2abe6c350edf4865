import { beforeEach, describe, expect, test } from '@jest/globals';
import { emptyReportBlock, RedReader, RtcpWriter, RtpView } from '@bloom/rtp';
import type { TapEvent } from '../media-frames.js';
import { type MemoryPeer, MemoryWorld, type SeenPacket } from '../testing/memory-port.js';
import { audioSlot, inboundAudio, SyntheticSource } from '../testing/synthetic-media.js';

const OPUS = { name: 'opus', payloadType: 111, clockRate: 48_000, feedback: ['nack'] } as const;
const WITH_RED = { ...OPUS, redPayloadType: 63 } as const;
const FRAME = 960;
const SSRC = 0xbbbb0001;

let world: MemoryWorld;
let speaker: Speaker;
beforeEach(() => {
  world = new MemoryWorld();
  speaker = new Speaker();
});

/** Returns an Opus packet of 20 ms that ends with this byte. */
function sound(mark: number): Buffer {
  return Buffer.from([31 << 3, mark, mark]);
}

/** Speaks one packet each 20 ms: packet n has the mark n. */
class Speaker {
  readonly source = new SyntheticSource({
    ssrc: 0x101,
    payloadType: 63,
    mid: '0',
    firstSequence: 0,
    firstTimestamp: 0,
  });
  readonly plain = new SyntheticSource({
    ssrc: 0x101,
    payloadType: 111,
    mid: '0',
    firstSequence: 0,
    firstTimestamp: 0,
  });

  /** Returns packet n, which repeats the `distance` packets before it. */
  redundant(n: number, distance: number): Buffer {
    const parts: Buffer[] = [];
    for (let back = distance; back > 0; back--) {
      const header = Buffer.alloc(4);
      header.writeUInt32BE((((0x80 | 111) << 24) | ((back * FRAME) << 10) | 3) >>> 0);
      parts.push(header);
    }
    parts.push(Buffer.from([111]));
    for (let back = distance; back >= 0; back--) parts.push(sound(n - back));
    return this.#packet(this.source, n, Buffer.concat(parts));
  }

  /** Returns packet n without redundancy. */
  opus(n: number): Buffer {
    return this.#packet(this.plain, n, sound(n));
  }

  raw(n: number, payload: Buffer): Buffer {
    return this.#packet(this.source, n, payload);
  }

  #packet(source: SyntheticSource, n: number, payload: Buffer): Buffer {
    source.sequence = n;
    source.timestamp = n * FRAME;
    return source.packet(payload, false);
  }
}

function publish(codec: typeof OPUS | typeof WITH_RED = WITH_RED): MemoryPeer {
  return world.join('pub', { inbound: [inboundAudio('mic', { codec })] });
}

function listen(codec: typeof OPUS | typeof WITH_RED = OPUS, peerId = 'sub'): MemoryPeer {
  return world.join(peerId, { outbound: [audioSlot('mic', { codec, extensions: { mid: 9 } })] });
}

/** Reports the loss of a listener, in percent. */
function report(listener: MemoryPeer, percent: number): void {
  const block = { ...emptyReportBlock(), ssrc: SSRC, fractionLost: Math.round(percent * 2.56) };
  listener.sendControl(Buffer.from(new RtcpWriter().receiverReport(1, [block]).bytes()));
}

const marks = (packets: readonly SeenPacket[]): number[] => packets.map(({ payload }) => payload.at(-1)!);
const numbers = (packets: readonly SeenPacket[]): number[] =>
  packets.map(({ sequence }) => (sequence - packets[0]!.sequence) & 0xffff);

/** Returns the marks of the packets that this one repeats. */
function repeated({ payloadType, bytes }: SeenPacket): number[] {
  if (payloadType === 111) return [];
  expect(payloadType).toBe(63);
  const view = new RtpView();
  view.parse(Buffer.from(bytes));
  const reader = new RedReader();
  expect(reader.read(view, 111)).toBe(true);
  return Array.from({ length: reader.count }, (_, i) => {
    expect(reader.restore(i, i, view)).toBe(true);
    return view.buffer[view.payloadEnd - 1]!;
  });
}

function drops(): number {
  return world.context.dropped.malformed_media;
}

describe('a publisher that sends redundancy', () => {
  test('reaches clients and components without it', () => {
    const publisher = publish();
    const listener = listen();
    world.apply({ type: 'openTap', tap: 7, trackId: 'mic', codecs: ['opus'] });
    for (let n = 0; n < 4; n++) publisher.send(speaker.redundant(n, Math.min(n, 2)));
    world.advance(100);

    expect(listener.packets.map(({ payload, payloadType }) => [payloadType, payload])).toEqual(
      [0, 1, 2, 3].map((n) => [111, sound(n)]),
    );
    const frames = world.reports
      .flatMap((each) => (each.type === 'tapEvent' ? [each.event] : []))
      .flatMap((event: TapEvent) => (event.type === 'frame' ? [event.frame.data] : []));
    expect(frames).toEqual([0, 1, 2, 3].map(sound));
  });

  test.each([1, 2])('has %i lost packets in a row restored for everybody, in their places', (distance) => {
    const publisher = publish();
    const listener = listen();
    publisher.send(speaker.redundant(0, 0));
    publisher.send(speaker.redundant(1, 1));
    publisher.send(speaker.redundant(2 + distance, distance));

    const all = Array.from({ length: 3 + distance }, (_, n) => n);
    expect(marks(listener.packets)).toEqual(all);
    expect(numbers(listener.packets)).toEqual(all);
    expect(listener.packets.map(({ timestamp }) => (timestamp - listener.packets[0]!.timestamp) >>> 0)).toEqual(
      all.map((n) => n * FRAME),
    );
    world.advance(40);
    const [stats] = world.stats().transports.find(({ peerId }) => peerId === 'pub')!.inbound;
    expect(stats).toMatchObject({ recovered: distance, lost: distance, nacks: 0 });
  });

  test('leaves a gap where more is lost than is repeated', () => {
    const publisher = publish();
    const listener = listen();
    publisher.send(speaker.redundant(0, 0));
    publisher.send(speaker.redundant(4, 2));
    expect(marks(listener.packets)).toEqual([0, 2, 3, 4]);
    expect(numbers(listener.packets)).toEqual([0, 2, 3, 4]);
  });

  test('has no packet sent twice when the original comes late', () => {
    const publisher = publish();
    const listener = listen();
    for (const packet of [speaker.redundant(0, 0), speaker.redundant(2, 1), speaker.redundant(1, 1)])
      publisher.send(packet);
    publisher.send(speaker.opus(3));
    expect(marks(listener.packets)).toEqual([0, 1, 2, 3]);
  });

  test('has nothing sent under the number of a restored packet when its original comes much later, and differs', () => {
    const publisher = publish();
    const listener = listen();
    publisher.send(speaker.redundant(0, 0));
    publisher.send(speaker.redundant(2, 1));
    world.advance(1_500);
    listener.forgetReplays();
    publisher.send(speaker.raw(1, Buffer.from([111, 31 << 3, 77, 77])));
    publisher.send(speaker.opus(3));
    expect(marks(listener.packets)).toEqual([0, 1, 2, 3]);
    const [stats] = world.stats().transports.find(({ peerId }) => peerId === 'sub')!.outbound;
    expect(stats!.packets).toBe(4);
  });

  test('goes on after malformed packets, each of which is counted', () => {
    const publisher = publish();
    const listener = listen();
    publisher.send(speaker.redundant(0, 0));
    const endless = Buffer.alloc(1000, 0xff);
    const beyond = Buffer.from([0x80 | 111, 0x0f, 0x03, 0xff, 111, 1, 2]);
    for (const [i, malformed] of [endless, beyond, Buffer.from([0x80]), Buffer.from([111])].entries())
      publisher.send(speaker.raw(1 + i, malformed));
    publisher.send(speaker.redundant(5, 0));
    expect(drops()).toBe(4);
    expect(marks(listener.packets)).toEqual([0, 5]);
  });

  test('may not send redundancy that was not negotiated', () => {
    const publisher = publish(OPUS);
    const listener = listen();
    publisher.send(speaker.opus(0));
    publisher.send(speaker.redundant(1, 1));
    expect(marks(listener.packets)).toEqual([0]);
    expect(world.context.dropped.unexpected_payload).toBe(1);
  });
});

describe('a client that takes redundancy', () => {
  test.each([
    [0, [[], [], [], []]],
    [5, [[], [0], [1], [2]]],
    [20, [[], [0], [0, 1], [1, 2]]],
  ])('gets as much of it as %i %% loss needs, from a publisher that sends none', (percent, expected) => {
    const publisher = publish(OPUS);
    const listener = listen(WITH_RED);
    for (let i = 0; i < 3; i++) report(listener, percent);
    for (let n = 0; n < 4; n++) publisher.send(speaker.opus(n));
    expect(listener.packets.map(repeated)).toEqual(expected);
    expect(marks(listener.packets)).toEqual([0, 1, 2, 3]);
  });

  test('gets no packet from before a pause repeated', () => {
    const publisher = publish(OPUS);
    const listener = listen(WITH_RED);
    report(listener, 20);
    publisher.send(speaker.opus(0));
    speaker.plain.sequence = 1;
    speaker.plain.timestamp = 20 * FRAME;
    publisher.send(speaker.plain.packet(sound(1), false));
    expect(listener.packets.map(repeated)).toEqual([[], []]);
  });

  test('gets nothing repeated that it was not allowed to hear', () => {
    const publisher = publish(OPUS);
    const listener = listen(WITH_RED);
    report(listener, 20);
    const withhold = (paused: boolean) =>
      world.apply({ type: 'setTrackPaused', peerId: 'sub', trackId: 'mic', paused });
    publisher.send(speaker.opus(0));
    withhold(true);
    publisher.send(speaker.opus(1));
    withhold(false);
    for (let n = 2; n < 5; n++) publisher.send(speaker.opus(n));
    expect(marks(listener.packets)).toEqual([0, 2, 3, 4]);
    expect(listener.packets.map(repeated)).toEqual([[], [], [2], [2, 3]]);
  });

  test('gets a packet that it reports missing with the same bytes as before', () => {
    const publisher = publish(OPUS);
    const listener = listen(WITH_RED);
    report(listener, 20);
    for (let n = 0; n < 4; n++) publisher.send(speaker.opus(n));
    const lost = listener.packets[3]!;
    report(listener, 0);
    listener.forgetReplays();
    const writer = new RtcpWriter();
    writer.nack(1, SSRC, [lost.sequence]);
    listener.sendControl(writer.bytes());
    const again = listener.packets[4]!;
    expect(again.payloadType).toBe(63);
    expect(again.payload).toEqual(lost.payload);
  });

  test('does not change what another client gets', () => {
    const publisher = publish(OPUS);
    const listener = listen(WITH_RED);
    const other = listen(OPUS, 'other');
    report(listener, 20);
    report(other, 20);
    for (let n = 0; n < 3; n++) publisher.send(speaker.opus(n));
    expect(repeated(listener.packets[2]!)).toEqual([0, 1]);
    expect(other.packets.map(({ payloadType, payload }) => [payloadType, payload])).toEqual(
      [0, 1, 2].map((n) => [111, sound(n)]),
    );
  });
});
