// VP8 that no encoder makes, in a room without a video codec that is streamed and recorded.
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { RtpHeader } from 'werift';
import type { Attack, Ground } from '../harness/attack.js';
import { ssrcOf } from '../harness/offer.js';
import { noStore } from '../../recordings/parts.js';

const ATTACK_MS = 6_000;
const SEGMENT_MS = 30_000;
const PICTURE_MS = 33;
const PACKET_BYTES = 1_100;
/** Beyond the limits of decoders, at them, and below any use. */
const SIZES = [
  [16, 16],
  [1_920, 1_080],
  [1, 1],
  [16_383, 16_383],
  [0, 360],
  [8_688, 16],
  [640, 360],
] as const;

/** A key frame with a valid header and nothing valid after it, or a frame without any. */
function frame({ random }: Ground, isKey: boolean): Buffer {
  const bytes = Buffer.alloc(10 + random.below(6_000));
  for (let i = 0; i < bytes.length; i++) bytes[i] = random.below(256);
  bytes[0] = isKey ? bytes[0]! & 0xfe : bytes[0]! | 1;
  if (!isKey) return bytes;
  const [width, height] = random.pick(SIZES);
  bytes.set([0x9d, 0x01, 0x2a], 3);
  bytes.writeUInt16LE(width, 6);
  bytes.writeUInt16LE(height, 8);

  return bytes;
}

/** Publishes pictures for a while, with gaps. */
async function publish(ground: Ground): Promise<void> {
  const intruder = await ground.intruder();
  await intruder.negotiate({
    lines: [{ kind: 'video', direction: 'sendonly' }],
    trackIds: new Map([[0, intruder.trackId()]]),
  });
  const wire = await intruder.connectMedia();
  let sequenceNumber = 0;
  const until = performance.now() + ATTACK_MS;
  for (let picture = 0; performance.now() < until; picture++) {
    const data = frame(ground, picture % 3 === 0);
    for (let at = 0; at < data.length; at += PACKET_BYTES) {
      sequenceNumber += ground.random.below(200) === 0 ? 2 : 1;
      const payload = Buffer.concat([Buffer.of(at === 0 ? 0x10 : 0), data.subarray(at, at + PACKET_BYTES)]);
      const header = new RtpHeader({
        version: 2,
        payloadType: 96,
        sequenceNumber: sequenceNumber & 0xffff,
        timestamp: picture * PICTURE_MS * 90,
        ssrc: ssrcOf(0),
        marker: at + PACKET_BYTES >= data.length,
      });
      wire.sendPacket(wire.srtp?.encrypt(payload, header) ?? Buffer.alloc(0));
    }
    await pause(PICTURE_MS);
  }
}

async function segments({ url, room }: Ground): Promise<number> {
  const answer = await fetch(`${url}/hls/${room}/main.m3u8`);
  if (answer.status !== 200) return 0;
  const text = await answer.text();

  return Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1] ?? 0) + (text.match(/#EXTINF/g)?.length ?? 0);
}

/** Waits for a further segment, which a busy machine composes slowly. */
async function segmentAfter(ground: Ground, count: number): Promise<void> {
  const until = performance.now() + SEGMENT_MS;
  while ((await segments(ground)) <= count) {
    if (performance.now() > until) throw new Error(`the stream has no segment after ${count}`);
    await pause(200);
  }
}

/** These attacks need a node that serves media files without a token. */
export const pictures: readonly Attack[] = [
  {
    title: 'pictures of VP8 that are garbage, and change their size with each key frame, in a stream and a recording',
    async run(ground) {
      const { room } = ground;
      const s3 = { accessKeyId: 'id', secretAccessKey: 'key', region: 'eu', bucket: 'calls', endpoint: noStore };
      for (const [type, options] of [
        ['hls', { lowLatency: true, anyCodec: true }],
        ['recording', { anyCodec: true, credentials: s3 }],
      ] as const) {
        const { status, body } = await ground.api('POST', `/room/${room}/component`, { type, options });
        expect(status).toBe(201);
        const { id } = (body as { data: { id: string } }).data;
        ground.after(() => ground.api('DELETE', `/room/${room}/component/${id}`).then(() => undefined));
      }
      await segmentAfter(ground, 0);
      await publish(ground);
      await segmentAfter(ground, await segments(ground));
      const { body } = await ground.api('GET', `/room/${room}`);
      const { components } = (body as { data: { components: { type: string }[] } }).data;
      expect(components.map(({ type }) => type).toSorted()).toEqual(['hls', 'recording']);
    },
  },
];
