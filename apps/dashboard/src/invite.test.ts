import { describe, expect, test } from '@jest/globals';
import { invitedRoom, inviteLink } from './invite.js';

describe('invitations', () => {
  test('a link leads back to its room', () => {
    const link = inviteLink('http://127.0.0.1:5002/#old', 'blue-whale-7');
    expect(link).toBe('http://127.0.0.1:5002/#room=blue-whale-7');
    expect(invitedRoom(new URL(link).hash)).toBe('blue-whale-7');
  });

  test('a page below a path keeps it', () => {
    expect(inviteLink('https://example.com/media/?x=1', 'r')).toBe('https://example.com/media/?x=1#room=r');
  });

  test('a hash that is no room id invites to nothing', () => {
    for (const hash of ['', '#', '#room=', '#room=../x', '#room=a b', '#other=1']) {
      expect(invitedRoom(hash)).toBeUndefined();
    }
  });
});
