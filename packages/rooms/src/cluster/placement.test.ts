import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { systemClock } from '@bloom/time';
import { defaultRoomConfig } from '../room-service.js';
import type { ClusterPort } from './cluster-port.js';
import { Placement } from './placement.js';
import { SilentMembers } from './silent-members.js';

test('whoever asked has an answer within 4 s, and no room comes to be after that', async () => {
  const said: string[] = [];
  let reservations = 0;
  // Everybody answers just in time, and whoever is chosen first has become busier meanwhile.
  const answer = (type: string): unknown => {
    if (type === 'load') return { forwardedTracks: 0, rooms: 0, draining: false };
    if (type === 'create') return { ok: true, value: { room: { id: 'r' }, address: 'a:80' } };
    reservations += 1;
    return reservations < 3 ? { refused: { forwardedTracks: 1, rooms: 0, draining: false } } : { granted: 'it' };
  };
  const port = {
    self: 'a',
    members: () => ['b', 'c'],
    call: (_node: string, { type }: { type: string }, { timeoutMs }: { timeoutMs: number }) =>
      new Promise((resolve, reject) => {
        said.push(type);
        const tookMs = 850;
        if (timeoutMs < tookMs) setTimeout(() => reject(new Error('too late')), timeoutMs);
        else setTimeout(() => resolve(answer(type)), tookMs);
      }),
    cast: (_node: string, { type }: { type: string }) => void said.push(type),
  } as unknown as ClusterPort;
  const silentMembers = new SilentMembers({ members: port.members, ping: async () => 'pong', log: silentLog });
  const placement = new Placement({ port, silentMembers, log: silentLog, clock: systemClock });
  const from = Date.now();
  await expect(placement.create({ ...defaultRoomConfig, roomId: null })).rejects.toMatchObject({ code: 'NO_NODE' });
  expect(Date.now() - from).toBeLessThan(5_000);
  expect(said.slice(-2)).toEqual(['create', 'withdraw']);
});
