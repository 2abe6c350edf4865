// When an owner may act for its rooms, and when a member votes against it.
import { describe, expect, test } from '@jest/globals';
import { Lease, LEASE_MS } from './lease.js';
import type { Voter } from './standby-states.js';
import { FROZEN_MS, type GivenVote, SILENT_MS, Witness } from './witness.js';

const MEMBERS = of('o', 's', 'w');
const GUARD = { node: 's', process: 's1', memberships: [MEMBERS] };
const VOTE = { standby: 's', process: 's1', number: 1 };

/** The first processes of these nodes. */
function of(...nodes: string[]): Voter[] {
  return nodes.map((node) => ({ node, process: `${node}1` }));
}

function leaseOf(...answers: [node: string, sentAt: number, votes?: GivenVote[]][]): Lease {
  const lease = new Lease('o');
  for (const [node, sentAt, votes = []] of answers)
    lease.answered(node, { process: `${node}1`, votes }, { sentAt, now: sentAt });

  return lease;
}

describe('a lease', () => {
  test('holds while the standby answers, whoever else is silent', () => {
    const lease = leaseOf(['s', 1_000]);
    expect(lease.holds([GUARD], 1_000 + LEASE_MS - 1)).toBe(true);
    expect(lease.holds([GUARD], 1_000 + LEASE_MS)).toBe(false);
  });

  test('holds while the others do not suffice for a majority without the members that answer', () => {
    const lease = leaseOf(['w', 1_000]);
    expect(lease.holds([GUARD], 1_001)).toBe(true);
    expect(lease.holds([{ node: 's', process: 's1', memberships: [of('o', 's', 'w', 'x', 'y')] }], 1_001)).toBe(false);
  });

  test('does not count a member that has voted for the standby', () => {
    const lease = leaseOf(['w', 1_000, [VOTE]]);
    expect(lease.holds([GUARD], 1_001)).toBe(false);
  });

  test('does not count a standby that votes for itself', () => {
    const lease = leaseOf(['s', 1_000, [VOTE]]);
    expect(lease.holds([GUARD], 1_001)).toBe(false);
  });

  test('needs nobody where the standby cannot get a majority', () => {
    expect(new Lease('o').holds([{ ...GUARD, memberships: [of('o', 's')] }], 0)).toBe(true);
  });

  test('must hold for every membership that the standby may know, and for every former standby', () => {
    const lease = leaseOf(['s', 0], ['w', 1_000]);
    const both = { ...GUARD, memberships: [MEMBERS, of('o', 's', 'w', 'x', 'y')] };
    expect(lease.holds([both], LEASE_MS)).toBe(false);
    expect(lease.holds([{ node: 'w', process: 'w1', memberships: [MEMBERS] }, both], LEASE_MS)).toBe(false);
  });

  test('does not hold because of a standby whose process has ended: it may have won before', () => {
    const lease = leaseOf(['s', 1_000]);
    lease.gone('s', { now: 1_000 + LEASE_MS, isSure: true });
    expect(lease.holds([GUARD], 4_000)).toBe(false);
    lease.answered('w', { process: 'w1', votes: [] }, { sentAt: 4_000, now: 4_000 });
    expect(lease.holds([GUARD], 4_001)).toBe(true);
  });

  test('holds without processes that have ended so soon after their answers that they cannot have voted since', () => {
    const lease = leaseOf(['s', 1_000, [VOTE]], ['w', 1_000]);
    lease.gone('w', { now: 999 + LEASE_MS, isSure: false });
    expect(lease.holds([GUARD], 60_000)).toBe(false);
    lease.gone('w', { now: 60_000, isSure: true });
    expect(lease.holds([GUARD], 60_000)).toBe(true);
    const voted = leaseOf(['s', 1_000, [VOTE]], ['w', 1_000, [VOTE]]);
    voted.gone('w', { now: 1_001, isSure: true });
    expect(voted.holds([GUARD], 60_000)).toBe(false);
  });

  test('does not count the next process of a member, which has forgotten whom it voted for', () => {
    const lease = leaseOf(['w', 1_000]);
    lease.answered('w', { process: 'w2', votes: [] }, { sentAt: 1_001, now: 1_001 });
    expect(lease.holds([GUARD], 1_002)).toBe(false);
    expect(lease.holds([{ ...GUARD, memberships: [[...of('o', 's'), { node: 'w', process: 'w2' }]] }], 1_002)).toBe(
      true,
    );
  });

  test('ignores an answer that arrives after one to a later pulse', () => {
    const lease = leaseOf(['w', 1_000]);
    const late = { process: 'w1', votes: [VOTE] };
    expect(lease.answered('w', late, { sentAt: 900, now: 1_001 })).toBe(false);
    expect(lease.holds([GUARD], 1_002)).toBe(true);
  });

  test('ends a vote only after the standby has answered a pulse sent after the vote was heard of', () => {
    const lease = leaseOf(['s', 900], ['w', 1_000, [{ ...VOTE, number: 7 }]]);
    expect(lease.settledVotes('w')).toEqual([]);
    lease.answered('s', { process: 's1', votes: [] }, { sentAt: 1_001, now: 1_002 });
    expect(lease.settledVotes('w')).toEqual([7]);
  });

  test('ends no vote because of the next process of the standby, which knows nothing of it', () => {
    const lease = leaseOf(['w', 1_000, [VOTE]]);
    lease.answered('s', { process: 's2', votes: [] }, { sentAt: 1_001, now: 1_002 });
    expect(lease.settledVotes('w')).toEqual([]);
  });
});

describe('a witness', () => {
  const silent = { process: 'o1', settled: [], revoked: [] };
  const contested = { owner: 'o', ownerProcess: 'o1', node: 's', process: 's1' };

  test('votes against an owner that it has not heard for 3 s, or 5 s while its link stands', () => {
    const witness = new Witness('w1', 0);
    witness.pulse('o', silent, 1_000);
    expect(witness.isSilent('o', { now: 1_000 + SILENT_MS - 1, linked: false })).toBe(false);
    expect(witness.isSilent('o', { now: 1_000 + SILENT_MS, linked: false })).toBe(true);
    expect(witness.isSilent('o', { now: 1_000 + SILENT_MS, linked: true })).toBe(false);
    expect(witness.isSilent('o', { now: 1_000 + FROZEN_MS, linked: true })).toBe(true);
  });

  test('reports its votes until the owner says that they are settled', () => {
    const witness = new Witness('w1', 0);
    witness.linked('o', 0);
    witness.vote(contested);
    const [vote] = witness.pulse('o', silent, 1).votes;
    expect(vote).toEqual({ standby: 's', process: 's1', number: expect.any(Number) });
    witness.vote(contested);
    // A settled earlier vote says nothing of the new one.
    expect(witness.pulse('o', { ...silent, settled: [vote?.number ?? 0] }, 2).votes).toHaveLength(1);
    const [again] = witness.pulse('o', silent, 3).votes;
    expect(witness.pulse('o', { ...silent, settled: [again?.number ?? 0] }, 4).votes).toEqual([]);
  });

  test('names no votes against the former process of an owner, whether they were given before or after its end', () => {
    const witness = new Witness('w1', 0);
    witness.pulse('o', silent, 1);
    witness.vote(contested);
    expect(witness.pulse('o', { ...silent, process: 'o2' }, 2).votes).toEqual([]);
    witness.vote(contested);
    expect(witness.pulse('o', { ...silent, process: 'o2' }, 3).votes).toEqual([]);
  });

  test('names its votes against a process of an owner whose first pulse arrives after them', () => {
    const witness = new Witness('w1', 0);
    witness.pulse('o', silent, 1);
    witness.vote({ ...contested, ownerProcess: 'o2' });
    expect(witness.pulse('o', { ...silent, process: 'o2' }, 2).votes).toHaveLength(1);
  });

  test('remembers no votes against an owner that it has never heard, which does not count it', () => {
    const witness = new Witness('w1', 0);
    witness.vote(contested);
    expect(witness.pulse('o', silent, 1).votes).toEqual([]);
  });

  test('denies a room under revoked epochs, also once the owner is gone', () => {
    const witness = new Witness('w1', 0);
    const room = { roomId: 'kitchen', createdAt: 1, epoch: 4 };
    expect(witness.pulse('o', { ...silent, revoked: [room] }, 1).noted).toBe(true);
    witness.pulse('o', { ...silent, process: 'o2', revoked: [{ ...room, epoch: 3 }] }, 2);
    expect([3, 4, 5].map((epoch) => witness.hasRevoked('o', { ...room, epoch }))).toEqual([true, true, false]);
    expect(witness.hasRevoked('o', { ...room, createdAt: 2 })).toBe(false);
  });

  test('says so when it can remember no more revoked rooms, and has place again after 20 minutes', () => {
    const witness = new Witness('w1', 0);
    const some = (from: number) =>
      Array.from({ length: 10_000 }, (_, i) => ({ roomId: `${from + i}`, createdAt: 1, epoch: 1 }));
    for (let i = 0; i < 10; i += 1)
      expect(witness.pulse('o', { ...silent, revoked: some(i * 10_000) }, 1).noted).toBe(true);
    expect(witness.pulse('o', { ...silent, revoked: some(100_000) }, 1).noted).toBe(false);
    expect(witness.pulse('o', { ...silent, revoked: some(100_000) }, 20 * 60_000 + 2).noted).toBe(true);
  });

  test('keeps a share of what it can remember for the revoked rooms of each owner', () => {
    const witness = new Witness('w1', 0);
    const some = (from: number) =>
      Array.from({ length: 10_000 }, (_, i) => ({ roomId: `${from + i}`, createdAt: 1, epoch: 1 }));
    for (let i = 0; i < 10; i += 1) witness.pulse('o', { ...silent, revoked: some(i * 10_000) }, 1);
    for (let i = 0; i < 5; i += 1)
      expect(witness.pulse('p', { ...silent, revoked: some(i * 10_000) }, 1).noted).toBe(true);
    expect(witness.pulse('p', { ...silent, revoked: some(50_000) }, 1).noted).toBe(false);
  });

  test('knows which process of an owner has left in order', () => {
    const witness = new Witness('w1', 0);
    witness.pulse('o', silent, 1);
    witness.left('o');
    expect([witness.hasLeft('o', 'o1'), witness.hasLeft('o', 'o2')]).toEqual([true, false]);
  });
});
