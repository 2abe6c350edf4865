import type { Log } from '@bloom/log';
import { inTime, Timer, type Clock } from '@bloom/time';
import type { RoomWatcher } from '../fence.js';
import type { RoomHost } from '../room-host.js';
import type { RoomSnapshot } from '../room/room-snapshot.js';
import type { ClusterPort } from './cluster-port.js';
import type { OwnedRoom } from './directory.js';
import type { Guard, Lease } from './lease.js';
import { MAX_MIRROR } from './mirrors.js';
import type { Placement } from './placement.js';
import { type Candidacy, sameVoters, type Voter } from './standby-states.js';
import { Ward } from './wards.js';
import { voteKey } from './witness.js';

/** Version of the member protocol that knows standbys. */
export const STANDBY_PROTOCOL = 3;
/** Interval of the pulses by which the other members know that this node lives. */
const PULSE_MS = 1_000;
const PULSE_TIMEOUT_MS = 2_000;
/** How long changes of a room are gathered, and answers that may let this node act again. */
const BATCH_MS = 50;
const MIRROR_TIMEOUT_MS = 2_000;
/** How long a standby may be without a link before the room gets another one. */
const MISSING_MS = 3_000;
/** How long a lost member counts for majorities. */
const LOST_MS = 30_000;
/** How long after the loss of its link a node may still take a room over; it forgets the room earlier. */
const GUARD_MS = 11 * 60_000;
/** How long a node that has refused a room is not asked again. */
const AVOIDED_MS = 10_000;
/** How long a move waits until no standby can take the room over. */
const RELEASE_MS = 300;
/** Rooms whose former standbys a member is told to deny with one pulse. */
const MAX_REVOKED = 1_000;
/** How often the progress of components is sent. */
const PROGRESS_MS = 5_000;

export interface StandbysOptions {
  port: ClusterPort;
  /** Identifies this process. */
  process: string;
  host: Pick<RoomHost, 'snapshot' | 'fence' | 'nameStandby'>;
  placement: Pick<Placement, 'rankStandbys'>;
  lease: Lease;
  /** Returns whether a member announces another room with the id of this one, which it cannot open. */
  hasOther: (node: string, room: OwnedRoom) => boolean;
  /** Announces a room of this node under a new epoch. */
  announce: (room: OwnedRoom) => void;
  /** Returns ids that begin with random hexadecimal digits. */
  newId: () => string;
  log: Log;
  clock: Clock;
}

/** Gives each room of this node a standby, and keeps its state there up to date. */
export class Standbys implements RoomWatcher {
  readonly #options: StandbysOptions;
  readonly #wards = new Map<string, Ward>();
  /** Wards of rooms that have ended or moved, until no guard is left. */
  readonly #over = new Set<Ward>();
  readonly #lostAt = new Map<string, number>();
  readonly #refusedAt = new Map<string, number>();
  /** Members that have not answered lately, although this node was awake. */
  #unmet: ReadonlySet<string> = new Set();
  #beatAt = Number.NEGATIVE_INFINITY;
  readonly #pulse: Timer;
  readonly #batch: Timer;
  /** Looks at the fences of all rooms once for the answers of many members. */
  readonly #check: Timer;
  #isPlacing = false;
  #progressAt = 0;
  /** True while this node may not act for a room. */
  #isCutOff = false;

  constructor(options: StandbysOptions) {
    this.#options = options;
    this.#pulse = new Timer(options.clock);
    this.#batch = new Timer(options.clock);
    this.#check = new Timer(options.clock);
    this.#pulse.repeat(PULSE_MS, () => this.#beat());
  }

  /** The standby of each room that has one. */
  get standbys(): ReadonlyMap<string, string> {
    const all = [...this.#wards].flatMap(([id, { standby }]) =>
      standby === undefined ? [] : [[id, standby] as const],
    );

    return new Map(all);
  }

  ward(roomId: string): Ward | undefined {
    return this.#wards.get(roomId);
  }

  /** Adds a room that runs here from now on, or its new announcement. */
  owned(room: OwnedRoom): void {
    const ward = this.#wards.get(room.roomId);
    if (ward !== undefined && ward.room.createdAt === room.createdAt) ward.room = room;
    else {
      this.ended(room.roomId);
      this.#wards.set(room.roomId, new Ward(room, () => this.#step()));
    }
    this.#soon();
  }

  /** Must be called when the room has ended or moved. */
  ended(roomId: string): void {
    const ward = this.#wards.get(roomId);
    if (ward === undefined) return;
    this.#wards.delete(roomId);
    ward.isOver = true;
    ward.dismiss();
    if (!ward.isGuarded) return;
    this.#over.add(ward);
    this.#dismiss(ward);
  }

  /** Must be called when the state of a room has changed. */
  changed(roomId: string): void {
    const ward = this.#wards.get(roomId);
    if (ward === undefined || ward.isDirty) return;
    ward.isDirty = true;
    this.#soon();
  }

  /**
   * Prepares a move of the room: it has no standby meanwhile, and its next epoch is one that no standby has been given.
   * Resolves with false unless the standby has forgotten the room, or enough members will deny it their votes.
   */
  async release(roomId: string): Promise<boolean> {
    const ward = this.#wards.get(roomId);
    if (ward === undefined) return true;
    ward.isPaused = true;
    ward.dismiss();
    const { clock } = this.#options;
    const silent = ward.dismissed.some(({ node }) => !this.#options.lease.isMet(node, clock.now()));
    const powerless = Promise.all([this.#dismiss(ward), silent ? this.#askAll() : undefined]);
    await inTime(powerless, { timeoutMs: RELEASE_MS, late: () => undefined, clock });

    return this.#raise(ward);
  }

  /** Must be called when a room that was released has not moved. */
  restore(roomId: string): void {
    const ward = this.#wards.get(roomId);
    if (ward !== undefined) ward.isPaused = false;
  }

  memberUp(node: string): void {
    this.#lostAt.delete(node);
  }

  memberDown(node: string): void {
    this.#lostAt.set(node, this.#options.clock.now());
  }

  /** Must be called when the process of a member has ended: it takes no room over any more. */
  memberGone(node: string): void {
    this.#lostAt.delete(node);
    for (const ward of this.#all()) ward.ended(node, { now: this.#options.clock.now() });
    this.#settle();
    this.#recount();
  }

  /** Returns whether this node may not act for the room: a standby may have taken it over. */
  isFenced(roomId: string): boolean {
    const ward = this.#wards.get(roomId);
    if (ward === undefined) return false;

    return ward.isTaken || (ward.isGuarded && !this.#holds(ward));
  }

  close(): void {
    this.#pulse.stop();
    this.#batch.stop();
    this.#check.stop();
  }

  /** Returns a random number from 2 to 2^20 + 1. */
  #step(): number {
    return 2 + Number.parseInt(this.#options.newId().slice(0, 5), 16);
  }

  #holds(ward: Ward): boolean {
    return this.#options.lease.holds(ward.guards, this.#options.clock.now());
  }

  /** Wards of all rooms here, and of those that have ended or moved. */
  #all(): Ward[] {
    return [...this.#wards.values(), ...this.#over];
  }

  /** Forgets guards that cannot take their rooms over, nor have done so. */
  #settle(): void {
    const { lease, clock } = this.#options;
    const now = clock.now();
    const canWin = (guard: Guard): boolean => lease.canWin(guard, now);
    const isLost = ({ node }: Guard): boolean => now - (this.#lostAt.get(node) ?? now) > GUARD_MS;
    const isLong = ({ endedAt }: { endedAt: number | undefined }): boolean => now - (endedAt ?? now) > GUARD_MS;
    for (const ward of this.#all()) ward.settle(canWin, { isLost, isLong });
    for (const ward of this.#over) if (!ward.isGuarded) this.#over.delete(ward);
  }

  #isGuard(node: string): boolean {
    return this.#all().some(({ guards }) => guards.some((guard) => guard.node === node));
  }

  /** Sends the standbys the membership soon: another process of a member counts, or none. */
  #recount(): void {
    for (const ward of this.#wards.values()) ward.isDirty = true;
    this.#soon();
  }

  #speakers(): string[] {
    const { port } = this.#options;

    return port.members().filter((node) => port.speaks(node, STANDBY_PROTOCOL));
  }

  /** Processes that count for majorities: a lost one may still be alive, and vote. */
  #membership(): Voter[] {
    const { port, process: own, clock, lease } = this.#options;
    const before = clock.now() - LOST_MS;
    const lost = [...this.#lostAt].filter(([node, at]) => at >= before && !lease.isGone(node)).map(([node]) => node);
    const others = [...new Set([...this.#speakers(), ...lost])].toSorted().flatMap((node) => {
      const process = lease.processOf(node);
      return process === undefined ? [] : [{ node, process }];
    });

    return [{ node: port.self, process: own }, ...others];
  }

  /** Asks the members for their support, and does what waits for a time. */
  #beat(): void {
    const { clock, lease, host } = this.#options;
    const now = clock.now();
    const isDue = now - this.#progressAt >= PROGRESS_MS;
    if (isDue) this.#progressAt = now;
    // After a pause of this process, nobody has answered lately.
    const hasPaused = now - this.#beatAt > 2 * PULSE_MS;
    this.#beatAt = now;
    this.#unmet = new Set(hasPaused ? [] : this.#speakers().filter((node) => !lease.isMet(node, now)));
    const membership = this.#membership();
    for (const ward of this.#wards.values()) {
      const { standby } = ward;
      const isLost =
        standby !== undefined && (this.#isMissing(standby, now) || this.#options.hasOther(standby, ward.room));
      if (isLost) ward.dismiss();
      if (ward.standby === undefined && ward.isNamed) {
        ward.isNamed = false;
        host.nameStandby(ward.roomId, undefined);
      }
      if (isDue || !sameVoters(ward.sent, membership)) ward.isDirty = true;
    }
    void this.#askAll();
    this.#settle();
    for (const ward of this.#all()) if (ward.dismissed.length > 0 && !ward.isBusy) void this.#dismiss(ward);
    for (const [node, at] of this.#lostAt)
      if (lease.isGone(node) || (now - at > GUARD_MS && !this.#isGuard(node))) this.#lostAt.delete(node);
    this.#checkFences();
    this.#sendAll();
  }

  /** Tells the members that this node lives, and whom they are to deny their votes. */
  async #askAll(): Promise<void> {
    if (this.#wards.size === 0 && this.#over.size === 0) return;
    const wards = this.#all().filter(({ dismissed }) => dismissed.length > 0);
    const sentAt = this.#options.clock.now();
    await Promise.all(this.#speakers().map((node) => this.#ask(node, { wards, sentAt })));
  }

  async #ask(node: string, { wards, sentAt }: { wards: readonly Ward[]; sentAt: number }): Promise<void> {
    const { port, process, lease, clock, host } = this.#options;
    const before = lease.processOf(node);
    const revocations: [Ward, Candidacy][] = [];
    for (const ward of wards) {
      if (revocations.length >= MAX_REVOKED) break;
      for (const revoked of ward.revocationsFor(node, before)) revocations.push([ward, revoked]);
    }
    const revoked = revocations.map(([, each]) => each);
    const pulse = { type: 'pulse', node: port.self, process, settled: lease.settledVotes(node), revoked } as const;
    const answer = await port.call(node, pulse, { timeoutMs: PULSE_TIMEOUT_MS }).catch(() => undefined);
    if (answer === undefined || !lease.answered(node, answer, { sentAt, now: clock.now() })) return;
    const voted = new Set(answer.votes.map((vote) => voteKey(vote.standby, vote.process)));
    const hasVoted = (guard: Voter): boolean => voted.has(voteKey(guard.node, guard.process));
    if (answer.noted)
      for (const [ward, { epoch }] of revocations) ward.revoked({ node, process: answer.process }, epoch, hasVoted);
    if (answer.process !== before) {
      for (const ward of this.#all()) ward.ended(node, { process: answer.process, now: clock.now() });
      this.#recount();
    }
    if (revocations.length > 0) this.#soon();
    // While nothing is held back, the next pulse is soon enough.
    if ((this.#isCutOff || host.fence.isHolding) && !this.#check.running)
      this.#check.start(BATCH_MS, () => this.#checkFences());
  }

  /** Logs when this node may not act for its rooms, and publishes the events that it held back once it may. */
  #checkFences(): void {
    const { host, log } = this.#options;
    let fenced = 0;
    for (const roomId of this.#wards.keys()) {
      if (this.isFenced(roomId)) fenced += 1;
      else host.fence.release(roomId);
    }
    if (fenced > 0 === this.#isCutOff) return;
    this.#isCutOff = fenced > 0;
    if (this.#isCutOff) log.warn('node.cut_off', { rooms: fenced });
    else log.info('node.not_cut_off', {});
  }

  #isMissing(node: string, now: number): boolean {
    const { port } = this.#options;
    const lostAt = this.#lostAt.get(node);
    if (lostAt !== undefined) return now - lostAt >= MISSING_MS;

    return !port.speaks(node, STANDBY_PROTOCOL) || this.#unmet.has(node);
  }

  #soon(): void {
    if (!this.#batch.running) this.#batch.start(BATCH_MS, () => this.#sendAll());
  }

  #sendAll(): void {
    if (this.#wards.size === 0 || this.#speakers().length === 0) return;
    const wards = [...this.#wards.values()].filter(({ isPaused, isTaken }) => !isPaused && !isTaken);
    const without = wards.filter((ward) => ward.standby === undefined && this.#needsStandby(ward));
    if (without.length > 0 && !this.#isPlacing) void this.#place(without);
    for (const ward of wards) if (ward.isDirty && !ward.isBusy && ward.standby !== undefined) void this.#send(ward);
  }

  /** Returns whether the room can have a standby now, and logs once why not. */
  #needsStandby(ward: Ward): boolean {
    const { host } = this.#options;
    const text = this.#textOf(ward);
    if (text === undefined) return false;
    // The room has none until there is another member, which is nobody's fault.
    return host.snapshot(ward.roomId) !== undefined && !this.isFenced(ward.roomId);
  }

  /** Returns the room's state as JSON; undefined if it cannot have a standby, which is logged once for each reason. */
  #textOf(ward: Ward): string | undefined {
    const { host, log } = this.#options;
    const snapshot = host.snapshot(ward.roomId);
    if (snapshot === undefined) return undefined;
    const text = typeof snapshot === 'string' ? '' : JSON.stringify(snapshot);
    const why = typeof snapshot === 'string' ? snapshot : whyAlone(snapshot, text);
    if (why !== undefined && ward.why !== why) log.warn('room.no_standby', { roomId: ward.roomId, reason: why });
    ward.why = why;

    return why === undefined ? text : undefined;
  }

  /** Chooses standbys, all with one survey: the least-loaded members, on other hosts if there are any. */
  async #place(wards: readonly Ward[]): Promise<void> {
    const { placement, clock, lease, hasOther } = this.#options;
    this.#isPlacing = true;
    try {
      const now = clock.now();
      const held = new Map<string, number>();
      for (const node of this.standbys.values()) held.set(node, (held.get(node) ?? 0) + 1);
      const hasOtherOf = (node: string, room: OwnedRoom | undefined): boolean =>
        room !== undefined && hasOther(node, room);
      const isAllowed = (node: string, roomId: string): boolean =>
        lease.isMet(node, now) &&
        now - (this.#refusedAt.get(node) ?? -AVOIDED_MS) >= AVOIDED_MS &&
        !hasOtherOf(node, this.#wards.get(roomId)?.room);
      const some = wards.filter(({ roomId }) => this.#speakers().some((node) => isAllowed(node, roomId)));
      if (some.length === 0) return;
      const choose = await placement.rankStandbys(isAllowed);
      for (const ward of some) {
        if (this.#wards.get(ward.roomId) !== ward || ward.standby !== undefined || ward.isPaused) continue;
        const node = choose(ward.roomId, held);
        const process = node === undefined ? undefined : lease.processOf(node);
        if (node === undefined || process === undefined || !this.#raise(ward)) continue;
        held.set(node, (held.get(node) ?? 0) + 1);
        ward.appoint({ node, process });
        void this.#send(ward);
      }
    } finally {
      this.#isPlacing = false;
    }
  }

  /**
   * Gives the room an epoch above all that were given to standbys. Returns false if a former one may take the room
   * over, now or once this node is lost: the next one would not know.
   */
  #raise(ward: Ward): boolean {
    if (this.isFenced(ward.roomId) || !ward.areFormerPowerless) return false;
    if (this.#wards.get(ward.roomId) === ward && ward.raise()) this.#options.announce(ward.room);

    return true;
  }

  async #send(ward: Ward): Promise<void> {
    const { port, process, host, clock, log } = this.#options;
    const { standby } = ward;
    if (standby === undefined || ward.isBusy) return;
    const text = this.#textOf(ward);
    if (text === undefined) {
      ward.dismiss();
      return void this.#dismiss(ward);
    }
    const membership = this.#membership();
    ward.isDirty = false;
    if (text === ward.text && sameVoters(ward.sent, membership)) return;
    const sending = ward.sending(membership);
    if (sending === undefined) return;
    ward.isBusy = true;
    const { roomId, createdAt } = ward.room;
    const { epoch, members, to } = sending;
    const mirror = { type: 'mirrorRoom', node: port.self, process, createdAt, ...sending, room: text } as const;
    const answer = await port.call(standby, mirror, { timeoutMs: MIRROR_TIMEOUT_MS }).catch(() => undefined);
    ward.isBusy = false;
    const isKept = answer !== undefined && 'kept' in answer && answer.kept;
    if (answer === undefined || ward.standby !== standby || (!isKept && !('refused' in answer))) ward.isDirty = true;
    else if ('refused' in answer) {
      this.#refusedAt.set(standby, clock.now());
      ward.forgotten({ node: standby, process: to }, epoch);
      log.info('room.standby_refused', { roomId, node: standby, reason: answer.refused.slice(0, 200) });
    } else {
      ward.confirmed(epoch, members);
      if (ward.text === undefined) {
        log.debug('room.standby', { roomId, node: standby });
        ward.isNamed = answer.address !== undefined;
        host.nameStandby(roomId, answer.address);
      }
      ward.text = text;
    }
    if (ward.isDirty || ward.isOver) this.#soon();
  }

  /** Lets former standbys forget the room. */
  #dismiss(ward: Ward): Promise<void> {
    ward.dismissing ??= this.#dismissAll(ward).finally(() => delete ward.dismissing);

    return ward.dismissing;
  }

  async #dismissAll(ward: Ward): Promise<void> {
    const { port } = this.#options;
    const members = new Set(port.members());
    const calls = ward.dismissed
      .filter(({ node }) => members.has(node))
      .map(async ({ node, process, epoch }) => {
        const message = { type: 'forgetRoom', node: port.self, to: process, roomId: ward.roomId, epoch } as const;
        const isForgotten = await port.call(node, message, { timeoutMs: MIRROR_TIMEOUT_MS }).catch(() => false);
        if (isForgotten) ward.forgotten({ node, process }, epoch);
      });
    await Promise.all(calls);
  }
}

/** Returns why a room that could move can have no standby; undefined if it can. */
function whyAlone({ components = [] }: RoomSnapshot, text: string): string | undefined {
  // A living node hands its files over; those of a lost one are lost with it.
  if (components.some(({ type }) => type === 'hls')) return 'its hls component needs the files of its node';

  return text.length > MAX_MIRROR ? `its state has more than ${MAX_MIRROR} characters` : undefined;
}
