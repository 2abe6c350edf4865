// What a newcomer sees of a stream with several layers (SVC), and how soon.
import { describe, expect, test } from '@jest/globals';
import { payloadFormat, RtcpReader, RtpView } from '@bloom/rtp';
import { MemoryWorld, type SeenPacket } from '../testing/memory-port.js';
import { type PicturePart, PictureViewer } from '../testing/picture-viewer.js';
import { AV1, inboundVideo, SyntheticSource, videoSlot, VP9 } from '../testing/synthetic-media.js';

/** Temporal layers of successive pictures. */
const PATTERN = [0, 2, 1, 2];
const FRAME_MS = 33;
/** Bytes of the spatial layers of a picture: at 30 pictures per second 120, 400 and 1,200, or 120 and 400 kbit/s. */
const SIZES = { vp9: [500, 1_670, 5_000], av1: [500, 1_670] };
const CODECS = { vp9: VP9, av1: AV1 };
type Codec = keyof typeof CODECS;

const vp9 = payloadFormat('vp9').createReader();
const view = new RtpView();
const READERS: Record<Codec, (packet: SeenPacket, payload: Buffer) => PicturePart> = {
  vp9: (packet, payload) => {
    // A retransmission begins with the number of the original packet.
    const header = packet.bytes.length - packet.payload.length;
    expect(view.parse(Buffer.concat([packet.bytes.subarray(0, header), payload]))).toBe(true);
    expect(vp9.read(view)).toBe(true);
    const { spatialLayer: spatial, temporalLayer: temporal } = vp9;
    const isFirst = spatial === 0 && (payload[0]! & 0x08) !== 0;
    return { isKey: (payload[0]! & 0x40) === 0, spatial, temporal, isFirst };
  },
  av1: (packet) => {
    const [bounds = 0] = packet.extension(2)!;
    const [template, spatial] = [(bounds & 0x3f) % 5, Math.floor((bounds & 0x3f) / 5)];
    const isFirst = spatial === 0 && (bounds & 0x80) !== 0;
    return { isKey: template === 0, spatial, temporal: Math.max(0, template - 1), isFirst };
  },
};

interface Case {
  readonly codec: Codec;
  readonly capacityBps: number;
  readonly queueMs: number;
  /** Factor of all sizes. */
  readonly scale: number;
  /** Factor of key pictures. */
  readonly keyScale: number;
  readonly seconds: number;
}

/** Lets somebody join a publisher of 3 s. */
function watch({ codec, capacityBps, queueMs, scale, keyScale, seconds }: Case): PictureViewer {
  const world = new MemoryWorld();
  const publisher = world.join('pub', { inbound: [inboundVideo('cam', { codec: CODECS[codec] })] });
  const camera = new SyntheticSource({ ssrc: 0x1a, payloadType: CODECS[codec].payloadType, mid: '1' });
  const rtcp = new RtcpReader();
  let viewer: PictureViewer | undefined;
  let [dueMs, count, isKeyWanted] = [world.nowMs, 0, true];
  const play = (ms: number): void =>
    world.advance(ms, (nowMs) => {
      for (const compound of publisher.rtcp.splice(0)) {
        rtcp.open(compound);
        while (rtcp.next()) isKeyWanted ||= rtcp.isPli;
      }
      if (nowMs >= dueMs) {
        dueMs += FRAME_MS;
        const key = isKeyWanted;
        isKeyWanted = false;
        count = key ? 0 : count + 1;
        const sizes = SIZES[codec].map((size) => size * scale * (key ? keyScale : 1));
        const picture = { key, sizes, temporal: PATTERN[count % PATTERN.length]! };
        const packets = codec === 'vp9' ? camera.vp9Picture(picture) : camera.av1Picture(picture);
        for (const packet of packets) publisher.send(packet);
      }
      viewer?.tick(nowMs);
    });
  play(3_000);
  const slot = videoSlot('cam', { codec: { ...CODECS[codec], payloadType: 120, rtxPayloadType: 121 } });
  const peer = world.join('sub', { outbound: [slot] });
  viewer = new PictureViewer(peer, { capacityBps, queueMs, nowMs: world.nowMs, read: READERS[codec] });
  play(seconds * 1000);
  return viewer;
}

/** With how much longer key pictures than others a queue is tried. */
const QUEUES = {
  vp9: [
    { keyScale: 3, queueMs: 150 },
    { keyScale: 5, queueMs: 150 },
    { keyScale: 5, queueMs: 300 },
    { keyScale: 8, queueMs: 300 },
    { keyScale: 8, queueMs: 600 },
  ],
  av1: [
    { keyScale: 5, queueMs: 150 },
    { keyScale: 8, queueMs: 300 },
  ],
};
const CASES = (['vp9', 'av1'] as const).flatMap((codec) =>
  [0.6, 1].flatMap((scale) => QUEUES[codec].map((queue) => ({ codec, scale, ...queue }))),
);

describe('a newcomer', () => {
  test.each(CASES)(
    'sees $codec of size $scale within 1 s at 300 kbit/s, without a pause of 500 ms in 60 s (key pictures: $keyScale, queue: $queueMs ms)',
    (one) => {
      const viewer = watch({ ...one, capacityBps: 300_000, seconds: 60 });
      expect(viewer.firstMs).toBeLessThan(1_000);
      expect(viewer.longestPauseMs).toBeLessThan(500);
    },
  );

  test.each([
    { codec: 'vp9', size: 2 },
    { codec: 'av1', size: 1 },
  ] as const)('sees $codec at once on a wide link, and all of it some 1.2 s after that', ({ codec, size }) => {
    const viewer = watch({ codec, capacityBps: 20_000_000, queueMs: 300, scale: 1, keyScale: 5, seconds: 3 });
    expect(viewer.firstMs).toBeLessThan(100);
    expect(viewer.sizeMs.get(size)).toBeLessThan(1_300);
  });
});
