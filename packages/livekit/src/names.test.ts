import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { codePoint, fuzzRuns } from '@bloom/time/testing';
import { roomIdOf, roomSid, sidOf } from './names.js';

test.each(['kitchen', 'Room-1', '0'])('the name %s is the id of its room', (name) => {
  expect(roomIdOf(name)).toBe(name);
});

test('derives from any other name an id that shows its origin', () => {
  expect(roomIdOf('Grüße an alle, und noch viel mehr')).toMatch(/^lk--Gr-e-an-alle-und-noch-vi-[a-z2-7]{26}$/);
});

test('does not let a name that looks like a derived id name another room', () => {
  const derived = roomIdOf('a b');
  expect(roomIdOf(derived)).not.toBe(derived);
});

test('derives from every name an id that REST accepts, and different ids from different names', () => {
  const ids = new Map<string, string>();
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: codePoint(fc) }), (name) => {
      const id = roomIdOf(name);
      expect(id).toMatch(/^[A-Za-z0-9-]+$/);
      expect(ids.get(id) ?? name).toBe(name);
      ids.set(id, name);
    }),
    { numRuns: fuzzRuns(200) },
  );
});

test('derives a sid with its prefix and 16 letters, the same on every node', () => {
  expect(sidOf('PA', 'peer')).toMatch(/^PA_[A-Za-z0-9]{16}$/);
  expect(sidOf('PA', 'peer')).toBe(sidOf('PA', 'peer'));
});

test('gives a track another sid than the participant with the same id', () => {
  expect(sidOf('PA', 'same')).toMatch(/^PA_/);
  expect(sidOf('TR', 'same')).toMatch(/^TR_/);
});

test('gives a later room of the same name another sid', () => {
  expect(roomSid('kitchen', 1)).not.toBe(roomSid('kitchen', 2));
});
