import { expect, test } from '@jest/globals';
import { done, refusals } from '../outcome.js';
import { Guests } from './guests.js';

const invitation = (id: string, uses: number, expiresAt = 1_000) => ({ id, uses, createdAt: 1, expiresAt });
const admit = () => done('a seat');

test('admits as many guests as the invitation has uses', () => {
  const guests = new Guests();
  for (let i = 0; i < 2; i += 1) expect(guests.admit(invitation('a', 2), 0, admit).ok).toBe(true);
  expect(guests.admit(invitation('a', 2), 0, admit)).toMatchObject({ code: 'INVITATION_USED' });
  expect(guests.admit(invitation('b', 1), 0, admit).ok).toBe(true);
});

test('never uses up an invitation without a limit', () => {
  const guests = new Guests();
  for (let i = 0; i < 100; i += 1) expect(guests.admit(invitation('a', 0), 0, admit).ok).toBe(true);
});

test('uses nothing for a guest who is not admitted', () => {
  const guests = new Guests();
  const full = () => refusals.peerLimit('kitchen');
  expect(guests.admit(invitation('a', 1), 0, full)).toMatchObject({ code: 'PEER_LIMIT' });
  expect(guests.admit(invitation('a', 1), 0, admit).ok).toBe(true);
});

test('counts 10,000 invitations at most, and forgets expired ones', () => {
  const guests = new Guests();
  for (let i = 0; i < 10_000; i += 1) guests.admit(invitation(`${i}`, 1, i === 0 ? 10 : 1_000), 0, admit);
  expect(guests.admit(invitation('further', 1), 9, admit)).toMatchObject({ code: 'INVITATION_LIMIT' });
  expect(guests.admit(invitation('1', 1), 9, admit)).toMatchObject({ code: 'INVITATION_USED' });
  expect(guests.admit(invitation('further', 1), 10, admit).ok).toBe(true);
});
