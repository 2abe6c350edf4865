import { beforeEach, describe, expect, test } from '@jest/globals';
import { emptySenderInfo, RtcpWriter, type SenderInfo, TransportCcFeedback } from '@bloom/rtp';
import { type MemoryPeer, MemoryWorld } from '../testing/memory-port.js';
import {
  audioSlot,
  inboundAudio,
  inboundSimulcast,
  inboundVideo,
  RECEIVER_EXTENSIONS,
  SyntheticSource,
  TransportCounter,
  videoSlot,
} from '../testing/synthetic-media.js';

let world: MemoryWorld;
beforeEach(() => {
  world = new MemoryWorld();
});

function camera(ssrc: number, over: object = {}): SyntheticSource {
  return new SyntheticSource({ ssrc, payloadType: 96, mid: '1', ...over });
}

describe('sender reports', () => {
  const clock = { seconds: 3_900_000_000, rtp: { video: 1_000_000, audio: 77_000 } };

  function report(peer: MemoryPeer, ssrc: number, rtpTimestamp: number): void {
    const info: SenderInfo = { ...emptySenderInfo(), ssrc, ntpSeconds: clock.seconds, rtpTimestamp };
    peer.sendControl(new RtcpWriter().senderReport(info).bytes());
  }

  function reports(peer: MemoryPeer): Map<number, { info: SenderInfo; cname: string }> {
    const found = new Map<number, { info: SenderInfo; cname: string }>();
    peer.forEachRtcp((reader) => {
      const info = emptySenderInfo();
      if (reader.readSenderInfo(info)) found.set(info.ssrc, { info, cname: '' });
      if (reader.type === 202) {
        const { buffer, start } = reader;
        const entry = found.get(buffer.readUInt32BE(start + 4));
        const length = buffer[start + 9]!;
        if (entry !== undefined) entry.cname = buffer.toString('utf8', start + 10, start + 10 + length);
      }
    });
    return found;
  }

  test("sender reports keep the publisher's wall clock and map timestamps as packets do, for audio and video", () => {
    const publisher = world.join('pub', {
      inbound: [inboundVideo('cam', { ssrc: 0x101 }), inboundAudio('mic', { ssrc: 0x201 })],
    });
    const viewer = world.join('sub', { outbound: [videoSlot('cam', { cname: 'stream-1' }), audioSlot('mic')] });
    const video = camera(0x101, { firstTimestamp: clock.rtp.video });
    const audio = new SyntheticSource({ ssrc: 0x201, payloadType: 111, mid: '0', firstTimestamp: clock.rtp.audio });
    const startMs = world.nowMs;
    report(publisher, 0x101, clock.rtp.video);
    report(publisher, 0x201, clock.rtp.audio);
    for (const packet of video.vp8Frame({ key: true, elapsedMs: 0 })) publisher.send(packet);
    audio.timestamp = clock.rtp.audio - 960;
    for (const packet of audio.opusFrame()) publisher.send(packet);
    const picture = viewer.packets.find(({ ssrc }) => ssrc === 0xaaaa0001)!;
    const sound = viewer.packets.find(({ ssrc }) => ssrc === 0xbbbb0001)!;
    world.advance(2000);

    const seen = reports(viewer);
    const forVideo = seen.get(0xaaaa0001)!;
    const forAudio = seen.get(0xbbbb0001)!;
    expect(forVideo.cname).toBe('stream-1');
    expect(forAudio.cname).toBe('pub');
    // Both packets were captured at the publisher's moment `clock.seconds`: going back from each report at its own
    // clock rate must lead to that moment for both.
    for (const [{ info }, packet, rate] of [
      [forVideo, picture, 90_000],
      [forAudio, sound, 48_000],
    ] as const) {
      const wallMs = (info.ntpSeconds - clock.seconds) * 1000 + (info.ntpFraction * 1000) / 2 ** 32;
      const mediaMs = (((info.rtpTimestamp - packet.timestamp) | 0) * 1000) / rate;
      expect(wallMs).toBeGreaterThan(900);
      expect(Math.abs(wallMs - mediaMs)).toBeLessThan(1);
      expect(world.nowMs - startMs).toBeGreaterThanOrEqual(Math.round(wallMs));
    }
    expect(forVideo.info.packetCount).toBe(2);
    expect(forVideo.info.octetCount).toBe(2 * 106);
  });

  test('sender reports follow immediately after a switch, with the mapping of the new variant', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const m = camera(0x1b, { rid: 'm', firstTimestamp: 1_000_000 });
    const h = camera(0x1c, { rid: 'h', firstTimestamp: 500 });
    for (const source of [m, h]) for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    report(publisher, 0x1b, m.timestamp);
    report(publisher, 0x1c, h.timestamp);
    world.advance(900);
    world.setTargetVariant('sub', 'cam', 'h');
    for (const packet of h.vp8Frame({ key: true, elapsedMs: 900 })) publisher.send(packet);
    viewer.rtcp.length = 0;
    world.advance(40);
    const { info } = reports(viewer).get(0xaaaa0001)!;
    const wallMs = (info.ntpSeconds - clock.seconds) * 1000 + (info.ntpFraction * 1000) / 2 ** 32;
    const mediaMs = ((info.rtpTimestamp - viewer.packets.at(-1)!.timestamp) | 0) / 90;
    // The packet was captured 900 ms after the publisher's moment.
    expect(Math.abs(wallMs - 900 - mediaMs)).toBeLessThan(1);
  });

  test('sender reports are not invented while the publisher has sent none', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam')] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    for (const packet of camera(0x101).vp8Frame({ key: true })) publisher.send(packet);
    world.advance(3000);
    expect(reports(viewer).size).toBe(0);
  });

  test('measures the round trip from a receiver report, and no longer sends the mid afterwards', () => {
    const publisher = world.join('pub', { inbound: [inboundVideo('cam', { ssrc: 0x101 })] });
    const viewer = world.join('sub', { outbound: [videoSlot('cam')] });
    const source = camera(0x101);
    for (const packet of source.vp8Frame({ key: true })) publisher.send(packet);
    expect(viewer.packets[0]!.extension(RECEIVER_EXTENSIONS.mid!)).toBeDefined();
    report(publisher, 0x101, source.timestamp);
    world.advance(40);
    const { info } = reports(viewer).get(0xaaaa0001)!;
    const reportedMs = world.nowMs;
    world.advance(80);
    const block = {
      ssrc: 0xaaaa0001,
      fractionLost: 0,
      cumulativeLost: 3,
      highestSequence: 1,
      jitter: 0,
      lastSenderReport: (((info.ntpSeconds & 0xffff) << 16) | (info.ntpFraction >>> 16)) >>> 0,
      delaySinceLastSenderReport: Math.round(0.02 * 65536),
    };
    viewer.sendControl(new RtcpWriter().receiverReport(1, [block]).bytes());
    const stats = world.stats().transports.find(({ peerId }) => peerId === 'sub')!.outbound[0]!;
    expect(stats.lost).toBe(3);
    expect(stats.roundTripMs).toBeGreaterThanOrEqual(world.nowMs - reportedMs - 21);
    expect(stats.roundTripMs).toBeLessThanOrEqual(world.nowMs - reportedMs + 1);
    for (const packet of source.vp8Frame()) publisher.send(packet);
    expect(viewer.packets.at(-1)!.extension(RECEIVER_EXTENSIONS.mid!)).toBeUndefined();
    expect(viewer.packets.at(-1)!.extension(RECEIVER_EXTENSIONS.transportCc!)).toBeDefined();
  });
});

test('transport-wide feedback covers every packet of the transport, whatever its stream', () => {
  const publisher = world.join('pub', { inbound: [inboundSimulcast('cam'), inboundAudio('mic')] });
  const counter = new TransportCounter();
  const sources = [
    camera(0x1a, { rid: 'l' }),
    camera(0x1b, { rid: 'm' }),
    camera(0x2b, { payloadType: 97, repairedRid: 'm' }),
    new SyntheticSource({ ssrc: 0x201, payloadType: 111, mid: '0' }),
    new SyntheticSource({ ssrc: 0x999, payloadType: 96 }),
  ];
  for (const source of sources) source.transport = counter;
  for (let i = 0; i < 100; i++) {
    for (const packet of sources[i % 2]!.vp8Frame({ key: i < 2 })) publisher.send(packet);
    publisher.send(sources[2]!.padding());
    for (const packet of sources[3]!.opusFrame()) publisher.send(packet);
    publisher.send(sources[4]!.padding());
    world.advance(10);
  }
  world.advance(100);
  const covered = new Set<number>();
  const feedback = new TransportCcFeedback();
  let count = 0;
  publisher.forEachRtcp((reader) => {
    if (!feedback.parse(reader)) return;
    count++;
    for (let i = 0; i < feedback.packetCount; i++) {
      if (!Number.isNaN(feedback.arrivalsMs[i]!)) covered.add(feedback.baseSequence + i);
    }
  });
  expect(covered.size).toBe(500);
  expect(count).toBeGreaterThanOrEqual(10);
  expect(count).toBeLessThanOrEqual(22);
});

describe('initial estimate of a publisher', () => {
  function estimates(peer: MemoryPeer): number[] {
    const found: number[] = [];
    peer.forEachRtcp((reader) => {
      const bps = reader.readRembBps();
      if (bps >= 0) found.push(bps);
    });
    peer.rtcp.length = 0;
    return found;
  }

  test('gives the negotiated rate plus headroom as the initial estimate, and lifts it after the start phase', () => {
    const publisher = world.join('pub', { inbound: [inboundSimulcast('cam'), inboundAudio('mic')] });
    world.apply({
      type: 'setTrackBitrates',
      peerId: 'pub',
      trackId: 'cam',
      bitratesBps: { l: 150_000, m: 500_000, h: 2_500_000 },
    });
    publisher.rtcp.length = 0;
    world.advance(2500);
    const first = estimates(publisher);
    expect(first.length).toBeGreaterThan(20);
    for (const bps of first) expect(Math.abs(bps / 3_937_500 - 1)).toBeLessThan(0.01);

    world.advance(1000);
    expect(estimates(publisher).at(-1)).toBeGreaterThan(90_000_000);
    world.advance(5000);
    expect(estimates(publisher)).toEqual([]);

    // A restart starts the estimate again.
    world.negotiate('pub', { inbound: [inboundSimulcast('cam')] });
    publisher.connect();
    world.advance(100);
    expect(estimates(publisher).length).toBeGreaterThan(0);
  });

  test('sends no initial estimate to a client without video', () => {
    const publisher = world.join('pub', { inbound: [inboundAudio('mic')] });
    world.advance(5000);
    expect(estimates(publisher)).toEqual([]);
  });
});

describe('voice activity', () => {
  test('voice activity is reported on change, and to a new subscriber alone when it joins', () => {
    const publisher = world.join('pub', { inbound: [inboundAudio('mic')] });
    const audio = new SyntheticSource({ ssrc: 0x201, payloadType: 111, mid: '0' });
    const speak = (level: number, ms: number): void => {
      for (let i = 0; i < ms; i += 20) {
        for (const packet of audio.opusFrame({ level })) publisher.send(packet);
        world.advance(20);
      }
    };
    const voice = (): object[] =>
      world.events.flatMap((event) => (event.type === 'voiceActivity' ? [{ ...event, type: undefined }] : []));
    speak(127, 500);
    expect(voice()).toEqual([]);
    speak(20, 400);
    expect(voice()).toEqual([{ trackId: 'mic', status: 'speech' }]);
    world.join('sub', { outbound: [audioSlot('mic')] });
    expect(voice()[1]).toEqual({ trackId: 'mic', status: 'speech', peerId: 'sub' });
    // Muted: no packets at all.
    world.advance(2000);
    expect(voice()[2]).toEqual({ trackId: 'mic', status: 'silence' });
    expect(voice()).toHaveLength(3);
  });
});
