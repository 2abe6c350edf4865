// What a standby keeps for an owner, and how much at most.
import { expect, test } from '@jest/globals';
import { defaultRoomConfig } from '../room-service.js';
import { MAX_MIRROR, type MirroredRoom, Mirrors } from './mirrors.js';
import type { Voter } from './standby-states.js';

function room(roomId: string, chars = 100): MirroredRoom {
  const config = { ...defaultRoomConfig, roomId };
  return { snapshot: { config, peers: [], invitations: [], peerlessMs: null }, chars };
}

const [A, B, C] = ['a', 'b', 'c'].map((node) => ({ node, process: `${node}1` })) as [Voter, Voter, Voter];
const UPDATE = { node: 'a', process: 'a1', createdAt: 1, epoch: 1, members: [A, B] };

test('keeps the latest state of a room, and its side of the takeover', () => {
  const mirrors = new Mirrors();
  mirrors.keep(UPDATE, room('kitchen'), 1);
  mirrors.get('a', 'kitchen')?.side.on('silent');
  const later = room('kitchen', 200);
  expect(mirrors.keep({ ...UPDATE, members: [A, B, C] }, later, 2)).toBeNull();
  expect(mirrors.get('a', 'kitchen')).toMatchObject({ room: later, at: 2, members: [A, B, C] });
  expect(mirrors.get('a', 'kitchen')?.side.state).toBe('asking');
});

test('keeps nothing that was sent under an earlier epoch', () => {
  const mirrors = new Mirrors();
  mirrors.keep({ ...UPDATE, epoch: 3 }, room('kitchen'), 1);
  expect(mirrors.keep(UPDATE, room('kitchen'), 2)).toMatch(/later/);
  expect(mirrors.get('a', 'kitchen')?.epoch).toBe(3);
});

test('keeps the rooms of an owner apart from those of another', () => {
  const mirrors = new Mirrors();
  mirrors.keep(UPDATE, room('kitchen'), 1);
  mirrors.keep({ ...UPDATE, node: 'c' }, room('kitchen'), 1);
  mirrors.drop('a', 'kitchen');
  expect(mirrors.of('a')).toEqual([]);
  expect(mirrors.has('kitchen')).toBe(true);
  expect(mirrors.owners).toEqual(['c']);
});

test('refuses what is too much in sum for one owner, and has place again once rooms are dropped', () => {
  const mirrors = new Mirrors();
  let kept = 0;
  while (mirrors.keep(UPDATE, room(`room-${kept}`, MAX_MIRROR), 1) === null) kept += 1;
  // The names of members count too.
  expect(kept).toBe(511);
  expect(mirrors.keep({ ...UPDATE, node: 'c' }, room('kitchen'), 1)).toBeNull();
  mirrors.drop('a', 'room-0');
  expect(mirrors.keep(UPDATE, room('hall', MAX_MIRROR), 1)).toBeNull();
});

test('refuses what is too much in sum for all owners', () => {
  const mirrors = new Mirrors();
  let kept = 0;
  for (const node of ['a', 'c', 'd', 'e', 'f'])
    for (let i = 0; mirrors.keep({ ...UPDATE, node }, room(`${i}`, MAX_MIRROR), 1) === null; i += 1) kept += 1;
  expect(kept).toBe(4 * 511 + 3);
});

test('refuses more small rooms of one owner than any node has', () => {
  const mirrors = new Mirrors();
  let kept = 0;
  while (mirrors.keep(UPDATE, room(`room-${kept}`, 1), 1) === null) kept += 1;
  expect(kept).toBe(10_000);
});
