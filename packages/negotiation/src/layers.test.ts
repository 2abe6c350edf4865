import { expect, test } from '@jest/globals';
import { assignLayers } from './layers.js';

test.each([
  ['l;m;h', 'l,m,h'],
  ['h;m;l', 'h,m,l'],
  ['m', 'm'],
])('maps the rids %s to variants', (offered, variants) => {
  expect(assignLayers(offered.split(';'))).toEqual({ rids: variants.split(',') });
});

test.each([
  // OBS and RFC 8853 list the best encoding first.
  ['0;1;2', 'h,m,l'],
  ['a;b', 'h,m'],
  ['only', 'h'],
  ['l;x', 'h,m'],
  ['__proto__;constructor', 'h,m'],
  // Names that encode the size, as LiveKit sends them.
  ['q;h;f', 'l,m,h'],
  ['f;h;q', 'h,m,l'],
  ['h;f', 'm,h'],
])('maps the rids %s to the variants %s', (offered, variants) => {
  const wireRids = offered.split(';');
  expect(assignLayers(wireRids)).toEqual({ rids: variants.split(','), wireRids });
});

test('keeps the best three when more encodings are offered', () => {
  expect(assignLayers(['0', '1', '2', '3'])).toEqual({ rids: ['h', 'm', 'l'], wireRids: ['0', '1', '2'] });
});
