import { beforeEach, expect, test } from '@jest/globals';
import { Claims } from './claims.js';

let now: number;
let claims: Claims;

beforeEach(() => {
  now = 0;
  claims = new Claims({ now: () => now });
});

test('grants an id to one claimant only, who may repeat the claim', () => {
  expect(claims.claim('r', 'a')).toBe(true);
  expect(claims.claim('r', 'b')).toBe(false);
  expect(claims.claim('r', 'a')).toBe(true);
});

test('lets only the claimant release an id', () => {
  claims.claim('r', 'a');
  claims.release('r', 'b');
  expect(claims.claim('r', 'b')).toBe(false);
  claims.release('r', 'a');
  expect(claims.claim('r', 'b')).toBe(true);
});

test('lets only the claimant settle an id', () => {
  claims.claim('r', 'a');
  claims.settle('r', 'b', 'node b');
  expect(claims.holder('r')?.owner).toBeUndefined();
  claims.settle('r', 'a', 'node a');
  expect(claims.holder('r')?.owner).toBe('node a');
});

test('expires a claim after ten seconds', () => {
  claims.claim('r', 'a');
  now = 9_999;
  expect(claims.claim('r', 'b')).toBe(false);
  now = 10_000;
  expect(claims.claim('r', 'b')).toBe(true);
});

test('refuses more than 10,000 concurrent claims until the first ones expire', () => {
  for (let i = 0; i < 10_000; i += 1) claims.claim(`r${i}`, 'a');
  expect(claims.claim('more', 'a')).toBe(false);
  expect(claims.claim('r1', 'a')).toBe(true);
  now = 10_000;
  expect(claims.claim('more', 'a')).toBe(true);
});
