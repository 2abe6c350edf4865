import { expect, test } from '@jest/globals';
import { checkCredentials } from './identity.js';

test.each(['\r\nTo: x', '\0', '\t', '\u007f'])('credentials with %j are refused, and not shown', (text) => {
  for (const credentials of [
    { username: `room${text}`, password: 'secret' },
    { username: 'room', password: `secret${text}` },
  ]) {
    expect(() => checkCredentials(credentials)).toThrow(/^the (username|password) has a control character$/);
  }
});

test('credentials of any other characters pass', () => {
  expect(() => checkCredentials({ username: 'räum "1"', password: '\\ \u00a0%' })).not.toThrow();
});
