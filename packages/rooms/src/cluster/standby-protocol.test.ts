// Never two owners: a room, its owner, its standbys and the other members, with delays, losses, pauses and restarts.
import { expect, test } from '@jest/globals';
import type { RoomRef } from '../room/room-messages.js';
import { Lease } from './lease.js';
import { hasVotes, type Vote, type Voter } from './standby-states.js';
import { Ward } from './wards.js';
import { type Contested, Witness, voteKey } from './witness.js';

const STEP_MS = 100;
const VOTE_MS = 500;
const ROOM = { roomId: 'kitchen', createdAt: 1 };

/** What a standby holds of the room. */
interface Held {
  epoch: number;
  members: readonly Voter[];
}

/** A process of a node. */
class Process {
  awakeMs = 0;
  frozenUntil = 0;
  isAlive = true;
  held: Held | undefined;
  hasWon = false;
  round: { endsAt: number; votes: Map<string, Vote>; hasProof: boolean } | undefined;
  readonly witness: Witness;

  constructor(
    readonly node: string,
    readonly id: string,
  ) {
    this.witness = new Witness(id, 0);
  }
}

const contestedBy = ({ node, id }: Process): Contested => ({ owner: 'o', ownerProcess: 'o1', node, process: id });

class World {
  readonly processes = new Map<string, Process>();
  readonly lease = new Lease('o');
  readonly ward: Ward;
  now = 0;
  wins = 0;
  replaced = 0;
  restarts = 0;
  acts = 0;
  readonly #names: readonly string[];
  #ownerEnded = false;
  #ownerFrozenUntil = 0;
  #seed: number;
  #ids = 0;
  #metAt = new Map<string, number>();
  readonly #cut = new Set<string>();
  readonly #lastAt = new Map<string, number>();
  #waiting: { at: number; from: Process | 'o'; to: Process | 'o'; run: () => void }[] = [];

  constructor(seed: number, size: number) {
    this.#seed = Math.imul(seed, 2_654_435_761) >>> 0;
    this.#names = Array.from({ length: size - 1 }, (_, i) => `m${i}`);
    for (const name of this.#names) this.#start(name);
    this.ward = new Ward({ ...ROOM, ref: {} as RoomRef }, () => 2 + Math.floor(this.#random() * 1_000));
  }

  get ownerActs(): boolean {
    return !this.#ownerEnded && this.#ownerFrozenUntil <= this.now && this.lease.holds(this.ward.guards, this.now);
  }

  step(): void {
    this.now += STEP_MS;
    this.#disturb();
    for (const each of this.processes.values()) if (each.frozenUntil <= this.now) each.awakeMs += STEP_MS;
    if (!this.#ownerEnded && this.#ownerFrozenUntil <= this.now && this.now % 500 === 0) this.#beat();
    for (const each of this.processes.values()) if (each.frozenUntil <= this.now) this.#look(each);
    const isAwake = (to: Process | 'o'): boolean =>
      to === 'o' ? this.#ownerFrozenUntil <= this.now : to.frozenUntil <= this.now;
    const due = this.#waiting.filter(({ at, to }) => at <= this.now && isAwake(to));
    this.#waiting = this.#waiting.filter((message) => !due.includes(message));
    for (const { to, run } of due) if (to === 'o' ? !this.#ownerEnded : to.isAlive) run();
    if (this.ownerActs) this.acts += 1;
  }

  #random(): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
    return this.#seed / 2 ** 32;
  }

  #start(name: string): void {
    this.#ids += 1;
    this.processes.set(name, new Process(name, `p${this.#ids}`));
  }

  #disturb(): void {
    const pick = (): string => ['o', ...this.#names][Math.floor(this.#random() * (this.#names.length + 1))] as string;
    if (this.#random() < 0.02) {
      const [name, until] = [pick(), this.now + this.#random() * 9_000];
      const frozen = this.processes.get(name);
      if (frozen === undefined) this.#ownerFrozenUntil = until;
      else frozen.frozenUntil = until;
    }
    if (this.#random() < 0.1) this.#cut.add(`${pick()} ${pick()}`);
    if (this.#random() < 0.02) this.#cut.clear();
    if (this.#random() < 0.01) this.#restart(pick());
    if (this.#random() < 0.0005) this.#ownerEnded = true;
  }

  /** The owner hears of the end at once, or from the next process. */
  #restart(name: string): void {
    const former = this.processes.get(name);
    if (former === undefined) return;
    former.isAlive = false;
    this.restarts += 1;
    this.#start(name);
    if (this.#ownerEnded || this.#ownerFrozenUntil > this.now || this.#random() < 0.5) return;
    this.#waiting = this.#waiting.filter(({ from }) => from !== former);
    this.lease.gone(name, { now: this.now, isSure: true });
    this.ward.ended(name, { now: this.now });
  }

  /** Messages from one process to another arrive in order, or not at all. */
  #send(from: Process | 'o', to: Process | 'o', run: () => void): void {
    const [a, b] = [from, to].map((each) => (each === 'o' ? 'o' : each.id)) as [string, string];
    const names = [from, to].map((each) => (each === 'o' ? 'o' : each.node)).join(' ');
    if (this.#cut.has(names) && this.#random() < 0.9) return;
    const delayMs = this.#random() < 0.9 ? 0 : this.#random() * 8_000;
    const at = Math.max(this.now + delayMs, this.#lastAt.get(`${a} ${b}`) ?? 0);
    this.#lastAt.set(`${a} ${b}`, at);
    this.#waiting.push({ at, from, to, run });
  }

  /** What the owner does every so often, as `Standbys` does it. */
  #beat(): void {
    const { ward, lease } = this;
    const sentAt = this.now;
    const { standby } = ward;
    if (standby !== undefined && this.now - (this.#metAt.get(standby) ?? 0) > 3_000) ward.dismiss();
    for (const [name, member] of this.processes) {
      const before = lease.processOf(name);
      const revoked = ward.revocationsFor(name, before);
      const pulse = { process: 'o1', settled: lease.settledVotes(name), revoked };
      this.#send('o', member, () => {
        const answer = member.witness.pulse('o', pulse, member.awakeMs);
        this.#send(member, 'o', () => {
          if (!lease.answered(name, answer, { sentAt, now: this.now })) return;
          if (lease.isMet(name, this.now)) this.#metAt.set(name, sentAt);
          const voted = new Set(answer.votes.map((vote) => voteKey(vote.standby, vote.process)));
          for (const { epoch } of revoked)
            ward.revoked({ node: name, process: answer.process }, epoch, ({ node, process }) =>
              voted.has(voteKey(node, process)),
            );
          if (before !== answer.process) ward.ended(name, { process: answer.process, now: this.now });
        });
      });
    }
    ward.settle((guard) => lease.canWin(guard, this.now), { isLost: () => false, isLong: () => false });
    for (const { node, process, epoch } of ward.dismissed) {
      const member = this.processes.get(node);
      if (member === undefined) continue;
      this.#send('o', member, () => {
        if (member.id !== process || member.hasWon) return;
        if ((member.held?.epoch ?? Number.POSITIVE_INFINITY) <= epoch) member.held = undefined;
        this.#send(member, 'o', () => ward.forgotten({ node, process }, epoch));
      });
    }
    this.#appoint();
    this.#mirror();
  }

  #appoint(): void {
    const { ward, lease } = this;
    if (ward.standby !== undefined || !this.ownerActs || !ward.areFormerPowerless) return;
    const met = this.#names.filter((name) => lease.isMet(name, this.now));
    const node = met[Math.floor(this.#random() * met.length)];
    const process = node === undefined ? undefined : lease.processOf(node);
    if (node === undefined || process === undefined) return;
    ward.raise();
    ward.appoint({ node, process });
    this.replaced += 1;
  }

  #mirror(): void {
    const { ward, lease } = this;
    const others = this.#names.flatMap((node) => {
      const process = lease.processOf(node);
      // A member that has been lost for long does not count any more.
      return process === undefined || this.now - (this.#metAt.get(node) ?? 0) > 8_000 ? [] : [{ node, process }];
    });
    const member = this.processes.get(ward.standby ?? '');
    const sending = ward.sending([{ node: 'o', process: 'o1' }, ...others]);
    if (member === undefined || sending === undefined) return;
    const { epoch, members, to } = sending;
    this.#send('o', member, () => {
      if (member.id !== to || member.hasWon || (member.held?.epoch ?? 0) > epoch) return;
      member.held = { epoch, members };
      this.#send(member, 'o', () => ward.confirmed(epoch, members));
    });
  }

  /** What a standby does, as `Takeovers` does it. */
  #look(me: Process): void {
    const { held, round, witness } = me;
    const proven = this.#ownerEnded;
    const isSilent = proven || witness.isSilent('o', { now: me.awakeMs, linked: false });
    if (round !== undefined) {
      if (round.endsAt > this.now) return;
      me.round = undefined;
      const count = { votes: round.votes, self: me.node, hasProof: round.hasProof };
      me.hasWon = held !== undefined && isSilent && hasVotes({ owner: 'o', roomId: 'kitchen', ...held }, count);
      if (me.hasWon) this.wins += 1;
      else witness.unvote(contestedBy(me));
      return;
    }
    if (held === undefined || me.hasWon || !isSilent) return;
    const room = { ...ROOM, epoch: held.epoch };
    const grant = (voter: Process): Vote => {
      voter.witness.vote(contestedBy(me));
      const denied = voter.witness.hasRevoked('o', room) ? ['kitchen'] : [];
      return { granted: true, process: voter.id, denied };
    };
    const asked = { endsAt: this.now + VOTE_MS, votes: new Map([[me.node, grant(me)]]), hasProof: proven };
    me.round = asked;
    for (const voter of this.processes.values()) {
      if (voter === me) continue;
      this.#send(me, voter, () => {
        if (!proven && !voter.witness.isSilent('o', { now: voter.awakeMs, linked: false }))
          return voter.witness.unvote(contestedBy(me));
        const vote = grant(voter);
        return this.#send(voter, me, () => void asked.votes.set(voter.node, vote));
      });
    }
  }
}

test.each([2, 3, 4, 5])('among %i members, a room that one process has taken over is nobody else', (size) => {
  const sum = { wins: 0, acts: 0, replaced: 0, restarts: 0 };
  for (let seed = 1; seed <= 200; seed += 1) {
    const world = new World(seed, size);
    for (let step = 0; step < 900; step += 1) {
      world.step();
      if (world.wins > 1) throw new Error(`seed ${seed}: two standbys have taken the room over by step ${step}`);
      if (world.wins > 0 && world.ownerActs)
        throw new Error(`seed ${seed}: the owner acts at step ${step}, after the room was taken over`);
    }
    for (const key of ['wins', 'acts', 'replaced', 'restarts'] as const) sum[key] += world[key];
  }
  expect(sum.acts).toBeGreaterThan(10_000);
  expect(sum.replaced).toBeGreaterThan(200);
  expect(sum.restarts).toBeGreaterThan(200);
  expect(sum.wins).toBeGreaterThan(10);
});
