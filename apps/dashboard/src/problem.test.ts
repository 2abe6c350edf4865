import { describe, expect, test } from '@jest/globals';
import { problemOfAnswer, problemOfClose } from './problem.js';

describe('problems', () => {
  test('a full room is told apart from a server that has no capacity', () => {
    expect(problemOfAnswer(503, 'Reached peer limit in room r').code).toBe('room-full');
    expect(problemOfAnswer(503, 'No node available').code).toBe('refused');
  });

  test('a wrong token says where the right one comes from', () => {
    expect(problemOfAnswer(401, 'invalid token').message).toContain('JF_SERVER_API_TOKEN');
  });

  test('an answer without a text still says something', () => {
    expect(problemOfAnswer(500, '').message).toContain('500');
  });

  test.each([
    ['Peer removed', 'removed'],
    ['peer not found', 'removed'],
    ['Room stopped', 'room-closed'],
    ['room not found', 'room-closed'],
    ['', 'connection-lost'],
    ['Internal server error', 'connection-lost'],
  ])('a socket closed with %p means %s', (reason, code) => {
    expect(problemOfClose(reason).code).toBe(code);
  });
});
