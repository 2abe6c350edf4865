import { expect, test } from '@jest/globals';
import { checkCredentials } from './identity.js';

test.each(['\r\nTo: x', '\0', '\t', '\u007f'])('rejects credentials with %j without showing them', (text) => {
  for (const credentials of [
    { username: `room${text}`, password: 'secret' },
    { username: 'room', password: `secret${text}` },
  ]) {
    expect(() => checkCredentials(credentials)).toThrow(/^the (username|password) contains a control character$/);
  }
});

test('accepts credentials with any other characters', () => {
  expect(() => checkCredentials({ username: 'räum "1"', password: '\\ \u00a0%' })).not.toThrow();
});
