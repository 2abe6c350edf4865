// SIGTERM with JF_DRAIN_MODE: what becomes of the rooms of a node that closes.
import { expect, jest, test } from '@jest/globals';
import { HlsService } from '@bloom/components';
import { createLogger } from '@bloom/log';
import { until } from '@bloom/time/testing';
import { startTestNode } from './testing/test-node.js';
import { startPair, type TestPair } from './testing/test-pair.js';

/** Longer than any machine takes, and shorter than a node that waits for its drain timeout. */
const LIMIT_MS = 120_000;

async function withPair(env: Record<string, string>, use: (pair: TestPair) => Promise<void>): Promise<void> {
  const pair = await startPair(env);
  try {
    await use(pair);
  } finally {
    await pair.dispose();
  }
}

test(
  'moves rooms to another member, whose people hear 1012, and then ends without waiting',
  () =>
    withPair({ JF_DRAIN_MODE: 'move', JF_DRAIN_TIMEOUT: '3600' }, async ({ closes, stays }) => {
      const roomId = await closes.createRoom();
      const { token } = await closes.addPeer(roomId);
      const client = await closes.peerSocket();
      await client.authenticate(token);
      stays.rooms.undrain('starting');
      const server = await stays.serverSocket();

      await closes.close();
      expect(await client.closed).toBe('1012 Room moved');
      expect(stays.rooms.view(roomId)?.peers).toHaveLength(1);
      // Notifications arrive in order, so none came of the move.
      await stays.createRoom();
      expect(await server.untilNews('roomCreated')).toEqual(['roomCreated']);
    }),
  LIMIT_MS,
);

test(
  'tells its streams which rooms have moved, and lets other nodes copy their files before it leaves them',
  () =>
    withPair({ JF_DRAIN_MODE: 'move', JF_DRAIN_TIMEOUT: '3600' }, async ({ closes, stays }) => {
      const moved = jest.spyOn(HlsService.prototype, 'roomMovedAway');
      let reachable: readonly string[] | undefined;
      const copied = jest.spyOn(HlsService.prototype, 'copied').mockImplementationOnce(async () => {
        reachable = closes.cluster?.node.nodes('members');
        expect(closes.rooms.load().rooms).toBe(0);
      });
      const roomId = await closes.createRoom();
      stays.rooms.undrain('starting');
      await closes.close();
      expect(moved).toHaveBeenCalledWith(roomId);
      expect(reachable).toEqual(['stays@127.0.0.1']);
      copied.mockRestore();
      moved.mockRestore();
    }),
  LIMIT_MS,
);

test(
  'waits for rooms that no other member takes, and says why they stay',
  () =>
    withPair({ JF_DRAIN_MODE: 'move', JF_DRAIN_TIMEOUT: '3600' }, async ({ closes, stays, lines }) => {
      const roomId = await closes.createRoom();
      const server = await stays.serverSocket();
      const closed = closes.close();
      await until(() => lines.join().includes('no other node can take it'), LIMIT_MS);
      expect(server.news).toEqual([]);
      await closes.rooms.deleteRoom(roomId);
      await closed;
      await server.untilNews('roomDeleted');
    }),
  LIMIT_MS,
);

test(
  'ends rooms at once by default, also in a cluster',
  () =>
    withPair({}, async ({ closes, stays }) => {
      const roomId = await closes.createRoom();
      stays.rooms.undrain('starting');
      const server = await stays.serverSocket();
      await closes.close();
      await server.untilNews('roomDeleted');
      expect(stays.rooms.view(roomId)).toBeUndefined();
    }),
  LIMIT_MS,
);

test('ends the rooms of a node without a cluster at once, and says why they do not move', async () => {
  const lines: string[] = [];
  const log = createLogger({ sink: (line) => lines.push(line) });
  const alone = await startTestNode({ JF_DRAIN_MODE: 'move' }, { log });
  await alone.createRoom();
  await alone.dispose();
  expect(lines.join()).toContain('node.moves_refused');
  expect(lines.join()).not.toContain('node.draining');
});
