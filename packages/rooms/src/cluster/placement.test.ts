import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { defaultRoomConfig } from '../room-service.js';
import type { ClusterPort } from './cluster-port.js';
import { Placement } from './placement.js';
import { SilentMembers } from './silent-members.js';

test('whoever asked has an answer within 4 s, and no room comes to be after that', async () => {
  const clock = new ManualClock();
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
        if (timeoutMs < tookMs) clock.setTimeout(() => reject(new Error('too late')), timeoutMs);
        else clock.setTimeout(() => resolve(answer(type)), tookMs);
      }),
    cast: (_node: string, { type }: { type: string }) => void said.push(type),
  } as unknown as ClusterPort;
  const silentMembers = new SilentMembers({ members: port.members, ping: async () => 'pong', log: silentLog, clock });
  const placement = new Placement({ port, silentMembers, log: silentLog, clock });
  let outcome: unknown;
  void placement.create({ ...defaultRoomConfig, roomId: null }).catch((error: unknown) => (outcome = error));
  const advance = (ms: number) => clock.advanceAsync(ms, () => new Promise((resolve) => setImmediate(resolve)));
  while (clock.now() < 4_000) await advance(10);
  expect(outcome).toMatchObject({ code: 'NO_NODE' });
  await advance(10_000);
  expect(said.slice(-2)).toEqual(['create', 'withdraw']);
});
