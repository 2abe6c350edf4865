import { expect } from '@jest/globals';
import { apiToken } from '../../harness/bloom-node.js';
import type { Attack } from '../harness/attack.js';
import { subscribe } from '../harness/backend.js';
import { slowReader } from '../harness/slow-reader.js';

const TRACKS = 6;
const TRACK_METADATA_LENGTH = 900_000;
/** A link that still carries a call. */
const NARROW_BYTES_PER_S = 20e6 / 8;
const FLOOD_MS = 4_000;
/** Largest response of `GET /room/:id` with one hostile participant in the room. */
const MAX_ROOM_LENGTH = 2 * 1024 * 1024;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const metadata: readonly Attack[] = [
  {
    title: 'metadata of 900,000 characters on each of six tracks, for every newcomer',
    async run(ground) {
      const intruder = await ground.intruder();
      const lines = Array.from({ length: TRACKS }, () => ({ kind: 'audio', direction: 'sendonly' }) as const);
      const trackIds = new Map(lines.map((_, mid) => [mid, intruder.trackId()]));
      await intruder.negotiate({ lines, trackIds });
      for (const trackId of trackIds.values()) {
        intruder.send('updateTrackMetadata', { trackId, trackMetadata: 'm'.repeat(TRACK_METADATA_LENGTH) });
        await intruder.flushed();
      }
      await pause(500);
      const newcomer = await ground.bystander();
      expect(newcomer.id).not.toBe('');
      const { status, body } = await ground.api('GET', `/room/${ground.room}`);
      expect(status).toBe(200);
      expect(JSON.stringify(body).length).toBeLessThan(MAX_ROOM_LENGTH);
    },
  },
  {
    title: 'metadata for thousands of tracks in the offer itself',
    async run(ground) {
      const intruder = await ground.intruder('p'.repeat(60_000));
      const trackId = intruder.trackId();
      const many = Object.fromEntries(
        Array.from({ length: 5_000 }, (_, at) => [`${intruder.id}:${at}`, 'x'.repeat(100)]),
      );
      await intruder.negotiate({
        lines: [{ kind: 'audio', direction: 'sendonly' }],
        trackIds: new Map([[0, trackId]]),
        metadata: { ...many, [trackId]: 'm'.repeat(300_000) },
      });
      const newcomer = await ground.bystander();
      expect(newcomer.id).not.toBe('');
      const { body } = await ground.api('GET', `/room/${ground.room}`);
      expect(JSON.stringify(body).length).toBeLessThan(MAX_ROOM_LENGTH);
    },
  },
  {
    title: 'a flood of metadata for everybody, while others have a link of 20 Mbit/s',
    async run(ground) {
      const bystander = await ground.bystander(NARROW_BYTES_PER_S);
      const proxy = await slowReader(ground.host, NARROW_BYTES_PER_S);
      const backend = await subscribe(`http://${proxy.host}`, apiToken);
      ground.after(async () => {
        backend.terminate();
        await proxy.close();
      });
      const intruder = await ground.intruder();
      const until = performance.now() + FLOOD_MS;
      for (let round = 0; performance.now() < until && intruder.isOpen; round += 1) {
        intruder.send('updateEndpointMetadata', { metadata: (round % 2 === 0 ? 'a' : 'b').repeat(1_000_000) });
        await intruder.flushed();
        await pause(20);
      }
      await pause(1_000);
      expect(bystander.closeReason).toBeUndefined();
      expect(backend.readyState).toBe(backend.OPEN);
    },
  },
  {
    title: 'a flood of small metadata changes, as fast as the socket accepts them',
    async run(ground) {
      const bystander = await ground.bystander(NARROW_BYTES_PER_S);
      const intruder = await ground.intruder();
      const until = performance.now() + FLOOD_MS;
      for (let round = 0; performance.now() < until && intruder.isOpen; round += 1) {
        for (let at = 0; at < 50; at += 1)
          intruder.send('updateEndpointMetadata', { metadata: { round, at, filler: 'f'.repeat(2_000) } });
        await intruder.flushed();
        await pause(5);
      }
      await pause(500);
      expect(bystander.closeReason).toBeUndefined();
    },
  },
];
