import { describe, expect, test } from '@jest/globals';
import { problemOfAnswer, problemOfEnd } from './problem.js';

describe('problems', () => {
  test('a full room is told apart from a server that has no capacity', () => {
    expect(problemOfAnswer(503, 'Reached peer limit in room r').code).toBe('room-full');
    expect(problemOfAnswer(503, 'No node available').code).toBe('refused');
  });

  test('a wrong token says where the right one comes from', () => {
    expect(problemOfAnswer(401, 'invalid token').message).toContain('JF_SERVER_API_TOKEN');
  });

  test('a room with another codec says what streams need', () => {
    expect(problemOfAnswer(400, 'Incompatible video codec enforced in room r').message).toContain('h264');
  });

  test('an answer without a text still says something', () => {
    expect(problemOfAnswer(500, '').message).toContain('500');
  });

  test.each([
    ['REMOVED', 'the server closed the connection: Peer removed', 'removed'],
    ['ROOM_ENDED', 'the server closed the connection: Room stopped', 'room-closed'],
    ['UNREACHABLE', 'the connection was lost', 'connection-lost'],
    ['REJECTED', 'the server closed the connection: expired token', 'connection-lost'],
  ] as const)('a call that ends as %s with "%s" is %s', (code, message, expected) => {
    expect(problemOfEnd({ code, message })?.code).toBe(expected);
  });

  test('somebody who was removed reads the reason of the backend', () => {
    const message = 'removed from the room: please be kind';
    expect(problemOfEnd({ code: 'REMOVED', message })?.message).toBe('Removed from the room: please be kind.');
  });

  test('leaving is no problem', () => {
    expect(problemOfEnd({ code: 'LEFT', message: 'the client left the room' })).toBeNull();
  });
});
