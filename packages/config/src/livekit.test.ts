import { expect, test } from '@jest/globals';
import { parseLivekitKeys } from './livekit.js';
import { failure, rejects, settings } from './testing/loading.js';

const one = { key: 'APIone', secret: 'first' };
const two = { key: 'APItwo', secret: 'sec:ond' };

test.each([
  ['one pair', 'APIone: first', [one]],
  ['one without a blank', 'APIone:first', [one]],
  ['lines, as in the settings of LiveKit', '\nAPIone: first\r\n  APItwo: sec:ond  \n\n', [one, two]],
  ['commas', 'APIone: first, APItwo: sec:ond', [one, two]],
])('reads keys from %s', (_form, value, keys) => {
  expect(parseLivekitKeys(value)).toEqual(keys);
});

test.each([
  ['without a colon', 'APIone: first\nsecret-alone', 'pair 2 has no colon between key and secret'],
  ['without a key', ': first', 'pair 1 has an empty key'],
  ['without a secret', 'APIone:', 'pair 1 has an empty secret'],
  ['with a key twice', 'APIone: first\nAPIone: other', 'pair 2 has the key of an earlier one'],
  ['of nothing', ' , \n', 'pair 1 is missing'],
])('refuses a list %s and names the pair, never the secret', (_what, value, fault) => {
  expect(() => parseLivekitKeys(value)).toThrow(`JF_LIVEKIT_KEYS is not valid: ${fault}`);
});

const keys = { JF_LIVEKIT_KEYS: `APIone: ${'1'.repeat(32)}, APItwo: ${'2'.repeat(32)}` };

test('sends no webhooks without URLs', () => {
  expect(settings(keys).livekit?.webhooks).toEqual({ urls: [], key: 'APIone' });
});

test('reads the URLs of webhooks and the key that signs them', () => {
  const env = { JF_LIVEKIT_WEBHOOK_URLS: 'https://a.example/hook http://b:1/', JF_LIVEKIT_WEBHOOK_KEY: 'APItwo' };
  expect(settings({ ...keys, ...env }).livekit?.webhooks).toEqual({
    urls: ['https://a.example/hook', 'http://b:1'],
    key: 'APItwo',
  });
});

test('refuses URLs of webhooks that are not of http', () => {
  rejects('JF_LIVEKIT_WEBHOOK_URLS', ['a.example', 'ftp://a.example', 'http://a.example, http://'], keys);
});

test('refuses a key for webhooks that is not among the keys', () => {
  expect(failure({ ...keys, JF_LIVEKIT_WEBHOOK_KEY: 'APIthree' }).variable).toBe('JF_LIVEKIT_WEBHOOK_KEY');
});
