// The most that one participant can make a media worker hold, measured at the limits of docs/reference/limits.md.
import { expect, test } from '@jest/globals';
import { heldBytes } from '@bloom/time/testing';
import { MemoryWorld } from '../testing/memory-port.js';
import { inboundSimulcast, SyntheticSource } from '../testing/synthetic-media.js';

const MIB = 1024 * 1024;
const TRACKS = 32;
const RIDS = ['l', 'm', 'h'];
/** More than fits into a store of 1,024 packets or 640 KiB. */
const FRAMES = 60;

test('holds at most 24 MiB in the stores of 32 tracks with three layers each', () => {
  const { held, bytes } = heldBytes(() => {
    const world = new MemoryWorld();
    const inbound = Array.from({ length: TRACKS }, (_, i) => inboundSimulcast(`t${i}`, { mid: String(i) }));
    const publisher = world.join('pub', { inbound });
    for (let mid = 0; mid < TRACKS; mid += 1) {
      for (const [layer, rid] of RIDS.entries()) {
        const source = new SyntheticSource({ ssrc: 1_000 + mid * 10 + layer, payloadType: 96, mid: String(mid), rid });
        for (let frame = 0; frame < FRAMES; frame += 1) {
          for (const packet of source.vp8Frame({ key: frame === 0, packets: 12, size: 1_100 })) publisher.send(packet);
        }
      }
    }
    return world;
  });
  const { tracks, storeBytes } = held.room.transport('pub')!.inbound;
  const streams = [...tracks.values()].flatMap((track) => track.streams).filter((stream) => stream !== undefined);
  expect(streams).toHaveLength(TRACKS * RIDS.length);
  process.stdout.write(`a participant's packet stores: ${(bytes / MIB).toFixed(1)} MiB\n`);
  expect(storeBytes).toBeLessThanOrEqual(24 * MIB);
  // Indices, statistics and the test's own objects.
  expect(bytes).toBeLessThan(storeBytes + 16 * MIB);
});
