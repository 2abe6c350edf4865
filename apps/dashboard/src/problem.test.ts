import { RoomClientError } from '@bloom/client';
import { BloomApiError, BloomConnectionError } from '@bloom/server-sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Problem, problemOf, problemOfAnswer, problemOfEnd } from './problem.js';

beforeAll(() => void Object.assign(globalThis, { location: { host: 'media.example:5002' } }));
afterAll(() => void Reflect.deleteProperty(globalThis, 'location'));

describe("the problem behind a server's answer", () => {
  test('distinguishes a full room from a server without capacity', () => {
    expect(problemOfAnswer(503, 'Reached peer limit in room r').code).toBe('room-full');
    expect(problemOfAnswer(503, 'No node available').code).toBe('refused');
  });

  test.each([401, 403])('says for status %d where to find the right token', (status) => {
    expect(problemOfAnswer(status, 'invalid token').message).toContain('JF_SERVER_API_TOKEN');
  });

  test('says what streams need if the room has another codec', () => {
    expect(problemOfAnswer(400, 'Incompatible video codec enforced in room r').message).toContain('h264');
  });

  test('says that a server without a store records nothing', () => {
    const text = 'S3 credentials has to be passed either by request or at application startup as envs';
    expect(problemOfAnswer(400, text).title).toBe('There is no storage for recordings');
  });

  test("keeps the server's words if the room is gone", () => {
    const { code, message } = problemOfAnswer(404, 'Room r does not exist');
    expect(code).toBe('no-such-room');
    expect(message).toBe('Room r does not exist');
  });
});

test.each(['File not found', 'Component c does not exist', 'Peer p does not exist'])(
  'does not blame the room for %s',
  (errors) => {
    const { code, title, message } = problemOfAnswer(404, errors);
    expect(code).toBe('not-found');
    expect(title).toBe('Not found');
    expect(message).toContain(errors);
  },
);

describe('the problem behind a failed SDK call', () => {
  test('reports an unreachable server if nothing answered', () => {
    const problem = problemOf(new BloomConnectionError('GET http://media.example:5002/health got no answer'));
    expect(problem.code).toBe('server-unreachable');
    expect(problem.message).toContain('media.example:5002');
  });

  test("reports the server's message if it refused", () => {
    expect(problemOf(new BloomApiError(401, 'invalid token', undefined)).code).toBe('wrong-token');
  });

  test("reports the error's own message if nothing more specific is known", () => {
    const problem = problemOf(new RoomClientError('DATA_REFUSED', 'the message is too large'), 'Not sent');
    expect(problem.title).toBe('Not sent');
    expect(problem.message).toBe('the message is too large');
    expect(problemOf('broken').message).toBe('broken');
  });

  test('returns a problem unchanged', () => {
    const problem = new Problem('room-full', 'The room is full', '');
    expect(problemOf(problem)).toBe(problem);
  });
});

describe('the problem behind the end of a call', () => {
  test.each([
    ['REMOVED', 'the server closed the connection: Peer removed', 'removed'],
    ['ROOM_ENDED', 'the server closed the connection: Room stopped', 'room-closed'],
    ['UNREACHABLE', 'the connection was lost', 'connection-lost'],
    ['REJECTED', 'the server closed the connection: expired token', 'connection-lost'],
  ] as const)('maps code %s with "%s" to %s', (code, message, expected) => {
    expect(problemOfEnd({ code, message })?.code).toBe(expected);
  });

  test("includes the backend's reason for a removed person", () => {
    const message = 'removed from the room: please be kind';
    expect(problemOfEnd({ code: 'REMOVED', message })?.message).toBe('Removed from the room: please be kind.');
  });

  test('reports nothing if the person left', () => {
    expect(problemOfEnd({ code: 'LEFT', message: 'the client left the room' })).toBeNull();
  });
});
