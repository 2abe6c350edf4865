// What viewers see of a stream with several layers (SVC), and how soon.
import { describe, expect, test } from '@jest/globals';
import { payloadFormat, RtcpReader, RtpView } from '@bloom/rtp';
import { MemoryWorld, type SeenPacket } from '../testing/memory-port.js';
import { type PicturePart, PictureViewer } from '../testing/picture-viewer.js';
import { AV1, inboundVideo, SyntheticSource, videoSlot, VP9 } from '../testing/synthetic-media.js';

/** Temporal layers of successive pictures. */
const PATTERN = [0, 2, 1, 2];
/** Bytes of the spatial layers of a picture: at 30 pictures per second 120, 400 and 1,200, or 120 and 400 kbit/s. */
const SIZES = { vp9: [500, 1_670, 5_000], av1: [500, 1_670] };
/** The same of a key picture of Chromium at 960 x 540 and 15 pictures per second, and of its three temporal layers. */
const CHROMIUM = {
  key: [5_500, 18_800, 34_600],
  others: [
    [1_600, 3_200, 13_000],
    [550, 1_200, 10_000],
    [500, 1_100, 10_400],
  ],
};
/** The same of a calm picture, whose middle size does not fit 60 kbit/s. */
const CALM = {
  key: [390, 1_100, 1_700],
  others: [
    [150, 340, 750],
    [215, 340, 550],
    [250, 470, 520],
  ],
};
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
  readonly seconds: number;
  /** Time from one picture to the next, ms. */
  readonly pictureMs?: number;
  /** Pauses and losses before that do not count. */
  readonly settledAfterSeconds?: number;
  /** Returns the bytes of the spatial layers of a picture. `count`: pictures since the last key picture. */
  sizesOf(isKey: boolean, temporal: number, count: number): readonly number[];
}

/** Factors of all sizes, and of those of key pictures. */
const scaled =
  (codec: Codec, scale: number, keyScale: number): Case['sizesOf'] =>
  (isKey) =>
    SIZES[codec].map((size) => size * scale * (isKey ? keyScale : 1));

/** Lets somebody join a publisher of 3 s. */
function watch(given: Case): PictureViewer {
  const { codec, capacityBps, queueMs, seconds, pictureMs = 33, settledAfterSeconds = 0, sizesOf } = given;
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
        dueMs += pictureMs;
        const key = isKeyWanted;
        isKeyWanted = false;
        count = key ? 0 : count + 1;
        const temporal = PATTERN[count % PATTERN.length]!;
        const picture = { key, sizes: [...sizesOf(key, temporal, count)], temporal, elapsedMs: pictureMs };
        const packets = codec === 'vp9' ? camera.vp9Picture(picture) : camera.av1Picture(picture);
        for (const packet of packets) publisher.send(packet);
      }
      viewer?.tick(nowMs);
    });
  play(3_000);
  const slot = videoSlot('cam', { codec: { ...CODECS[codec], payloadType: 120, rtxPayloadType: 121 } });
  const peer = world.join('sub', { outbound: [slot] });
  viewer = new PictureViewer(peer, { capacityBps, queueMs, pictureMs, nowMs: world.nowMs, read: READERS[codec] });
  play(settledAfterSeconds * 1000);
  viewer.longestPauseMs = viewer.lost = 0;
  play((seconds - settledAfterSeconds) * 1000);
  return viewer;
}

/** With how much longer key pictures than others a queue is tried. */
const QUEUES = {
  vp9: [
    { keyScale: 3, queueMs: 150 },
    { keyScale: 5, queueMs: 150 },
    { keyScale: 5, queueMs: 300 },
    { keyScale: 8, queueMs: 150 },
    { keyScale: 8, queueMs: 300 },
    { keyScale: 8, queueMs: 600 },
  ],
  av1: [
    { keyScale: 5, queueMs: 150 },
    { keyScale: 8, queueMs: 150 },
    { keyScale: 8, queueMs: 300 },
  ],
};
const CASES = (['vp9', 'av1'] as const).flatMap((codec) =>
  [0.6, 1].flatMap((scale) => QUEUES[codec].map((queue) => ({ codec, scale, ...queue }))),
);

describe('a newcomer', () => {
  test.each(CASES)(
    'sees $codec of size $scale within 1 s at 300 kbit/s, without a pause of 500 ms in 60 s (key pictures: $keyScale, queue: $queueMs ms)',
    ({ codec, scale, keyScale, queueMs }) => {
      const sizesOf = scaled(codec, scale, keyScale);
      const viewer = watch({ codec, queueMs, sizesOf, capacityBps: 300_000, seconds: 60 });
      expect(viewer.firstMs).toBeLessThan(1_000);
      expect(viewer.longestPauseMs).toBeLessThan(1_000);
    },
  );

  test.each([150, 300, 600])('sees what Chromium encodes within 1 s at 300 kbit/s and a queue of %d ms', (queueMs) => {
    const sizesOf: Case['sizesOf'] = (isKey, temporal) => (isKey ? CHROMIUM.key : CHROMIUM.others[temporal]!);
    const viewer = watch({ codec: 'vp9', capacityBps: 300_000, queueMs, pictureMs: 66, sizesOf, seconds: 60 });
    expect(viewer.firstMs).toBeLessThan(1_000);
    expect(viewer.longestPauseMs).toBeLessThan(500);
  });

  test.each([
    { codec: 'vp9', size: 2 },
    { codec: 'av1', size: 1 },
  ] as const)('sees $codec at once on a wide link, and all of it some 1.2 s after that', ({ codec, size }) => {
    const sizesOf = scaled(codec, 1, 5);
    const viewer = watch({ codec, capacityBps: 20_000_000, queueMs: 300, sizesOf, seconds: 3 });
    expect(viewer.firstMs).toBeLessThan(100);
    expect(viewer.sizeMs.get(size)).toBeLessThan(1_300);
  });
});

describe('a viewer whose link carries the smaller sizes only', () => {
  test.each([
    { capacityBps: 30_000, most: 50 },
    { capacityBps: 45_000, most: 5 },
    { capacityBps: 60_000, most: 5 },
  ])('loses less than $most packets at $capacityBps bit/s, once that is known', ({ capacityBps, most }) => {
    const sizesOf: Case['sizesOf'] = (isKey, temporal) => (isKey ? CALM.key : CALM.others[temporal]!);
    const calm = { codec: 'vp9', queueMs: 300, pictureMs: 66, sizesOf } as const;
    const viewer = watch({ ...calm, capacityBps, seconds: 60, settledAfterSeconds: 15 });
    expect(viewer.lost).toBeLessThan(most);
    expect(viewer.longestPauseMs).toBeLessThan(1_000);
  });
});

describe('a viewer of an encoder that skips layers', () => {
  test.each([
    { layer: 2, capacityBps: 20_000_000 },
    { layer: 1, capacityBps: 500_000 },
  ])('sees all its pictures without layer $layer at $capacityBps bit/s', ({ layer, capacityBps }) => {
    const sizesOf: Case['sizesOf'] = (isKey, _temporal, count) =>
      SIZES.vp9.map((size, spatial) => (spatial === layer && count % 7 === 6 ? 0 : size * (isKey ? 3 : 0.6)));
    const viewer = watch({ codec: 'vp9', capacityBps, queueMs: 300, sizesOf, seconds: 8 });
    expect(viewer.longestPauseMs).toBeLessThan(500);
  });
});
