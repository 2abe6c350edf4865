// What a standby does with rooms that it cannot open.
import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { defaultRoomConfig } from '../room-service.js';
import type { RoomRef } from '../room/room-messages.js';
import type { ClusterPort } from './cluster-port.js';
import { Directory, type OwnedRoom } from './directory.js';
import { Takeovers } from './takeovers.js';
import { Witness } from './witness.js';

const REF = { path: '/rooms/kitchen', key: '1' } as RoomRef;
const CONFIG = { ...defaultRoomConfig, roomId: 'kitchen' };
const UPDATE = { node: 'owner', createdAt: 1, epoch: 2, members: ['owner', 'self'] };
const ROOM = { snapshot: { config: CONFIG, peers: [], invitations: [], peerlessMs: null }, chars: 100 };

/** Node `self`, a standby of `owner`. `here`: when the room that has the id here was created. `voters` refuse. */
function start({
  here = undefined as number | undefined,
  voters = [] as string[],
  fails = (): Error | undefined => undefined,
  successor = undefined as object | undefined,
} = {}) {
  const clock = new ManualClock();
  const owned: OwnedRoom[] = [];
  const lines: string[] = [];
  const state = { here, fails };
  const directory = new Directory('self', clock);
  let attempts = 0;
  let campaigns = 0;
  const note = (event: string): void => void lines.push(event);
  const takeovers = new Takeovers({
    port: {
      self: 'self',
      members: () => (successor === undefined ? voters : ['owner']),
      speaks: () => true,
      call: async () => {
        campaigns += 1;
        return successor ?? { granted: false };
      },
    } as unknown as ClusterPort,
    host: {
      draining: false,
      roomRef: () => (state.here === undefined ? undefined : REF),
      relayRef: () => undefined,
      createdAt: () => state.here,
      holdRoom: async () => {
        attempts += 1;
        const error = state.fails();
        if (error !== undefined) throw error;
        return { open: async () => REF, drop: async () => undefined };
      },
    },
    directory,
    witness: () => new Witness(clock.now()),
    creationOf: () => 2,
    own: (room) => void owned.push(room),
    log: { ...silentLog, warn: note, error: note },
    clock,
    awake: clock,
  });
  const advance = (ms: number): Promise<void> =>
    clock.advanceAsync(ms, () => new Promise((resolve) => setImmediate(resolve)));

  return {
    takeovers,
    directory,
    owned,
    lines,
    state,
    advance,
    attempts: () => attempts,
    campaigns: () => campaigns,
  };
}

test('refuses a room whose id another room here has', () => {
  const { takeovers } = start({ here: 5 });
  expect(takeovers.keep(UPDATE, ROOM)).toEqual({ refused: 'self has a room with this id' });
  expect(takeovers.has('kitchen')).toBe(false);
});

test('forgets a room whose id another room here has taken since, and says so once', async () => {
  const { takeovers, lines, state, attempts, advance } = start();
  takeovers.keep(UPDATE, ROOM);
  state.here = 5;
  takeovers.gone('owner', 1);
  await advance(60_000);
  expect(attempts()).toBe(0);
  expect(takeovers.has('kitchen')).toBe(false);
  expect(lines).toEqual(['room.not_taken_over']);
});

test('forgets a room that has moved here without a word', async () => {
  const { takeovers, lines, state, advance } = start();
  takeovers.keep(UPDATE, ROOM);
  state.here = UPDATE.createdAt;
  takeovers.gone('owner', 1);
  await advance(1_000);
  expect(takeovers.has('kitchen')).toBe(false);
  expect(lines).toEqual([]);
});

test('tries a room that it cannot open again ever more rarely, and logs each cause once a minute', async () => {
  const { takeovers, lines, attempts, advance } = start({ fails: () => new Error('no ports left') });
  takeovers.keep(UPDATE, ROOM);
  takeovers.gone('owner', 1);
  await advance(59_000);
  expect(attempts()).toBe(6);
  expect(lines).toEqual(['room.take_over_failed']);
});

test('takes a room over once it can be opened', async () => {
  const { takeovers, owned, state, advance } = start({ fails: () => new Error('no ports left') });
  takeovers.keep(UPDATE, ROOM);
  takeovers.gone('owner', 1);
  await advance(500);
  state.fails = () => undefined;
  await advance(1_000);
  expect(owned).toEqual([{ roomId: 'kitchen', createdAt: 1, epoch: 2, ref: REF }]);
});

test('leaves a room alone that has another owner, as the next process of its owner says', async () => {
  const { takeovers, owned, advance } = start({ successor: { granted: true, denied: ['kitchen'] } });
  takeovers.keep(UPDATE, ROOM);
  takeovers.gone('owner', 1);
  await advance(1_000);
  expect(owned).toEqual([]);
  expect(takeovers.has('kitchen')).toBe(false);
});

test('the next process of an owner denies only rooms that have another owner', () => {
  const { takeovers, directory } = start();
  const rooms = [{ roomId: 'kitchen', createdAt: 1, epoch: 2 }];
  const campaign = { node: 'standby', owner: 'self', creation: 1, took: false, rooms };
  directory.add('self', { roomId: 'hall', createdAt: 3, ref: REF });
  expect(takeovers.vote(campaign)).toEqual({ granted: true, denied: [] });
  directory.add('other', { roomId: 'kitchen', createdAt: 1, epoch: 3, ref: REF });
  expect(takeovers.vote(campaign)).toEqual({ granted: true, denied: ['kitchen'] });
});

test('asks for votes ever more rarely while it gets too few, and says so once', async () => {
  const { takeovers, lines, campaigns, advance } = start({ voters: ['other'] });
  takeovers.keep(UPDATE, ROOM);
  takeovers.gone('owner', 1);
  await advance(60_000);
  expect(campaigns()).toBeLessThan(80);
  expect(campaigns()).toBeGreaterThan(60);
  expect(lines).toEqual(['node.votes_missing']);
});
