// When an owner may act for its rooms, and that it never may while its standby has won the votes.
import { describe, expect, test } from '@jest/globals';
import { Lease, LEASE_MS } from './lease.js';
import { isMajority } from './standby-states.js';
import { FROZEN_MS, SILENT_MS, Witness } from './witness.js';

const MEMBERS = ['o', 's', 'w'];
const GUARD = { node: 's', memberships: [MEMBERS] };

function leaseOf(...answers: [node: string, sentAt: number, votes?: { standby: string; number: number }[]][]): Lease {
  const lease = new Lease('o');
  for (const [node, sentAt, votes = []] of answers) lease.answered(node, votes, { sentAt, now: sentAt });

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
    expect(lease.holds([{ node: 's', memberships: [['o', 's', 'w', 'x', 'y']] }], 1_001)).toBe(false);
  });

  test('does not count a member that has voted for the standby', () => {
    const lease = leaseOf(['w', 1_000, [{ standby: 's', number: 1 }]]);
    expect(lease.holds([GUARD], 1_001)).toBe(false);
  });

  test('does not count a standby that votes for itself', () => {
    const lease = leaseOf(['s', 1_000, [{ standby: 's', number: 1 }]]);
    expect(lease.holds([GUARD], 1_001)).toBe(false);
  });

  test('needs nobody where the standby cannot get a majority', () => {
    expect(new Lease('o').holds([{ node: 's', memberships: [['o', 's']] }], 0)).toBe(true);
  });

  test('must hold for every membership that the standby may know, and for every former standby', () => {
    const lease = leaseOf(['s', 0], ['w', 1_000]);
    const both = { node: 's', memberships: [MEMBERS, ['o', 's', 'w', 'x', 'y']] };
    expect(lease.holds([both], LEASE_MS)).toBe(false);
    expect(lease.holds([{ node: 'w', memberships: [MEMBERS] }, both], LEASE_MS)).toBe(false);
  });

  test('holds without a standby whose process has ended, but not without a member that may have voted before', () => {
    const lease = new Lease('o');
    lease.gone('w');
    expect(lease.holds([GUARD], 0)).toBe(false);
    lease.gone('s');
    expect(lease.holds([GUARD], 0)).toBe(true);
  });

  test('ends a vote only after the standby has answered a pulse sent after the vote was heard of', () => {
    const lease = leaseOf(['s', 900], ['w', 1_000, [{ standby: 's', number: 7 }]]);
    expect(lease.settledVotes('w')).toEqual([]);
    lease.answered('s', [], { sentAt: 1_001, now: 1_002 });
    expect(lease.settledVotes('w')).toEqual([7]);
  });
});

describe('a witness', () => {
  test('votes against an owner that it has not heard for 3 s, or 5 s while its link stands', () => {
    const witness = new Witness(0);
    witness.pulse('o', [], 1_000);
    expect(witness.isSilent('o', { now: 1_000 + SILENT_MS - 1, linked: false })).toBe(false);
    expect(witness.isSilent('o', { now: 1_000 + SILENT_MS, linked: false })).toBe(true);
    expect(witness.isSilent('o', { now: 1_000 + SILENT_MS, linked: true })).toBe(false);
    expect(witness.isSilent('o', { now: 1_000 + FROZEN_MS, linked: true })).toBe(true);
  });

  test('reports its votes until the owner says that they are settled', () => {
    const witness = new Witness(0);
    witness.vote('o', 's');
    const [vote] = witness.pulse('o', [], 1);
    expect(vote).toEqual({ standby: 's', number: expect.any(Number) });
    witness.vote('o', 's');
    // A settled earlier vote says nothing of the new one.
    expect(witness.pulse('o', [vote?.number ?? 0], 2)).toHaveLength(1);
    const [again] = witness.pulse('o', [], 3);
    expect(witness.pulse('o', [again?.number ?? 0], 4)).toEqual([]);
  });
});

/** Messages, pauses and losses of one owner, its standby and the other members, in steps of 100 ms. */
class World {
  readonly lease = new Lease('o');
  readonly witnesses: ReadonlyMap<string, Witness>;
  /** When the standby has won, it owns the room. */
  hasWon = false;
  #now = 0;
  #seed: number;
  readonly #members: readonly string[];
  readonly #cut = new Set<string>();
  readonly #frozen = new Map<string, number>();
  /** Time that each member has been awake. */
  readonly #awake = new Map<string, number>();
  /** When the latest message from one node to another arrives. */
  readonly #lastAt = new Map<string, number>();
  readonly #waiting: { at: number; to: string; run: () => void }[] = [];
  #round: { endsAt: number; granted: Set<string> } | undefined;

  constructor(seed: number, size: number) {
    this.#seed = seed * 2_654_435_761;
    this.#members = ['o', 's', ...Array.from({ length: size - 2 }, (_, i) => `w${i}`)];
    this.witnesses = new Map(this.#members.slice(1).map((name) => [name, new Witness(0)]));
    for (const name of this.#members) this.#awake.set(name, 0);
  }

  /** Returns whether the owner would act now. */
  get ownerActs(): boolean {
    return !this.#frozen.has('o') && this.lease.holds([{ node: 's', memberships: [this.#members] }], this.#now);
  }

  step(): void {
    this.#now += 100;
    for (const name of this.#members) if (!this.#frozen.has(name)) this.#awake.set(name, this.#awakeOf(name) + 100);
    this.#disturb();
    // Timers of a thawed process run before it reads what has arrived.
    if (!this.#frozen.has('o') && this.#now % 500 === 0) this.#beat();
    if (!this.#frozen.has('s') && !this.hasWon) this.#look();
    const due = this.#waiting.filter(({ at, to }) => at <= this.#now && !this.#frozen.has(to));
    for (const message of due) {
      this.#waiting.splice(this.#waiting.indexOf(message), 1);
      message.run();
    }
  }

  #random(): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#seed / 2 ** 32;
  }

  #awakeOf(name: string): number {
    return this.#awake.get(name) ?? 0;
  }

  #disturb(): void {
    for (const [name, until] of this.#frozen) if (until <= this.#now) this.#frozen.delete(name);
    const pick = (): string => this.#members[Math.floor(this.#random() * this.#members.length)] as string;
    if (this.#random() < 0.02) this.#frozen.set(pick(), this.#now + this.#random() * 9_000);
    if (this.#random() < 0.1) this.#cut.add(`${pick()} ${pick()}`);
    if (this.#random() < 0.02) this.#cut.clear();
  }

  /** Messages from one node to another arrive in order, or not at all. */
  #send([from, to]: readonly [string, string], run: () => void): void {
    const pair = `${from} ${to}`;
    if (this.#cut.has(pair) && this.#random() < 0.9) return;
    const delayMs = this.#random() < 0.9 ? 0 : this.#random() * 8_000;
    const at = Math.max(this.#now + delayMs, this.#lastAt.get(pair) ?? 0);
    this.#lastAt.set(pair, at);
    this.#waiting.push({ at, to, run });
  }

  #beat(): void {
    const sentAt = this.#now;
    for (const [name, witness] of this.witnesses) {
      const settled = this.lease.settledVotes(name);
      this.#send(['o', name], () => {
        const votes = witness.pulse('o', settled, this.#awakeOf(name));
        this.#send([name, 'o'], () => this.lease.answered(name, votes, { sentAt, now: this.#now }));
      });
    }
  }

  #look(): void {
    const own = this.witnesses.get('s') as Witness;
    const isSilent = (): boolean => own.isSilent('o', { now: this.#awakeOf('s'), linked: false });
    if (this.#round !== undefined && this.#round.endsAt <= this.#now) {
      this.hasWon = isSilent() && isMajority(this.#round.granted.size, this.#members);
      if (!this.hasWon) own.unvote('o', 's');
      this.#round = undefined;
      return;
    }
    if (this.#round !== undefined || !isSilent()) return;
    const round = { endsAt: this.#now + 500, granted: new Set(['s']) };
    this.#round = round;
    own.vote('o', 's');
    for (const [name, witness] of this.witnesses) {
      if (name === 's') continue;
      this.#send(['s', name], () => {
        if (!witness.isSilent('o', { now: this.#awakeOf(name), linked: false })) return witness.unvote('o', 's');
        witness.vote('o', 's');
        return this.#send([name, 's'], () => void round.granted.add(name));
      });
    }
  }
}

test.each([2, 3, 4, 5])('never lets an owner among %i members act once its standby has won', (size) => {
  let wins = 0;
  let acts = 0;
  for (let seed = 1; seed <= 300; seed += 1) {
    const world = new World(seed, size);
    for (let step = 0; step < 600; step += 1) {
      world.step();
      if (world.ownerActs) acts += 1;
      if (world.hasWon && world.ownerActs) throw new Error(`seed ${seed}: both own the room at step ${step}`);
    }
    if (world.hasWon) wins += 1;
  }
  expect(acts).toBeGreaterThan(10_000);
  // Two members are no majority without each other.
  if (size === 2) expect(wins).toBe(0);
  else expect(wins).toBeGreaterThan(20);
});
