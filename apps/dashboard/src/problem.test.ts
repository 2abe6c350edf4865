import { RoomClientError } from '@bloom/client';
import { BloomApiError, BloomConnectionError } from '@bloom/server-sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Problem, problemOf, problemOfAnswer, problemOfEnd } from './problem.js';

beforeAll(() => void Object.assign(globalThis, { location: { host: 'media.example:5002' } }));
afterAll(() => void Reflect.deleteProperty(globalThis, 'location'));

describe('an answer of the server', () => {
  test('of a full room is told apart from that of a server without capacity', () => {
    expect(problemOfAnswer(503, 'Reached peer limit in room r').code).toBe('room-full');
    expect(problemOfAnswer(503, 'No node available').code).toBe('refused');
  });

  test.each([401, 403])('with status %d says where the right token comes from', (status) => {
    expect(problemOfAnswer(status, 'invalid token').message).toContain('JF_SERVER_API_TOKEN');
  });

  test('about a room with another codec says what streams need', () => {
    expect(problemOfAnswer(400, 'Incompatible video codec enforced in room r').message).toContain('h264');
  });

  test('about a room that is gone keeps the words of the server', () => {
    const { code, message } = problemOfAnswer(404, 'Room r does not exist');
    expect(code).toBe('no-such-room');
    expect(message).toBe('Room r does not exist');
  });
});

describe('what a call of an SDK failed for', () => {
  test('is the server out of reach where nothing answered', () => {
    const problem = problemOf(new BloomConnectionError('GET http://media.example:5002/health got no answer'));
    expect(problem.code).toBe('server-unreachable');
    expect(problem.message).toContain('media.example:5002');
  });

  test('is what the server says where it refused', () => {
    expect(problemOf(new BloomApiError(401, 'invalid token', undefined)).code).toBe('wrong-token');
  });

  test('is in its own words where nothing better is known', () => {
    const problem = problemOf(new RoomClientError('DATA_REFUSED', 'the message is too large'), 'Not sent');
    expect(problem.title).toBe('Not sent');
    expect(problem.message).toBe('the message is too large');
    expect(problemOf('broken').message).toBe('broken');
  });

  test('stays the problem that it is', () => {
    const problem = new Problem('room-full', 'The room is full', '');
    expect(problemOf(problem)).toBe(problem);
  });
});

describe('the end of a call', () => {
  test.each([
    ['REMOVED', 'the server closed the connection: Peer removed', 'removed'],
    ['ROOM_ENDED', 'the server closed the connection: Room stopped', 'room-closed'],
    ['UNREACHABLE', 'the connection was lost', 'connection-lost'],
    ['REJECTED', 'the server closed the connection: expired token', 'connection-lost'],
  ] as const)('as %s with "%s" is %s', (code, message, expected) => {
    expect(problemOfEnd({ code, message })?.code).toBe(expected);
  });

  test('gives somebody who was removed the reason of the backend', () => {
    const message = 'removed from the room: please be kind';
    expect(problemOfEnd({ code: 'REMOVED', message })?.message).toBe('Removed from the room: please be kind.');
  });

  test('that the person chose is no problem', () => {
    expect(problemOfEnd({ code: 'LEFT', message: 'the client left the room' })).toBeNull();
  });
});
