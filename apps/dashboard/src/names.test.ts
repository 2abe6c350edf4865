import { expect, test } from '@jest/globals';
import { nameOf, titleOf } from './names.js';

test('a name is trimmed and cut', () => {
  expect(nameOf({ name: '  Ann ' }, 'abcdef')).toBe('Ann');
  expect(nameOf({ name: 'x'.repeat(100) }, 'abcdef')).toHaveLength(40);
});

test.each([null, undefined, 7, 'Ann', [], { name: 3 }, { name: ' ' }, { peer: null, server: null }])(
  'a person without a name in the metadata %j is called Guest',
  (metadata) => {
    expect(nameOf(metadata, 'abcdef')).toBe('Guest abcd');
  },
);

test("the backend's name comes before the client's", () => {
  const peer = { name: 'Ann' };
  expect(nameOf({ peer, server: { name: 'Dr. Ann' } }, 'abcdef')).toBe('Dr. Ann');
  expect(nameOf({ peer, server: { role: 'host' } }, 'abcdef')).toBe('Ann');
});

test('a component has the user-facing name of its kind, and an unknown kind has its own name', () => {
  expect(titleOf('hls')).toBe('HLS stream');
  expect(titleOf('hologram')).toBe('hologram');
  expect(titleOf('constructor')).toBe('constructor');
});
