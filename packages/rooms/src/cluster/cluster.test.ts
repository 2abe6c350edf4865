import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test } from '@jest/globals';
import { fuzzRuns, ManualClock, until } from '@bloom/time/testing';
import fc from 'fast-check';
import { issuePeerToken } from '../peer/credentials.js';
import type { RoomRef } from '../room/room-messages.js';
import { defaultRoomConfig } from '../room-service.js';
import { TestCluster } from '../testing/index.js';
import { homesOf } from './claims.js';
import { Directory } from './directory.js';
import { rankByLoad, type LoadSample } from './load.js';
import { Reservations } from './reservations.js';

let cluster: TestCluster;
afterEach(() => cluster?.close());

/** Returns an id whose home among a, b and c is the given node. */
const namedFor = (home: string): string => {
  for (let i = 0; ; i += 1) if (homesOf(`room-${i}`, ['a', 'b', 'c'])[0] === home) return `room-${i}`;
};
const spread = () => cluster.nodes.map(({ host }) => host.views().length);
const create = (node: string, roomId: string | null = null) =>
  cluster.node(node).rooms.createRoom({ ...defaultRoomConfig, roomId });

describe('placement by load', () => {
  const sample = (node: string, [forwardedTracks, rooms]: readonly [number, number], draining = false): LoadSample => ({
    node,
    answeredInMs: 1,
    answer: { forwardedTracks, rooms, draining },
  });

  test('ranks by fewest forwarded tracks, then fewest rooms, then the node that received the request, then the lower name', () => {
    expect(rankByLoad([sample('a', [0, 3]), sample('b', [1, 1])], 'b').candidates).toEqual(['a', 'b']);
    expect(rankByLoad([sample('a', [0, 1]), sample('b', [0, 0])], 'a').candidates).toEqual(['b', 'a']);
    expect(rankByLoad([sample('c', [0, 0]), sample('a', [0, 0]), sample('b', [0, 0])], 'b').candidates).toEqual([
      'b',
      'a',
      'c',
    ]);
  });

  test('gives a verdict on every node', () => {
    const { verdicts } = rankByLoad(
      [
        sample('a', [5, 1]),
        sample('b', [2, 9]),
        sample('c', [2, 1]),
        sample('d', [0, 0], true),
        { node: 'e', answeredInMs: 1000, failure: 'silent' },
      ],
      'a',
    );
    expect([...verdicts]).toEqual([
      ['d', 'draining'],
      ['e', 'silent'],
      ['c', 'chosen'],
      ['b', 'more rooms'],
      ['a', 'more tracks'],
    ]);
  });
});

test('members with the same view agree on the homes of an id, and a leaving member moves only its own ids', () => {
  const members = ['a@h', 'b@h', 'c@h', 'd@h', 'e@h'];
  const counts = new Map<string, number>();
  for (let i = 0; i < 1000; i += 1) {
    const order = homesOf(`room-${i}`, members);
    expect(homesOf(`room-${i}`, members.toReversed())).toEqual(order);
    expect(
      homesOf(
        `room-${i}`,
        members.filter((m) => m !== 'c@h'),
      ),
    ).toEqual(order.filter((m) => m !== 'c@h'));
    counts.set(order[0] as string, (counts.get(order[0] as string) ?? 0) + 1);
  }
  for (const count of counts.values()) expect(count).toBeGreaterThan(120);
});

test('counts a reservation as load, lets it expire, and refuses it when the node has become busier', () => {
  let now = 0;
  const load = { forwardedTracks: 0, rooms: 2 };
  const reservations = new Reservations(() => load, { now: () => now }, randomUUID);
  const seen = { forwardedTracks: 0, rooms: 2 };
  const first = reservations.reserve(seen, false);
  expect(first).toHaveProperty('granted');
  expect(reservations.reserve(seen, false)).toEqual({ refused: { forwardedTracks: 0, rooms: 3, draining: false } });
  now = 5001;
  expect(reservations.load().rooms).toBe(2);
  expect('granted' in first && reservations.release(first.granted)).toBe(false);
  expect(reservations.reserve(seen, true)).toHaveProperty('refused.draining', true);
});

describe('Directory', () => {
  const ref: RoomRef = { path: '/rooms/r', key: '/rooms/r#1' };
  const room = (roomId: string, createdAt: number) => ({ roomId, createdAt, ref });

  test("converges on the owners' last announcements, in whatever order they arrive", () => {
    const step = fc.record({
      node: fc.constantFrom('b', 'c'),
      roomId: fc.constantFrom('r1', 'r2', 'r3'),
      what: fc.constantFrom('add', 'remove', 'lost', 'back', 'left'),
      createdAt: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const directory = new Directory('a', { now: () => 0 });
        const truth = new Map<string, Map<string, number>>([
          ['b', new Map()],
          ['c', new Map()],
        ]);
        const down = new Set<string>();
        for (const { node, roomId, what, createdAt } of steps) {
          const rooms = truth.get(node) as Map<string, number>;
          if (what === 'lost') {
            directory.lost(node);
            down.add(node);
          } else if (what === 'left') {
            directory.left(node);
            rooms.clear();
            down.add(node);
          } else if (what === 'back') {
            directory.replace(
              node,
              [...rooms].map(([id, at]) => room(id, at)),
            );
            down.delete(node);
          } else if (what === 'add') {
            rooms.set(roomId, createdAt);
            if (!down.has(node)) directory.add(node, room(roomId, createdAt));
          } else {
            rooms.delete(roomId);
            if (!down.has(node)) directory.remove(node, roomId);
          }
        }
        for (const [node, rooms] of truth) {
          directory.replace(
            node,
            [...rooms].map(([id, at]) => room(id, at)),
          );
        }
        for (const roomId of ['r1', 'r2', 'r3']) {
          const owners = [...truth].filter(([, rooms]) => rooms.has(roomId));
          const best = owners.toSorted(
            (x, y) => (x[1].get(roomId) as number) - (y[1].get(roomId) as number) || (x[0] < y[0] ? -1 : 1),
          )[0];
          expect(directory.find(roomId)?.node).toBe(best?.[0]);
        }
      }),
      { numRuns: fuzzRuns(2000) },
    );
  });

  test('reports a room on two nodes once, and again after one of them had lost it', () => {
    const directory = new Directory('a', { now: () => 0 });
    directory.add('b', room('r', 1));
    const conflict = { roomId: 'r', kept: 'b', shadowed: 'c' };
    expect(directory.replace('c', [room('r', 2)])).toEqual([conflict]);
    directory.lost('c');
    expect(directory.replace('c', [room('r', 2)])).toEqual([]);
    directory.replace('c', []);
    expect(directory.replace('c', [room('r', 3)])).toEqual([conflict]);
    directory.left('c');
    expect(directory.replace('c', [room('r', 4)])).toEqual([conflict]);
  });

  test('keeps the rooms of a lost node as unreachable and drops those of a node that left', () => {
    let now = 0;
    const directory = new Directory('a', { now: () => now });
    directory.replace('b', [room('r', 1)]);
    directory.lost('b');
    expect(directory.find('r')).toEqual({ node: 'b', ref, createdAt: 1, reachable: false, lostAt: 0 });
    expect(directory.unreachable()).toEqual(['b']);
    now = 11 * 60_000;
    expect(directory.find('r')).toBeUndefined();
    directory.replace('b', [room('r', 1)]);
    directory.left('b');
    expect(directory.find('r')).toBeUndefined();
  });
});

describe('a cluster', () => {
  test('spreads 300 parallel creations evenly over all nodes, give or take one room', async () => {
    // Its time stands still: how long 300 creations take on one busy core is not the question.
    cluster = new TestCluster(['a', 'b', 'c', 'd', 'e'], { clock: new ManualClock() });
    const answers = await Promise.all(Array.from({ length: 300 }, (_, i) => create('abcde'[i % 5] as string)));
    expect(new Set(answers.map(({ room }) => room.id)).size).toBe(300);
    expect(Math.max(...spread()) - Math.min(...spread())).toBeLessThanOrEqual(1);
  });

  test('places each room where the fewest tracks are forwarded', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('a').host.forwardedTracks = 3;
    const { address } = await create('a');
    expect(address).toBe('b:80');
    expect(cluster.node('a').registry.decisions.at(-1)?.verdicts.get('a')).toBe('more tracks');
  });

  test('grants only one of two simultaneous creations with the same id', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    for (let i = 0; i < 100; i += 1) {
      const results = await Promise.allSettled([create('a', `room-${i}`), create('b', `room-${i}`)]);
      expect(results.map((r) => r.status).toSorted()).toEqual(['fulfilled', 'rejected']);
      const refused = results.find((r) => r.status === 'rejected') as PromiseRejectedResult;
      expect(refused.reason).toMatchObject({ code: 'ROOM_EXISTS' });
    }
    expect(spread().reduce((sum, n) => sum + n)).toBe(100);
  });

  test('keeps an id taken while the announcement of its room is still on its way to its home', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    const id = namedFor('a');
    // Busy, so that the first room goes to b and a second one would go to c.
    cluster.node('a').host.forwardedTracks = 2;
    cluster.node('c').host.forwardedTracks = 1;
    cluster.hold('b', 'a');
    expect((await create('c', id)).address).toBe('b:80');
    cluster.node('b').host.forwardedTracks = 3;
    await expect(create('c', id)).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
    cluster.letThrough('b', 'a');
    await cluster.settled();
    await expect(create('c', id)).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
    expect(spread()).toEqual([0, 1, 0]);
  });

  test('keeps an id taken even when its home has no link to the owner of the room', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    const id = namedFor('c');
    cluster.node('a').host.forwardedTracks = 2;
    cluster.node('c').host.forwardedTracks = 1;
    expect((await create('a', id)).address).toBe('b:80');
    await cluster.settled();
    cluster.cut('b', 'c');
    cluster.node('b').host.forwardedTracks = 3;
    await expect(create('a', id)).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
    await cluster.node('b').host.deleteRoom(id);
    expect((await create('a', id)).room.id).toBe(id);
  });

  test('frees an id as soon as its room has ended, even before either event reaches its home', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    const id = namedFor('a');
    cluster.node('a').host.forwardedTracks = 1;
    cluster.node('c').host.forwardedTracks = 1;
    cluster.hold('b', 'a');
    expect((await create('c', id)).address).toBe('b:80');
    await cluster.node('b').rooms.deleteRoom(id);
    expect((await create('c', id)).room.id).toBe(id);
  });

  test('finds a room that was recreated elsewhere, even before the end of the old one is announced', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    cluster.node('a').host.forwardedTracks = 2;
    cluster.node('c').host.forwardedTracks = 2;
    expect((await create('a', 'kitchen')).address).toBe('b:80');
    await cluster.settled();
    cluster.hold('b', 'c');
    await cluster.node('b').rooms.deleteRoom('kitchen');
    cluster.node('b').host.forwardedTracks = 3;
    expect((await create('a', 'kitchen')).address).toBe('a:80');
    await cluster.settled();
    const { rooms } = cluster.node('c');
    expect((await rooms.getRoom('kitchen')).id).toBe('kitchen');
    const { peer, token } = await rooms.addPeer('kitchen', {});
    const socket = { send: () => {}, close: () => {}, ping: () => Promise.resolve(true) };
    expect(await rooms.attachPeer(token, socket)).toBeInstanceOf(Object);
    expect((await cluster.node('a').rooms.getRoom('kitchen')).peers).toMatchObject([{ id: peer.id }]);
    // The room lives on one node only.
    expect(cluster.node('c').conflicts).toEqual([]);
  });

  test('does not bring rooms back because of late announcements from a node that has gone', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('a').host.forwardedTracks = 1;
    cluster.hold('b', 'a');
    await expect(create('b', 'kitchen')).resolves.toBeDefined();
    cluster.cut('a', 'b');
    cluster.letThrough('b', 'a');
    await cluster.settled();
    expect(cluster.node('a').registry.directory.find('kitchen')).toBeUndefined();
    expect((await cluster.node('a').rooms.listRooms('cluster')).unreachable).toEqual(['b']);
  });

  test('refuses a websocket as final only when its room has ended, not when its node is cut off', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('a').host.forwardedTracks = 1;
    await create('a', 'kitchen');
    await cluster.settled();
    const token = (roomId: string) => issuePeerToken({ roomId, peerId: 'p' }, Date.now(), { secretKeyBase: 'secret' });
    const socket = { send: () => {}, close: () => {}, ping: () => Promise.resolve(true) };
    const { rooms } = cluster.node('a');
    await expect(rooms.attachPeer(token('nowhere'), socket)).resolves.toBe('room not found');
    cluster.cut('a', 'b');
    await expect(rooms.attachPeer(token('kitchen'), socket)).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
  });

  test('agrees on every node on when a room was created, with another time for a later room of the same id', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    const times = () => Promise.all(cluster.nodes.map(({ rooms }) => rooms.createdAt('kitchen')));
    await create('a', 'kitchen');
    await cluster.settled();
    const first = await times();
    expect(new Set(first).size).toBe(1);
    await cluster.node('b').rooms.deleteRoom('kitchen');
    await cluster.settled();
    await expect(cluster.node('c').rooms.createdAt('kitchen')).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
    await create('c', 'kitchen');
    await cluster.settled();
    const later = await times();
    expect(new Set(later).size).toBe(1);
    expect(later[0]).toBeGreaterThan(first[0] ?? Infinity);
  });

  test('does not know the creation time of a room whose owner is cut off, nor report the room as missing', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('a').host.forwardedTracks = 1;
    await create('a', 'kitchen');
    await cluster.settled();
    cluster.cut('a', 'b');
    await expect(cluster.node('a').rooms.createdAt('kitchen')).rejects.toMatchObject({ code: 'OWNER_UNREACHABLE' });
  });

  test('lets any node answer for any room, and frees the id of a deleted room', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    await create('a', 'kitchen');
    for (const { rooms } of cluster.nodes) expect((await rooms.getRoom('kitchen')).id).toBe('kitchen');
    await expect(create('b', 'kitchen')).rejects.toMatchObject({ code: 'ROOM_EXISTS' });
    await cluster.node('c').rooms.deleteRoom('kitchen');
    await expect(cluster.node('a').rooms.getRoom('kitchen')).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
    expect((await create('b', 'kitchen')).room.id).toBe('kitchen');
    const all = await cluster.node('c').rooms.listRooms('cluster');
    expect(all.rooms.map(({ id }) => id)).toEqual(['kitchen']);
    expect(all.unreachable).toEqual([]);
  });

  test('shows the last known state of a stuck room on any node', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('b').host.forwardedTracks = 1;
    await create('a', 'kitchen');
    await cluster.settled();
    const { system, host } = cluster.node('a');
    system.suspend(host.roomRef('kitchen')!);
    for (const { rooms } of cluster.nodes) {
      expect(await rooms.getRoom('kitchen')).toMatchObject({ id: 'kitchen', peers: [] });
    }
  });

  test('makes only one creation wait for a frozen node, which gets no rooms until it answers again', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    cluster.freeze('b');
    await create('a');
    expect(cluster.node('a').registry.silentMembers.list()).toEqual(['b']);
    for (let i = 0; i < 3; i += 1) await create('a');
    expect(cluster.node('b').host.views().length).toBe(0);
    cluster.thaw('b');
    await until(async () => (await create('a')) && cluster.node('b').host.views().length > 0);
  });

  test('fails calls that need a frozen node, the first of which marks the node as silent', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    cluster.node('a').host.forwardedTracks = 1;
    cluster.node('c').host.forwardedTracks = 1;
    await create('a', 'kitchen');
    await cluster.settled();
    cluster.freeze('b');
    const { rooms } = cluster.node('a');
    const token = issuePeerToken({ roomId: 'kitchen', peerId: 'p' }, Date.now(), { secretKeyBase: 'secret' });
    const socket = { send: () => {}, close: () => {}, ping: () => Promise.resolve(true) };
    const calls = [
      () => rooms.getRoom('kitchen'),
      () => rooms.deleteRoom('kitchen'),
      () => rooms.getRoom('nowhere'),
      () => rooms.attachPeer(token, socket),
      () => rooms.listRooms('cluster'),
    ];
    for (const [i, call] of calls.entries()) {
      const outcome = await call().catch((error: unknown) => error);
      expect(cluster.node('a').registry.silentMembers.list()).toEqual(['b']);
      if (i < 4) {
        const verb = i === 2 ? 'may be' : 'is';
        const message = expect.stringContaining(`${verb} on b, which`) as unknown;
        expect(outcome).toMatchObject({ code: 'OWNER_UNREACHABLE', message });
      } else expect(outcome).toMatchObject({ rooms: [], unreachable: ['b'] });
    }
    cluster.thaw('b');
    await cluster.settled();
    await until(() => !cluster.node('a').registry.silentMembers.has('b'));
    await expect(rooms.getRoom('nowhere')).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
  });

  test('moves a creation that takes too long to the next node and leaves nothing behind', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('a').host.forwardedTracks = 1;
    const { media } = cluster.node('b');
    const open = media.holdRooms();
    const { address } = await create('a', 'slow');
    expect(address).toBe('a:80');
    open();
    await until(() => media.commands.includes('slow: close'));
    await cluster.settled();
    expect(spread()).toEqual([1, 0]);
  });

  test('never reports a room as deleted because its first node was too slow', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('a').host.forwardedTracks = 1;
    const open = cluster.node('b').media.holdRooms();
    const { room } = await create('a');
    open();
    const news = () => cluster.nodes.flatMap((node) => node.news.map((line) => `${node.name} ${line}`));
    await until(() => cluster.node('b').host.load().rooms === 0);
    await cluster.settled();
    expect(news()).toEqual([`a roomCreated ${room.id}`]);
    expect(cluster.nodes.flatMap(({ conflicts }) => conflicts)).toEqual([]);
  });

  test('does not report a room with a chosen id as deleted when it moves away from a slow node', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    cluster.node('a').host.forwardedTracks = 5;
    cluster.node('c').host.forwardedTracks = 3;
    const open = cluster.node('b').media.holdRooms();
    const chosen = { ...defaultRoomConfig, roomId: 'kitchen' };
    expect((await cluster.node('a').rooms.createRoom(chosen)).address).toBe('c:80');
    open();
    await until(() => cluster.node('b').host.load().rooms === 0);
    await cluster.settled();
    const news = cluster.nodes.flatMap((node) => node.news.map((line) => `${node.name} ${line}`));
    expect(news).toEqual(['c roomCreated kitchen']);
    expect(cluster.nodes.flatMap(({ conflicts }) => conflicts)).toEqual([]);
  });

  test('delays a burst only once for a node that answers but cannot create, until it can create again', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    const open = cluster.node('b').media.holdRooms();
    const answers = await Promise.all(Array.from({ length: 30 }, () => create('a')));
    expect(answers.map(({ address }) => address)).not.toContain('b:80');
    expect(cluster.node('a').registry.decisions.at(-1)?.verdicts.get('b')).toBe('left out');
    open();
    await until(async () => (await create('a')) && cluster.node('b').host.views().length > 1);
  });

  test('places no rooms on a draining node, and refuses creations when all nodes drain', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('a').host.drain('ordered');
    for (let i = 0; i < 3; i += 1) expect((await create('a')).address).toBe('b:80');
    cluster.node('b').host.drain('ordered');
    await expect(create('a')).rejects.toMatchObject({ code: 'NO_NODE' });
    cluster.cut('a', 'b');
    await expect(create('a')).rejects.toMatchObject({ code: 'DRAINING' });
  });

  test('answers 503, not 404, for a room whose owner is cut off, and lets the older room keep the id after the split', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('a').host.forwardedTracks = 1;
    await create('a', 'kitchen');
    expect(cluster.node('b').host.ids).toContain('kitchen');
    await cluster.settled();
    cluster.cut('a', 'b');
    await expect(cluster.node('a').rooms.getRoom('kitchen')).rejects.toMatchObject({
      code: 'OWNER_UNREACHABLE',
      message: expect.stringContaining('is on b') as unknown,
    });
    expect((await cluster.node('a').rooms.listRooms('cluster')).unreachable).toEqual(['b']);
    await create('a', 'kitchen');
    cluster.link('a', 'b');
    await cluster.settled();
    const conflict = { roomId: 'kitchen', kept: 'b', shadowed: 'a' };
    expect(cluster.node('a').conflicts).toEqual([conflict]);
    expect(cluster.node('b').conflicts).toEqual([conflict]);
    expect(spread()).toEqual([1, 1]);
  });

  test('reports two rooms with the same id only once both owners have answered', async () => {
    cluster = new TestCluster(['a', 'b', 'c']);
    const config = { ...defaultRoomConfig, roomId: 'kitchen' };
    await cluster.node('c').host.createRoom(config);
    await cluster.settled();
    cluster.freeze('c');
    await cluster.node('a').host.createRoom(config);
    const { registry, conflicts } = cluster.node('b');
    await until(() => registry.silentMembers.has('c'));
    await cluster.settled();
    expect(conflicts).toEqual([]);
    cluster.thaw('c');
    await until(() => conflicts.length > 0);
    expect(conflicts).toEqual([{ roomId: 'kitchen', kept: 'c', shadowed: 'a' }]);
  });

  test('forgets the rooms of a node that shuts down cleanly on every member', async () => {
    cluster = new TestCluster(['a', 'b']);
    cluster.node('a').host.forwardedTracks = 1;
    await create('a', 'kitchen');
    await cluster.settled();
    cluster.cut('a', 'b', true);
    await expect(cluster.node('a').rooms.getRoom('kitchen')).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
  });
});
