// Which member becomes the standby of a room, and when it is sent the room's state.
import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { type LogFields, silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { Fence } from '../fence.js';
import { defaultRoomConfig } from '../room-service.js';
import type { RoomRef } from '../room/room-messages.js';
import type { ClusterPort } from './cluster-port.js';
import type { OwnedRoom } from './directory.js';
import { Lease } from './lease.js';
import { Placement } from './placement.js';
import { SilentMembers } from './silent-members.js';
import { Standbys } from './standbys.js';

const ROOM: OwnedRoom = { roomId: 'kitchen', createdAt: 1, ref: { path: '/rooms/kitchen', key: '1' } as RoomRef };
const SNAPSHOT = { config: { ...defaultRoomConfig, roomId: 'kitchen' }, peers: [], invitations: [], peerlessMs: null };

/** Node `a@one` with the room `kitchen`. `protocols`: those of the other members; `rooms`: how many they have. */
function start(protocols: Record<string, number>, { rooms = {} as Record<string, number> } = {}) {
  const clock = new ManualClock();
  const members = new Map(Object.entries(protocols));
  const sent: string[] = [];
  const lines: [string, LogFields | undefined][] = [];
  const announced: OwnedRoom[] = [];
  const named: string[] = [];
  let snapshot: typeof SNAPSHOT | string = SNAPSHOT;
  const ids = new Set<string>();
  const refusing = new Set<string>();
  let isCutOff = false;
  const call = async (node: string, { type }: { type: string }): Promise<unknown> => {
    if (isCutOff) throw new Error('TIMEOUT');
    if (type === 'load') return { forwardedTracks: 0, rooms: rooms[node] ?? 0, draining: false };
    if (type === 'pulse') return { process: `${node} 1`, votes: [], noted: true };
    sent.push(`${type} ${node}`);

    if (type === 'mirrorRoom')
      return refusing.has(node) ? { refused: 'no memory left' } : { kept: true, address: `${node.slice(2)}.example` };

    return true;
  };
  const port = {
    self: 'a@one',
    members: () => [...members.keys()],
    received: () => 0,
    speaks: (node: string, protocol: number) => (members.get(node) ?? 0) >= protocol,
    call,
  } as unknown as ClusterPort;
  const fence = new Fence(silentLog);
  let looks = 0;
  fence.release = () => (looks += 1);
  const log = { ...silentLog, warn: (event: string, fields?: LogFields) => void lines.push([event, fields]) };
  const ping = async () => 'pong';
  const silentMembers = new SilentMembers({ members: port.members, ping, received: port.received, log, clock });
  const standbys = new Standbys({
    port,
    process: 'a@one 1',
    host: {
      snapshot: () => snapshot,
      fence,
      nameStandby: (roomId, address) => void named.push(`${roomId} ${address}`),
    },
    placement: new Placement({ port, silentMembers, log, clock, newId: randomUUID }),
    lease: new Lease(port.self),
    hasOther: (node, { roomId }) => ids.has(`${node} ${roomId}`),
    announce: (room) => void announced.push(room),
    newId: randomUUID,
    log,
    clock,
  });
  standbys.owned(ROOM);

  return {
    standbys,
    members,
    ids,
    sent,
    lines,
    announced,
    named,
    standby: () => standbys.standbys.get('kitchen'),
    holds: (state: typeof snapshot) => (snapshot = state),
    refusing,
    cut: (isOn = true) => (isCutOff = isOn),
    /** Returns how often fences were looked at since the last time. */
    looks: () => [looks, (looks = 0)][0],
    advance: (ms: number) => clock.advanceAsync(ms, () => new Promise((resolve) => setImmediate(resolve))),
  };
}

test('the least-loaded member becomes the standby', async () => {
  const { standby, advance } = start({ 'b@two': 3, 'c@three': 3 }, { rooms: { 'b@two': 4 } });
  await advance(3_000);
  expect(standby()).toBe('c@three');
});

test('a member of the last release becomes no standby', async () => {
  const { standby, sent, advance } = start({ 'b@two': 2 });
  await advance(20_000);
  expect(standby()).toBeUndefined();
  expect(sent).toEqual([]);
});

test('a member on the same host becomes no standby while others are elsewhere', async () => {
  const { standby, advance } = start({ 'b@one': 3, 'c@three': 3 }, { rooms: { 'c@three': 9 } });
  await advance(3_000);
  expect(standby()).toBe('c@three');
});

test('a member on the same host becomes the standby if all are there', async () => {
  const { standby, advance } = start({ 'b@one': 3 });
  await advance(3_000);
  expect(standby()).toBe('b@one');
});

test('changes within 50 ms are sent together, and an unchanged state is not sent', async () => {
  const { standbys, sent, holds, advance } = start({ 'b@two': 3 });
  await advance(3_000);
  sent.length = 0;
  holds({ ...SNAPSHOT, peerlessMs: 5 as never });
  for (let i = 0; i < 10; i += 1) standbys.changed('kitchen');
  await advance(49);
  expect(sent).toEqual([]);
  await advance(1);
  expect(sent).toEqual(['mirrorRoom b@two']);
  standbys.changed('kitchen');
  await advance(100);
  expect(sent).toEqual(['mirrorRoom b@two']);
});

test('the people of a room are told of each new standby once, when that has the state of the room', async () => {
  const { standbys, members, named, holds, advance } = start({ 'b@two': 3, 'c@three': 3 }, { rooms: { 'c@three': 9 } });
  await advance(3_000);
  expect(named).toEqual(['kitchen two.example']);
  holds({ ...SNAPSHOT, peerlessMs: 5 as never });
  standbys.changed('kitchen');
  await advance(1_000);
  expect(named).toHaveLength(1);
  members.delete('b@two');
  standbys.memberDown('b@two');
  standbys.memberGone('b@two');
  await advance(10_000);
  expect(named).toEqual(['kitchen two.example', 'kitchen three.example']);
});

test('people who come are told of no standby once the only one is lost', async () => {
  const { standbys, members, named, advance } = start({ 'b@two': 3 });
  await advance(3_000);
  members.delete('b@two');
  standbys.memberDown('b@two');
  standbys.memberGone('b@two');
  await advance(5_000);
  expect(named).toEqual(['kitchen two.example', 'kitchen undefined']);
});

test('another member becomes the standby under a higher epoch when one refuses', async () => {
  const { standby, announced, refusing, advance } = start({ 'b@two': 3, 'c@three': 3 }, { rooms: { 'c@three': 9 } });
  refusing.add('b@two');
  await advance(3_000);
  expect(standby()).toBe('c@three');
  expect(announced.at(-1)?.epoch).toBeGreaterThan(0);
});

test('a room that can run nowhere else loses its standby, which is logged once for each reason', async () => {
  const { standby, standbys, sent, lines, holds, advance } = start({ 'b@two': 3 });
  await advance(3_000);
  holds('its hls component cannot move');
  standbys.changed('kitchen');
  await advance(20_000);
  expect(standby()).toBeUndefined();
  expect(sent.filter((message) => message !== 'mirrorRoom b@two')).toEqual(['forgetRoom b@two']);
  expect(lines).toEqual([['room.no_standby', { roomId: 'kitchen', reason: 'its hls component cannot move' }]]);
});

test('a room with too much state has no standby, which is logged once', async () => {
  const { standby, lines, holds, advance } = start({ 'b@two': 3 });
  holds({ ...SNAPSHOT, config: { ...SNAPSHOT.config, metadata: 'x'.repeat(65_536) } as never });
  await advance(20_000);
  expect(standby()).toBeUndefined();
  expect(lines).toEqual([
    ['room.no_standby', { roomId: 'kitchen', reason: 'its state has more than 65536 characters' }],
  ]);
});

test('a room with an HLS component has no standby, because its files are lost with its node', async () => {
  const { standby, lines, holds, advance } = start({ 'b@two': 3 });
  holds({ ...SNAPSHOT, components: [{ type: 'hls' }] } as never);
  await advance(20_000);
  expect(standby()).toBeUndefined();
  expect(lines).toEqual([
    ['room.no_standby', { roomId: 'kitchen', reason: 'its hls component needs the files of its node' }],
  ]);
});

test('a room that its standby may have taken over is not released, and keeps its epoch', async () => {
  const { standbys, announced, cut, advance } = start({ 'b@two': 3, 'c@three': 3 });
  await advance(3_000);
  cut();
  await advance(3_000);
  announced.length = 0;
  const released = standbys.release('kitchen');
  await advance(300);
  expect([await released, announced]).toEqual([false, []]);
});

test('the standby of a room that has ended forgets it', async () => {
  const { standbys, sent, advance } = start({ 'b@two': 3 });
  await advance(3_000);
  sent.length = 0;
  standbys.ended('kitchen');
  await advance(3_000);
  expect(sent).toEqual(['forgetRoom b@two']);
});

test('a member that has another room with the id becomes no standby', async () => {
  const { standby, sent, ids, advance } = start({ 'b@two': 3, 'c@three': 3 }, { rooms: { 'c@three': 9 } });
  ids.add('b@two kitchen');
  await advance(3_000);
  expect(standby()).toBe('c@three');
  expect(sent).not.toContain('mirrorRoom b@two');
});

test('a standby that gets another room with the id is replaced', async () => {
  const { standby, ids, advance } = start({ 'b@two': 3, 'c@three': 3 }, { rooms: { 'c@three': 9 } });
  await advance(3_000);
  expect(standby()).toBe('b@two');
  ids.add('b@two kitchen');
  await advance(3_000);
  expect(standby()).toBe('c@three');
});

test('looks at the fences once for the answers of all members, soon after it was cut off', async () => {
  const members = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`m${i}@host${i}`, 3]));
  const { looks, cut, advance } = start(members);
  await advance(3_000);
  looks();
  await advance(10_000);
  expect(looks()).toBe(10);
  cut();
  await advance(10_000);
  looks();
  cut(false);
  await advance(1_100);
  expect(looks()).toBe(1);
});
