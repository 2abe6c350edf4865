import { setTimeout as pause } from 'node:timers/promises';
import type { Attack } from '../harness/attack.js';
import type { Intruder } from '../harness/intruder.js';

const MIB = 1024 * 1024;
/**
 * Frames of 1 MiB, each counted as 256 events: more than the 1,000 that a client may send at once. Later frames only
 * wait.
 */
const LARGE_FRAMES = 6;

interface Flood {
  count: number;
  batch?: number;
}

/** Sends `count` events, at most `batch` between two pauses, so that the flood leaves CPU to others. */
async function flood(intruder: Intruder, { count, batch = 200 }: Flood, send: (at: number) => void): Promise<void> {
  for (let at = 0; at < count && intruder.isOpen; at += 1) {
    send(at);
    if (at % batch !== batch - 1) continue;
    await intruder.flushed();
    await pause(5);
  }
  await intruder.flushed();
}

const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);
/** A media event (field 3) whose text (field 1) is these bytes. */
const wrapped = (text: Buffer): Buffer => {
  const inner = Buffer.concat([Buffer.from([0x0a, ...varint(text.length)]), text]);
  return Buffer.concat([Buffer.from([0x1a, ...varint(inner.length)]), inner]);
};

/** Frames that cost more to decode than to send. */
const PROTOBUF_BOMBS: readonly (() => Buffer)[] = [
  () => Buffer.alloc(MIB, Buffer.from([0x78, 0])),
  () => Buffer.alloc(MIB, Buffer.from([0x7a, 0])),
  () => Buffer.alloc(MIB, 0x0b),
  () => Buffer.alloc(MIB, Buffer.from([0x1a, 0])),
  () => Buffer.alloc(MIB, 0xff),
  () => Buffer.from([0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
  () => wrapped(Buffer.alloc(MIB - 16, 0xff)),
  () => wrapped(Buffer.from('"'.padEnd(MIB - 16, '\\'))),
];

const JSON_BOMBS: readonly (() => string)[] = [
  () => '['.repeat(MIB - 32),
  () => '{"a":'.repeat(200_000),
  () => `{"type":"connect","data":{"metadata":${'['.repeat(1_000)}${']'.repeat(1_000)}}}`,
  () =>
    `{"type":"updateEndpointMetadata","data":{"metadata":{${Array.from({ length: 80_000 }, (_, at) => `"k${at}":0`).join()}}}}`,
  () => `{"type":"updateEndpointMetadata","data":{"metadata":[${'0,'.repeat(500_000)}0]}}`,
  () => `{"type":"custom","data":`.repeat(40) + 'null' + '}'.repeat(40),
  () => `{"type":"${'t'.repeat(MIB - 64)}"}`,
  () =>
    '{"type":"custom","data":{"type":"sdpOffer","data":{"sdpOffer":{"type":"offer","sdp":""},"trackIdToTrackMetadata":{"__proto__":{"x":1}},"midToTrackId":{"__proto__":"x"}}}}',
  () => 'null',
  () => '0'.repeat(MIB - 32),
  () => `1e${'9'.repeat(100_000)}`,
];

export const events: readonly Attack[] = [
  {
    title: 'thousands of media events of all types, meaningful and not',
    weight: 3,
    async run(ground) {
      const intruder = await ground.intruder();
      const others = ['', 'x', intruder.trackId(), '__proto__', 'x'.repeat(1_024), 5, null];
      const types = [
        'connect',
        'updateTrackMetadata',
        'disableTrackEncoding',
        'enableTrackEncoding',
        'muteTrack',
        'unmuteTrack',
        'renegotiateTracks',
        'candidate',
        'setTargetTrackVariant',
        'trackVariantBitrates',
        'prioritizeTrack',
        'unprioritizeTrack',
        'preferedVideoSizes',
        'nonsense',
      ];
      for (const type of types) {
        await flood(intruder, { count: 300 }, () => {
          const trackId = ground.random.pick(others);
          const data = { trackId, encoding: 'h', variant: 'h', variantBitrates: 1, candidate: '', sdpMLineIndex: -1 };
          if (ground.random.below(2) === 0) intruder.send(type, data);
          else intruder.custom(type, data);
        });
      }
    },
  },
  {
    title: 'encodings of a track switched on and off 20,000 times',
    async run(ground) {
      const intruder = await ground.intruder();
      const trackId = intruder.trackId();
      const extra = ['a=rid:l send', 'a=rid:m send', 'a=rid:h send', 'a=simulcast:send l;m;h'];
      await intruder.negotiate({
        lines: [{ kind: 'video', direction: 'sendonly', extra }],
        trackIds: new Map([[0, trackId]]),
      });
      await flood(intruder, { count: 20_000 }, (at) => {
        intruder.send(at % 2 === 0 ? 'disableTrackEncoding' : 'enableTrackEncoding', { trackId, encoding: 'h' });
      });
    },
  },
  {
    title: 'joining and leaving 1,000 times on one socket',
    async run(ground) {
      const intruder = await ground.intruder();
      await flood(intruder, { count: 1_000, batch: 50 }, (at) => {
        intruder.send('disconnect');
        intruder.send('connect', { metadata: at });
      });
      await pause(500);
    },
  },
  {
    title: 'frames that cost more to decode than to send',
    weight: 2,
    async run(ground) {
      for (const bomb of PROTOBUF_BOMBS) {
        const intruder = await ground.intruder();
        const bytes = bomb();
        await flood(intruder, { count: LARGE_FRAMES, batch: 2 }, () => intruder.frame(bytes));
      }
    },
  },
  {
    title: 'JSON that costs more to read than to write',
    maxGrowthMb: 200,
    weight: 2,
    async run(ground) {
      for (const bomb of JSON_BOMBS) {
        const intruder = await ground.intruder();
        const text = bomb();
        await flood(intruder, { count: LARGE_FRAMES, batch: 2 }, () => intruder.text(text));
      }
    },
  },
  {
    title: 'text frames, empty frames and noise',
    async run(ground) {
      for (let round = 0; round < 10; round += 1) {
        const intruder = await ground.intruder();
        await flood(intruder, { count: 300 }, () => {
          if (ground.random.below(3) === 0) intruder.socket.send('text');
          else intruder.frame(ground.random.bytes(ground.random.below(200)));
        });
      }
    },
  },
];
