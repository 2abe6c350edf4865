// What a member may send about standbys.
import { describe, expect, test } from '@jest/globals';
import { FAILED, LOCAL, Reading } from '@bloom/actors';
import { defaultRoomConfig } from '../room-service.js';
import { MAX_MIRROR } from './mirrors.js';
import { NODE_SHAPES } from './node-messages.js';

const ROOM = { config: { ...defaultRoomConfig, roomId: 'kitchen' }, peers: [], invitations: [], peerlessMs: null };
const MIRROR = { node: 'a@host', createdAt: 1, epoch: 1, members: ['a@host', 'b@host'], room: JSON.stringify(ROOM) };
const VOTE = { node: 'a@host', owner: 'c@host', creation: null, took: false, rooms: [] };
const CANDIDACY = { roomId: 'kitchen', createdAt: 1, epoch: 1 };

/** Returns why a message from a@host is refused. */
function faultOf(type: 'mirrorRoom' | 'vote' | 'pulse' | 'forgetRoom', message: object): string {
  const shape = NODE_SHAPES[type];
  if (shape === LOCAL) throw new Error('no member sends it');
  const reading = new Reading('a@host', () => undefined);

  return shape.message(JSON.parse(JSON.stringify({ type, ...message })), reading) === FAILED ? reading.fault : 'none';
}

describe('the state of a room', () => {
  test('is accepted from its owner', () => {
    expect(faultOf('mirrorRoom', MIRROR)).toBe('none');
  });

  test('is refused from another node', () => {
    expect(faultOf('mirrorRoom', { ...MIRROR, node: 'c@host' })).toMatch(/the name of the node that sends it/);
  });

  test('is refused if it is too long, whatever it says', () => {
    const room = JSON.stringify({ ...ROOM, more: 'x'.repeat(MAX_MIRROR) });
    expect(faultOf('mirrorRoom', { ...MIRROR, room })).toMatch(/at most 65536 characters/);
  });

  test.each(['', '{', 'null', '[]', '{"peers":[]}', 7, null, { ...ROOM }])('is refused if it is %j', (room) => {
    expect(faultOf('mirrorRoom', { ...MIRROR, room })).not.toBe('none');
  });

  test('is refused with more members than a cluster has, or names that no node has', () => {
    expect(faultOf('mirrorRoom', { ...MIRROR, members: Array(2_049).fill('a') })).toMatch(/at most 2048/);
    expect(faultOf('mirrorRoom', { ...MIRROR, members: ['x'.repeat(256)] })).toMatch(/at most 255/);
  });

  test.each([-1, 0.5, '1', undefined])('is refused under the epoch %p', (epoch) => {
    expect(faultOf('mirrorRoom', { ...MIRROR, epoch })).toMatch(/epoch/);
  });
});

describe('a request for votes', () => {
  test('is accepted from the standby', () => {
    expect(faultOf('vote', { ...VOTE, rooms: [CANDIDACY] })).toBe('none');
    expect(faultOf('vote', { ...VOTE, creation: 7 })).toBe('none');
  });

  test('is refused from another node', () => {
    expect(faultOf('vote', { ...VOTE, node: 'b@host' })).toMatch(/the name of the node that sends it/);
  });

  test('is refused for more rooms than a standby keeps', () => {
    expect(faultOf('vote', { ...VOTE, rooms: Array.from({ length: 10_001 }, () => CANDIDACY) })).toMatch(
      /at most 10000/,
    );
  });
});

test('a pulse and a dismissal come from the node that they name', () => {
  expect(faultOf('pulse', { node: 'a@host', settled: [] })).toBe('none');
  expect(faultOf('pulse', { node: 'b@host', settled: [] })).toMatch(/sends it/);
  expect(faultOf('pulse', { node: 'a@host', settled: Array(2_049).fill(1) })).toMatch(/at most 2048/);
  expect(faultOf('forgetRoom', { node: 'a@host', roomId: 'kitchen', epoch: 1 })).toBe('none');
  expect(faultOf('forgetRoom', { node: 'b@host', roomId: 'kitchen', epoch: 1 })).toMatch(/sends it/);
});
