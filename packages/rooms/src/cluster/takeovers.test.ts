// What a standby does with rooms that it cannot open.
import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { defaultRoomConfig, RoomError } from '../room-service.js';
import type { RoomRef } from '../room/room-messages.js';
import type { ClusterPort } from './cluster-port.js';
import { Directory, type OwnedRoom } from './directory.js';
import { Takeovers } from './takeovers.js';
import { Witness } from './witness.js';

const REF = { path: '/rooms/kitchen', key: '1' } as RoomRef;
const CONFIG = { ...defaultRoomConfig, roomId: 'kitchen' };
const MEMBERS = ['owner', 'self'].map((node) => ({ node, process: `${node} 1` }));
const UPDATE = { node: 'owner', process: 'owner 1', createdAt: 1, epoch: 2, members: MEMBERS };
const ROOM = { snapshot: { config: CONFIG, peers: [], invitations: [], peerlessMs: null }, chars: 100 };

/** Node `self`, a standby of `owner`. `here`: when the room that has the id here was created. `voters` refuse. */
function start({
  here = undefined as number | undefined,
  voters = [] as string[],
  fails = (): Error | undefined => undefined,
  successor = undefined as object | undefined,
  answer = { granted: false } as object,
} = {}) {
  const clock = new ManualClock();
  const owned: OwnedRoom[] = [];
  const lines: string[] = [];
  const state = { here, fails };
  const directory = new Directory('self', clock);
  const witness = new Witness('self 1', clock.now());
  const casts: string[] = [];
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
        return successor ?? answer;
      },
      cast: (node: string) => void casts.push(node),
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
    witness: () => witness,
    creationOf: () => 2,
    own: (room) => void owned.push(room),
    log: { ...silentLog, warn: note, error: note },
    clock,
    awake: clock,
  });
  const advance = (ms: number): Promise<void> =>
    clock.advanceAsync(ms, () => new Promise((resolve) => setImmediate(resolve)));

  return {
    clock,
    takeovers,
    witness,
    directory,
    owned,
    casts,
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

test('calls a room orphaned once its owner has no link, or has ended', async () => {
  const linked = start({ successor: { granted: false } });
  linked.takeovers.keep(UPDATE, ROOM);
  expect(linked.takeovers.isOrphaned('kitchen')).toBe(false);
  linked.takeovers.gone('owner', 1);
  expect(linked.takeovers.isOrphaned('kitchen')).toBe(true);
  expect(linked.takeovers.isOrphaned('cellar')).toBe(false);
  const lost = start();
  lost.takeovers.keep(UPDATE, ROOM);
  expect(lost.takeovers.isOrphaned('kitchen')).toBe(true);
  linked.takeovers.close();
  lost.takeovers.close();
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

test('logs no failure for a room whose id another room is being opened under here, and forgets it then', async () => {
  const { takeovers, lines, state, advance } = start({ fails: () => new RoomError('ROOM_EXISTS', 'it exists') });
  takeovers.keep(UPDATE, ROOM);
  takeovers.gone('owner', 1);
  await advance(500);
  state.here = 5;
  await advance(1_000);
  expect(takeovers.has('kitchen')).toBe(false);
  expect(lines).toEqual(['room.not_taken_over']);
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
  const { takeovers, owned, advance } = start({
    successor: { granted: true, process: 'owner 2', denied: ['kitchen'] },
  });
  takeovers.keep(UPDATE, ROOM);
  takeovers.gone('owner', 1);
  await advance(1_000);
  expect(owned).toEqual([]);
  expect(takeovers.has('kitchen')).toBe(false);
});

test('the next process of an owner denies only rooms that have another owner', () => {
  const { takeovers, directory } = start();
  const rooms = [{ roomId: 'kitchen', createdAt: 1, epoch: 2 }];
  const campaign = {
    node: 'standby',
    process: 'standby 1',
    owner: 'self',
    ownerProcess: 'self 0',
    creation: 1,
    took: false,
    rooms,
  };
  directory.add('self', { roomId: 'hall', createdAt: 3, ref: REF });
  expect(takeovers.vote(campaign)).toEqual({ granted: true, process: 'self 1', denied: [] });
  directory.add('other', { roomId: 'kitchen', createdAt: 1, epoch: 3, ref: REF });
  expect(takeovers.vote(campaign)).toEqual({ granted: true, process: 'self 1', denied: ['kitchen'] });
  expect(takeovers.vote({ ...campaign, ownerProcess: 'self 1' })).toEqual({ granted: false });
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

test('a vote against a former process of an owner does not fence the rooms of the next one', () => {
  const { takeovers, witness } = start();
  witness.pulse('owner', { process: 'owner 2', settled: [], revoked: [] }, 0);
  const rooms = [{ roomId: 'kitchen', createdAt: 1, epoch: 2 }];
  const standby = { node: 'standby', process: 'standby 1', owner: 'owner', creation: 1, took: false, rooms };
  expect(takeovers.vote({ ...standby, ownerProcess: 'owner 1' })).toMatchObject({ granted: true });
  expect(witness.pulse('owner', { process: 'owner 2', settled: [], revoked: [] }, 1).votes).toEqual([]);
});

/** Answers of two members, of which `x` has started again if `process` says so. */
async function asked(process: string, denied: string[] = []): Promise<OwnedRoom[]> {
  const { takeovers, owned, advance } = start({ voters: ['x'], answer: { granted: true, process, denied } });
  takeovers.keep({ ...UPDATE, members: [...MEMBERS, { node: 'x', process: 'x 1' }] }, ROOM);
  takeovers.gone('owner', 1);
  await advance(1_000);

  return owned;
}

test('takes a room over with proof and the votes of over half of the other members', async () => {
  expect(await asked('x 1')).toHaveLength(1);
});

test('does not count the vote of a process that its owner did not know', async () => {
  expect(await asked('x 2')).toEqual([]);
});

test('tells a former owner every 5 s that a room has ended here, until it has heard', async () => {
  const voters: string[] = [];
  const { takeovers, owned, directory, casts, advance } = start({ voters });
  takeovers.keep(UPDATE, ROOM);
  takeovers.gone('owner', 1);
  await advance(1_000);
  expect(owned).toHaveLength(1);
  voters.push('owner');
  directory.add('owner', { roomId: 'kitchen', createdAt: 1, epoch: 1, ref: REF });
  await advance(10_000);
  // The room and its end.
  expect(casts).toEqual(['owner', 'owner', 'owner', 'owner']);
  directory.remove('owner', 'kitchen');
  await advance(10_000);
  expect(casts).toHaveLength(4);
});

/** A room whose takeover lacks the vote of `x` for ever: that one has started again together with the owner. */
function startDoomed(): ReturnType<typeof start> {
  const node = start({ voters: ['x'], answer: { granted: true, process: 'x 2', denied: [] } });
  node.takeovers.keep({ ...UPDATE, members: [...MEMBERS, { node: 'x', process: 'x 1' }] }, ROOM);
  node.takeovers.gone('owner', 1);

  return node;
}

const HALL = { ...ROOM, snapshot: { ...ROOM.snapshot, config: { ...CONFIG, roomId: 'hall' } } };
const NEXT = {
  ...UPDATE,
  process: 'owner 2',
  members: [
    { node: 'owner', process: 'owner 2' },
    { node: 'self', process: 'self 1' },
    { node: 'x', process: 'x 2' },
  ],
};

test('takes the rooms of a later process over although votes for those of an earlier one are missing', async () => {
  const { takeovers, owned, advance } = startDoomed();
  await advance(1_000);
  takeovers.keep(NEXT, HALL);
  takeovers.gone('owner', 2);
  await advance(1_000);
  expect(owned.map(({ roomId }) => roomId)).toEqual(['hall']);
});

test('takes the rooms of a silent process over although votes for those of an earlier one are missing', async () => {
  const { takeovers, owned, advance } = startDoomed();
  await advance(1_000);
  takeovers.keep(NEXT, HALL);
  await advance(10_000);
  expect(owned.map(({ roomId }) => roomId)).toEqual(['hall']);
});

test('forgets rooms of an ended process after a while, however long the next one of its name is heard', async () => {
  const { takeovers, witness, campaigns, advance } = startDoomed();
  for (let minute = 0; minute < 11; minute += 1) {
    witness.linked('owner', minute * 60_000);
    await advance(60_000);
  }
  expect(takeovers.has('kitchen')).toBe(false);
  const before = campaigns();
  await advance(60_000);
  expect(campaigns()).toBe(before);
});

test('counts no proof any more once the process that it spoke of is linked again', async () => {
  const { takeovers, owned, witness, clock, advance } = start({
    voters: ['x'],
    answer: { granted: true, process: 'x 1', denied: [] },
  });
  takeovers.keep(UPDATE, ROOM);
  takeovers.gone('owner', 1);
  // The answer of the other member is still under way.
  takeovers.alive('owner', 1);
  witness.linked('owner', clock.now());
  await advance(1_000);
  expect(owned).toEqual([]);
  expect(takeovers.has('kitchen')).toBe(true);
});

test('denies former standbys that the owner has revoked, or that are earlier than this node as a standby', () => {
  const { takeovers, witness } = start();
  const campaign = {
    node: 'former',
    process: 'former 1',
    owner: 'owner',
    ownerProcess: 'owner 1',
    creation: null,
    took: false,
    rooms: [{ roomId: 'kitchen', createdAt: 1, epoch: 1 }],
  };
  const pulse = { process: 'owner 1', settled: [], revoked: [] };
  const vote = (): unknown => takeovers.vote(campaign);
  witness.pulse('owner', pulse, -10_000);
  expect(vote()).toEqual({ granted: true, process: 'self 1', denied: [] });
  takeovers.keep(UPDATE, ROOM);
  expect(vote()).toMatchObject({ denied: ['kitchen'] });
  takeovers.forget({ node: 'owner', roomId: 'kitchen', epoch: 2 });
  witness.pulse('owner', { ...pulse, revoked: [{ roomId: 'kitchen', createdAt: 1, epoch: 1 }] }, -10_000);
  expect(vote()).toMatchObject({ denied: ['kitchen'] });
});

test('denies the rooms of a process that has left in order', () => {
  const { takeovers, witness } = start();
  witness.pulse('owner', { process: 'owner 1', settled: [], revoked: [] }, -10_000);
  witness.left('owner');
  const rooms = [{ roomId: 'kitchen', createdAt: 1, epoch: 1 }];
  const campaign = { node: 'x', process: 'x 1', owner: 'owner', creation: null, took: false, rooms };
  expect(takeovers.vote({ ...campaign, ownerProcess: 'owner 1' })).toMatchObject({ denied: ['kitchen'] });
  expect(takeovers.vote({ ...campaign, ownerProcess: 'owner 2' })).toMatchObject({ denied: [] });
});
