import { expect, test } from '@jest/globals';
import { relayCredentials } from './relay-credentials.js';

test('relay credentials are the unix time with the peer, and the base64 HMAC-SHA1 of that', () => {
  // printf '%s' '1795262400:ann' | openssl dgst -sha1 -hmac secret -binary | base64
  expect(relayCredentials('ann', 1_795_262_400_999, 'secret')).toEqual({
    username: '1795262400:ann',
    password: 's8r9PO01A0fudTxwW5PC0DY3I4M=',
  });
});
