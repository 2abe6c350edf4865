// Which processes may take a room over, as far as its owner knows.
import { describe, expect, test } from '@jest/globals';
import type { RoomRef } from '../room/room-messages.js';
import type { Voter } from './standby-states.js';
import { Ward } from './wards.js';

const [O, S, F, X] = ['o', 's', 'f', 'x'].map((node) => ({ node, process: `${node}1` })) as [
  Voter,
  Voter,
  Voter,
  Voter,
];
const never = (): boolean => false;

function start(...appointed: Voter[]): Ward {
  const ward = new Ward({ roomId: 'kitchen', createdAt: 1, ref: {} as RoomRef }, () => 2);
  for (const voter of appointed) ward.appoint(voter);

  return ward;
}

function membershipsOf(ward: Ward): unknown {
  return ward.guards.map(({ memberships }) => memberships);
}

describe('the memberships that bind an owner', () => {
  test('are the one that the standby has confirmed and all that were sent since', () => {
    const ward = start(S);
    const sent = [
      [O, S],
      [O, S, F],
      [O, S, F, X],
    ].map((members) => ward.sending(members)?.members ?? []);
    expect(membershipsOf(ward)).toEqual([sent]);
    ward.confirmed(2, sent[1] as Voter[]);
    expect(membershipsOf(ward)).toEqual([sent.slice(1)]);
  });

  test('grow no further while the standby confirms none: it is sent the last one again', () => {
    const ward = start(S);
    for (let i = 0; i < 20; i += 1) ward.sending([O, S, { node: 'f', process: `f${i}` }]);
    expect(ward.guards[0]?.memberships).toHaveLength(8);
    expect(ward.sending([O, S])?.members).toEqual([O, S, { node: 'f', process: 'f7' }]);
  });

  test('stay those of a former standby that is appointed again, until it has confirmed a new one', () => {
    const ward = start(S);
    ward.sending([O, S, F]);
    ward.dismiss();
    ward.appoint(S);
    const again = ward.sending([O, S])?.members ?? [];
    expect(membershipsOf(ward)).toEqual([[[O, S, F]], [again]]);
    ward.confirmed(4, again);
    expect(membershipsOf(ward)).toEqual([[again]]);
  });
});

describe('a former standby', () => {
  function replaced(members: Voter[]): Ward {
    const ward = start(F);
    ward.sending(members);
    ward.dismiss();

    return ward;
  }

  test('may take the room over until it has forgotten it', () => {
    const ward = replaced([O, F, S]);
    expect(ward.areFormerPowerless).toBe(false);
    ward.forgotten({ ...F, process: 'f2' }, 2);
    expect(ward.areFormerPowerless).toBe(false);
    ward.forgotten(F, 2);
    expect([ward.areFormerPowerless, ward.isGuarded]).toEqual([true, false]);
  });

  test('is powerless once the members that will not deny it their votes are no majority', () => {
    const ward = replaced([O, F, S, X]);
    expect(ward.revocationsFor('s', 's1')).toEqual([{ roomId: 'kitchen', createdAt: 1, epoch: 2 }]);
    ward.revoked(S, 2, never);
    expect(ward.areFormerPowerless).toBe(false);
    ward.revoked(X, 2, never);
    expect([ward.areFormerPowerless, ward.guards]).toEqual([true, []]);
    expect(ward.revocationsFor('s', 's1')).toEqual([]);
    // The next process of a member is told again.
    expect(ward.revocationsFor('s', 's2')).toHaveLength(1);
  });

  test('is powerless once it denies itself', () => {
    const ward = replaced([O, F]);
    ward.revoked(F, 2, never);
    expect(ward.areFormerPowerless).toBe(true);
  });

  test('is not powerless because of a member that has voted for it before, or of another process', () => {
    const ward = replaced([O, F, S]);
    ward.revoked(S, 2, ({ node }) => node === 'f');
    ward.revoked({ ...S, process: 's2' }, 2, never);
    expect(ward.areFormerPowerless).toBe(false);
  });

  test('may have taken the room over although its process has ended', () => {
    const ward = replaced([O, F, S]);
    ward.ended('f', { now: 0 });
    ward.settle(() => true, { isLost: never, isLong: never });
    expect(ward.areFormerPowerless).toBe(false);
    ward.settle(never, { isLost: never, isLong: never });
    expect(ward.isGuarded).toBe(false);
  });
});

test('a room loses its standby when another process has its name', () => {
  const ward = start(S);
  ward.ended('s', { now: 0, process: 's1' });
  expect(ward.standby).toBe('s');
  ward.ended('s', { now: 0, process: 's2' });
  expect(ward.standby).toBeUndefined();
});
