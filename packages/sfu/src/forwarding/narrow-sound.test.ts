import { beforeEach, describe, expect, test } from '@jest/globals';
import { MemoryWorld } from '../testing/memory-port.js';
import { NarrowClient } from '../testing/narrow-client.js';
import { audioSlot, inboundAudio, SyntheticSource } from '../testing/synthetic-media.js';

const TALKERS = 8;
const FRAME_MS = 20;
/** 40 kbit/s of Opus; the eight of them take 400 kbit/s with their headers. */
const FRAME_BYTES = 100;
const CODEC = { name: 'opus', payloadType: 111, clockRate: 48_000, feedback: ['transport-cc'] } as const;

let world: MemoryWorld;
let link: NarrowClient;
let talk: (seconds: number) => void;

beforeEach(() => {
  world = new MemoryWorld();
  const talkers = Array.from({ length: TALKERS }, (_, i) => ({
    peer: world.join(`pub-${i}`, { inbound: [inboundAudio(`mic-${i}`)] }),
    source: new SyntheticSource({ ssrc: 0x100 + i, payloadType: 111, mid: '0' }),
  }));
  const outbound = talkers.map((_, i) =>
    audioSlot(`mic-${i}`, {
      mid: `${i}`,
      ssrc: 0xbbbb0001 + 2 * i,
      rtxSsrc: 0xbbbb0002 + 2 * i,
      codec: { ...CODEC, redPayloadType: 63 },
    }),
  );
  link = new NarrowClient(world.join('sub', { outbound }), 500_000);
  let due = world.nowMs;
  talk = (seconds) =>
    world.advance(seconds * 1000, (nowMs) => {
      if (nowMs >= due) {
        due += FRAME_MS;
        const sound = Buffer.alloc(FRAME_BYTES, 1);
        sound[0] = 31 << 3;
        for (const { peer, source } of talkers) {
          source.timestamp += FRAME_MS * 48;
          peer.send(source.packet(sound, false));
        }
      }
      link.tick(nowMs);
    });
});

/** Returns how many packets repeated others so far. */
function redundant(): number {
  const { outbound } = world.stats().transports.find(({ peerId }) => peerId === 'sub')!;
  return outbound.reduce((sum, slot) => sum + slot.redundant, 0);
}

describe('a listener with eight talkers who just fit through its link', () => {
  test('loses nothing 10 s after a dip of the link: redundancy must not fill it', () => {
    talk(10);
    expect(link.lost).toBe(0);
    link.capacityBps = 250_000;
    talk(3);
    link.capacityBps = 500_000;
    talk(10);
    link.lost = 0;
    link.worstDelayMs = 0;
    talk(60);
    expect(link.lost).toBe(0);
    expect(link.worstDelayMs).toBeLessThan(100);
  });

  test('loses little more because of redundancy when packets are also lost by chance', () => {
    talk(10);
    link.randomLoss = 0.2;
    talk(120);
    expect(link.lost / (120 * TALKERS * (1000 / FRAME_MS))).toBeLessThan(0.03);
  });
});

test('a listener with a wide link who loses every fifth packet gets nearly every packet with redundancy', () => {
  link.capacityBps = 20_000_000;
  talk(5);
  link.randomLoss = 0.2;
  talk(2);
  const before = redundant();
  talk(30);
  expect((redundant() - before) / (30 * TALKERS * (1000 / FRAME_MS))).toBeGreaterThan(0.99);
});
