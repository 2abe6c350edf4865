import type { Log } from '@bloom/log';
import { inTime, Timer, type Clock } from '@bloom/time';
import type { RoomWatcher } from '../fence.js';
import type { RoomHost } from '../room-host.js';
import type { RoomSnapshot } from '../room/room-snapshot.js';
import type { ClusterPort } from './cluster-port.js';
import type { OwnedRoom } from './directory.js';
import type { Lease } from './lease.js';
import { MAX_MIRROR } from './mirrors.js';
import type { Placement } from './placement.js';
import { Ward } from './wards.js';

/** Version of the member protocol that knows standbys. */
export const STANDBY_PROTOCOL = 3;
/** Interval of the pulses by which the other members know that this node lives. */
const PULSE_MS = 1_000;
const PULSE_TIMEOUT_MS = 2_000;
/** How long changes of a room are gathered. */
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
/** How long a move waits for the standby to forget the room. */
const RELEASE_MS = 300;
/** How often the progress of components is sent. */
const PROGRESS_MS = 5_000;

export interface StandbysOptions {
  port: ClusterPort;
  host: Pick<RoomHost, 'snapshot' | 'fence'>;
  placement: Pick<Placement, 'rankStandbys'>;
  lease: Lease;
  /** Returns whether a member announces a room with this id, which may be another room: it cannot open this one. */
  knows: (node: string, roomId: string) => boolean;
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
  #isPlacing = false;
  #progressAt = 0;
  /** True while this node may not act for a room. */
  #isCutOff = false;

  constructor(options: StandbysOptions) {
    this.#options = options;
    this.#pulse = new Timer(options.clock);
    this.#batch = new Timer(options.clock);
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
    ward.standby = undefined;
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
   * Resolves when the standby has forgotten the room or does not answer; with false if it may take the room over.
   */
  async release(roomId: string): Promise<boolean> {
    const ward = this.#wards.get(roomId);
    if (ward === undefined) return true;
    ward.isPaused = true;
    ward.standby = undefined;
    const { clock } = this.#options;
    await inTime(this.#dismiss(ward), { timeoutMs: RELEASE_MS, late: () => undefined, clock });

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

  /** `forgets`: the process has ended, so that it is no standby any more. */
  memberDown(node: string, forgets: boolean): void {
    if (forgets) this.#forgotten(node);
    else this.#lostAt.set(node, this.#options.clock.now());
  }

  /** Must be called when the process of a member has ended: it is no standby any more. */
  memberGone(node: string): void {
    this.#forgotten(node);
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
  }

  /** Returns a random number from 2 to 2^20 + 1. */
  #step(): number {
    return 2 + Number.parseInt(this.#options.newId().slice(0, 5), 16);
  }

  #holds(ward: Ward): boolean {
    return this.#options.lease.holds(ward.guards, this.#options.clock.now());
  }

  #forgotten(node: string): void {
    this.#lostAt.delete(node);
    for (const ward of [...this.#wards.values(), ...this.#over]) ward.forgotten(node);
    for (const ward of this.#over) if (!ward.isGuarded) this.#over.delete(ward);
  }

  #speakers(): string[] {
    const { port } = this.#options;

    return port.members().filter((node) => port.speaks(node, STANDBY_PROTOCOL));
  }

  /** Members that count for majorities: a lost one may still be alive, and vote. */
  #membership(): string[] {
    const { port, clock, lease } = this.#options;
    const before = clock.now() - LOST_MS;
    const lost = [...this.#lostAt].filter(([node, at]) => at >= before && !lease.isGone(node)).map(([node]) => node);

    return [...new Set([port.self, ...this.#speakers(), ...lost])].toSorted();
  }

  /** Tells the members that this node lives, and does what waits for a time. */
  #beat(): void {
    const { clock, lease } = this.#options;
    const now = clock.now();
    if (this.#wards.size > 0 || this.#over.size > 0) for (const node of this.#speakers()) void this.#ask(node, now);
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
        standby !== undefined && (this.#isMissing(standby, now) || this.#options.knows(standby, ward.roomId));
      if (isLost) ward.standby = undefined;
      if (isDue || !ward.guards.some(({ memberships }) => sameNames(memberships.at(-1), membership)))
        ward.isDirty = true;
    }
    for (const ward of [...this.#wards.values(), ...this.#over]) {
      for (const { node } of ward.guards) if (this.#hasExpired(node, now)) ward.forgotten(node);
      if (ward.dismissed.length > 0 && !ward.isBusy) void this.#dismiss(ward);
    }
    for (const ward of this.#over) if (!ward.isGuarded) this.#over.delete(ward);
    for (const [node, at] of this.#lostAt) if (now - at > GUARD_MS || lease.isGone(node)) this.#lostAt.delete(node);
    this.#checkFences();
    this.#sendAll();
  }

  async #ask(node: string, sentAt: number): Promise<void> {
    const { port, lease, clock } = this.#options;
    const pulse = { type: 'pulse', node: port.self, settled: lease.settledVotes(node) } as const;
    const answer = await port.call(node, pulse, { timeoutMs: PULSE_TIMEOUT_MS }).catch(() => undefined);
    if (answer === undefined) return;
    lease.answered(node, answer.votes, { sentAt, now: clock.now() });
    this.#checkFences();
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

  #hasExpired(node: string, now: number): boolean {
    return now - (this.#lostAt.get(node) ?? now) > GUARD_MS;
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
    const { placement, clock, lease, knows } = this.#options;
    this.#isPlacing = true;
    try {
      const now = clock.now();
      const held = new Map<string, number>();
      for (const node of this.standbys.values()) held.set(node, (held.get(node) ?? 0) + 1);
      const isAllowed = (node: string, roomId: string): boolean =>
        lease.isMet(node, now) &&
        now - (this.#refusedAt.get(node) ?? -AVOIDED_MS) >= AVOIDED_MS &&
        !knows(node, roomId);
      const some = wards.filter(({ roomId }) => this.#speakers().some((node) => isAllowed(node, roomId)));
      if (some.length === 0) return;
      const choose = await placement.rankStandbys(isAllowed);
      for (const ward of some) {
        if (this.#wards.get(ward.roomId) !== ward || ward.standby !== undefined || ward.isPaused) continue;
        const node = choose(ward.roomId, held);
        if (node === undefined) continue;
        if (!this.#raise(ward)) continue;
        held.set(node, (held.get(node) ?? 0) + 1);
        ward.appoint(node);
        void this.#send(ward);
      }
    } finally {
      this.#isPlacing = false;
    }
  }

  /**
   * Gives the room an epoch above all that were given to standbys, so that it wins against former ones. Returns false
   * if one of them may own the room: it would give the room up, and nobody would have it.
   */
  #raise(ward: Ward): boolean {
    if (this.isFenced(ward.roomId)) return false;
    if (this.#wards.get(ward.roomId) === ward && ward.raise()) this.#options.announce(ward.room);

    return true;
  }

  async #send(ward: Ward): Promise<void> {
    const { port, clock, log } = this.#options;
    const { standby } = ward;
    if (standby === undefined || ward.isBusy) return;
    const text = this.#textOf(ward);
    if (text === undefined) {
      ward.standby = undefined;
      return void this.#dismiss(ward);
    }
    const members = this.#membership();
    const [guard] = ward.guards.filter(({ node }) => node === standby);
    ward.isDirty = false;
    if (text === ward.text && sameNames(guard?.memberships.at(-1), members)) return;
    ward.isBusy = true;
    const { roomId, createdAt } = ward.room;
    const mirror = {
      type: 'mirrorRoom',
      node: port.self,
      createdAt,
      epoch: ward.sending(members),
      members,
      room: text,
    } as const;
    const answer = await port.call(standby, mirror, { timeoutMs: MIRROR_TIMEOUT_MS }).catch(() => undefined);
    ward.isBusy = false;
    const isKept = answer !== undefined && 'kept' in answer && answer.kept;
    if (answer === undefined || ward.standby !== standby || (!isKept && !('refused' in answer))) ward.isDirty = true;
    else if ('refused' in answer) {
      this.#refusedAt.set(standby, clock.now());
      ward.forgotten(standby);
      log.info('room.standby_refused', { roomId, node: standby, reason: answer.refused.slice(0, 200) });
    } else {
      ward.confirmed(standby, members);
      if (ward.text === undefined) log.debug('room.standby', { roomId, node: standby });
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
      .filter(([node]) => members.has(node))
      .map(async ([node, epoch]) => {
        const message = { type: 'forgetRoom', node: port.self, roomId: ward.roomId, epoch } as const;
        const isForgotten = await port.call(node, message, { timeoutMs: MIRROR_TIMEOUT_MS }).catch(() => false);
        const isStill = ward.dismissed.some(([other, given]) => other === node && given === epoch);
        if (isForgotten && isStill) ward.forgotten(node);
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

function sameNames(a: readonly string[] | undefined, b: readonly string[]): boolean {
  return a?.length === b.length && a.every((name, i) => name === b[i]);
}
