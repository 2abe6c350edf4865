// What a member may send about standbys.
import { describe, expect, test } from '@jest/globals';
import { FAILED, LOCAL, Reading } from '@bloom/actors';
import { defaultRoomConfig } from '../room-service.js';
import { MAX_MIRROR } from './mirrors.js';
import { NODE_SHAPES } from './node-messages.js';

const ROOM = { config: { ...defaultRoomConfig, roomId: 'kitchen' }, peers: [], invitations: [], peerlessMs: null };
const MIRROR = {
  node: 'a@host',
  process: 'a1',
  to: 'b1',
  createdAt: 1,
  epoch: 1,
  members: [
    { node: 'a@host', process: 'a1' },
    { node: 'b@host', process: 'b1' },
  ],
  room: JSON.stringify(ROOM),
};
const VOTE = {
  node: 'a@host',
  process: 'a1',
  owner: 'c@host',
  ownerProcess: 'c1',
  creation: null,
  took: false,
  rooms: [],
};
const PULSE = { node: 'a@host', process: 'a1', settled: [], revoked: [] };
const DISMISSAL = { node: 'a@host', to: 'b1', roomId: 'kitchen', epoch: 1 };
const CANDIDACY = { roomId: 'kitchen', createdAt: 1, epoch: 1 };

/** Returns why a message from a@host is refused. */
function faultOf(type: 'mirrorRoom' | 'vote' | 'pulse' | 'forgetRoom' | 'hasMirror', message: object): string {
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
    expect(faultOf('mirrorRoom', { ...MIRROR, members: Array(2_049).fill(MIRROR.members[0]) })).toMatch(/at most 2048/);
    expect(faultOf('mirrorRoom', { ...MIRROR, members: [{ node: 'x'.repeat(256), process: 'x1' }] })).toMatch(
      /at most 255/,
    );
  });

  test.each([-1, 0.5, '1', undefined])('is refused under the epoch %p', (epoch) => {
    expect(faultOf('mirrorRoom', { ...MIRROR, epoch })).toMatch(/epoch/);
  });
});

describe("a standby's answer to it", () => {
  const read = (answer: object): unknown => {
    const shape = NODE_SHAPES.mirrorRoom;
    if (shape === LOCAL) throw new Error('no member sends it');

    return shape.answer(answer, new Reading('b@host', () => undefined));
  };

  test('may name the address of the standby', () => {
    const answer = { kept: true, address: 'b.example:5002' };
    expect(read({ ...answer })).toEqual(answer);
    expect(read({ kept: true })).toEqual({ kept: true });
  });

  test.each([7, null, 'x'.repeat(2_049)])('is refused with the address %.20p', (address) => {
    expect(read({ kept: true, address })).toBe(FAILED);
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
  expect(faultOf('pulse', PULSE)).toBe('none');
  expect(faultOf('pulse', { ...PULSE, node: 'b@host' })).toMatch(/sends it/);
  expect(faultOf('pulse', { ...PULSE, settled: Array(2_049).fill(1) })).toMatch(/at most 2048/);
  expect(faultOf('pulse', { ...PULSE, revoked: Array.from({ length: 10_001 }, () => CANDIDACY) })).toMatch(
    /at most 10000/,
  );
  expect(faultOf('forgetRoom', DISMISSAL)).toBe('none');
  expect(faultOf('forgetRoom', { ...DISMISSAL, node: 'b@host' })).toMatch(/sends it/);
});

test('a question for a mirror names a room, and may say that only an orphaned one counts', () => {
  expect(faultOf('hasMirror', { roomId: 'kitchen' })).toBe('none');
  expect(faultOf('hasMirror', { roomId: 'kitchen', orphaned: true })).toBe('none');
  expect(faultOf('hasMirror', { orphaned: true })).toMatch(/roomId/);
  expect(faultOf('hasMirror', { roomId: 'kitchen', orphaned: 'yes' })).toMatch(/orphaned/);
});
