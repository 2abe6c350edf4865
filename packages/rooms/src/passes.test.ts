import { codePoint, fuzzRuns, ManualClock } from '@bloom/time/testing';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Passes } from './passes.js';
import { issuePeerToken } from './peer/credentials.js';

const secretKeyBase = 'sixteen-letters!';
const room = { roomId: 'kitchen', createdAt: 1_700_000_000_000.5 };

test('reads a token on every node with the same secret until it expires', () => {
  const clock = new ManualClock();
  const passes = new Passes(secretKeyBase, clock);
  const viewer = passes.issueViewer(room, 60);
  const invitation = passes.issueInvitation(room, { uses: 2, name: 'Ann', permissions: { publish: ['audio'] } }, 60);
  const other = new Passes(secretKeyBase, clock);
  expect(other.readViewer(viewer.token)).toEqual(room);
  expect(other.readInvitation(invitation.token)).toMatchObject({
    ...room,
    uses: 2,
    name: 'Ann',
    permissions: { publish: ['audio'] },
    expiresAt: invitation.expiresAt,
  });
  expect(new Passes('another', clock).readViewer(viewer.token)).toBeUndefined();
  clock.advance(60_000);
  expect(other.readViewer(viewer.token)).toBeUndefined();
  expect(other.readInvitation(invitation.token)).toBe('expired token');
});

test('counts two invitations to one room separately', () => {
  const passes = new Passes(secretKeyBase);
  const ids = [1, 2].map(() => passes.readInvitation(passes.issueInvitation(room, { uses: 1 }).token));
  expect(ids[0]).not.toEqual(ids[1]);
});

test('accepts a token for one purpose only', () => {
  const passes = new Passes(secretKeyBase);
  const viewer = passes.issueViewer(room).token;
  const invitation = passes.issueInvitation(room, { uses: 0 }).token;
  const peer = issuePeerToken({ roomId: 'kitchen', peerId: 'p' }, Date.now(), { secretKeyBase });
  for (const token of [invitation, peer]) expect(passes.readViewer(token)).toBeUndefined();
  for (const token of [viewer, peer]) expect(passes.readInvitation(token)).toBe('invalid token');
});

test('refuses a token with a single changed character, or any garbage, without throwing', () => {
  const passes = new Passes(secretKeyBase);
  const { token } = passes.issueInvitation(room, { uses: 0 });
  const changed = fc
    .tuple(fc.nat(token.length - 1), fc.constantFrom(...'abcXYZ019-_.=+/ \n'))
    .filter(([at, letter]) => token[at] !== letter)
    .map(([at, letter]) => token.slice(0, at) + letter + token.slice(at + 1));
  fc.assert(
    fc.property(
      fc.oneof(
        changed,
        fc.string({ unit: codePoint(fc) }),
        fc.nat(5_000).map((n) => `${token}${'x'.repeat(n)}x`),
      ),
      (text) => {
        expect(passes.readInvitation(text)).toBe('invalid token');
        expect(passes.readViewer(text)).toBeUndefined();
      },
    ),
    { numRuns: fuzzRuns(1_000) },
  );
});
