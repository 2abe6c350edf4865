import { nodeOf } from '@bloom/actors';
import type { Log } from '@bloom/log';
import { AwakeClock, sleep, type Clock } from '@bloom/time';
import type { RoomHost } from '../room-host.js';
import type { Carry } from '../room/room-messages.js';
import type { ClusterPort } from './cluster-port.js';
import type { Directory, OwnedRoom } from './directory.js';
import { ExpectedRooms } from './expected-rooms.js';
import { Lease } from './lease.js';
import type { MirrorAnswer, MirroredRoom, MirrorUpdate } from './mirrors.js';
import type { Placement } from './placement.js';
import type { Campaign, Vote } from './standby-states.js';
import { STANDBY_PROTOCOL, Standbys } from './standbys.js';
import { Takeovers } from './takeovers.js';
import { type Pulse, type PulseAnswer, Witness } from './witness.js';

/** Times at which a port mapper is asked for a node whose link was reset: it may notice the end of a process later. */
const PROOF_AT_MS = [0, 20, 80, 200, 400, 800, 1_600] as const;
/** How long after its start a node may not have met all members. */
const JOINING_MS = 2_000;
const AWAITED_TIMEOUT_MS = 1_000;
/** How long a standby may take to forget a room that has ended. */
const FORGOTTEN_MS = 50;

export interface StandbyOptions {
  port: ClusterPort;
  host: Pick<
    RoomHost,
    | 'snapshot'
    | 'fence'
    | 'holdRoom'
    | 'draining'
    | 'giveRoom'
    | 'roomRef'
    | 'relayRef'
    | 'createdAt'
    | 'relayed'
    | 'address'
    | 'nameStandby'
  >;
  placement: Pick<Placement, 'rankStandbys'>;
  directory: Directory;
  /** Announces a room of this node, or its new epoch. */
  own: (room: OwnedRoom) => void;
  /** Withdraws the announcement of a room that has gone on elsewhere. */
  withdraw: (room: OwnedRoom) => void;
  /**
   * Set if this node's rooms have standbys and it is one (`JF_STANDBY`). Resolves with whether the port mapper of the
   * node's host lists it; undefined if it cannot be asked.
   */
  isListed: ((node: string) => Promise<boolean | undefined>) | undefined;
  /** Returns ids that begin with random hexadecimal digits. */
  newId: () => string;
  log: Log;
  clock: Clock;
}

/**
 * Lets the rooms of a lost node go on at their standbys (docs/reference/moving.md). Without `isListed` this node only
 * answers the questions of those that have standbys.
 */
export class Standby {
  readonly #options: StandbyOptions;
  readonly #awake: Clock;
  readonly #lease: Lease;
  readonly #expected: ExpectedRooms;
  readonly #takeovers: Takeovers;
  /** Undefined if the rooms of this node have no standbys. */
  readonly #standbys: Standbys | undefined;
  readonly #creations = new Map<string, number>();
  readonly #since: number;
  /** Identifies this process. */
  readonly #process: string;
  /** Created when first needed: its clock looks at the time every second. */
  #witness: Witness | undefined;

  constructor(options: StandbyOptions) {
    const { port, clock, isListed, own } = options;
    this.#options = options;
    this.#awake = new AwakeClock(clock);
    this.#since = clock.now();
    this.#lease = new Lease(port.self);
    this.#process = options.newId();
    this.#expected = new ExpectedRooms(options.directory, clock);
    this.#takeovers = new Takeovers({
      ...options,
      witness: () => this.#judge(),
      awake: this.#awake,
      creationOf: (node) => this.#creations.get(node),
    });
    if (isListed === undefined) return;
    const hasOther = (node: string, { roomId, createdAt }: OwnedRoom): boolean =>
      (options.directory.announced(node, roomId)?.createdAt ?? createdAt) !== createdAt;
    const standbys = new Standbys({ ...options, process: this.#process, lease: this.#lease, hasOther, announce: own });
    this.#standbys = standbys;
    options.host.fence.watcher = standbys;
  }

  /** The standby of each room of this node that has one. */
  get standbys(): ReadonlyMap<string, string> {
    return this.#standbys?.standbys ?? new Map<string, string>();
  }

  /** Records the pulse of an owner. */
  pulse(owner: string, pulse: Pulse): PulseAnswer {
    return this.#judge().pulse(owner, pulse, this.#awake.now());
  }

  vote(campaign: Campaign): Vote {
    return this.#takeovers.vote(campaign);
  }

  /** Keeps the state of a member's room. `to`: the process that its owner has chosen. */
  mirror(update: MirrorUpdate, room: MirroredRoom, to: string): MirrorAnswer {
    const { self } = this.#options.port;
    if (this.#standbys === undefined) return { refused: `JF_STANDBY is not set on ${self}` };
    if (to !== this.#process) return { refused: `${self} has started again` };

    const answer = this.#takeovers.keep(update, room);
    return 'kept' in answer ? { ...answer, address: this.#options.host.address } : answer;
  }

  /** The next process of a standby does not know whether the room was taken over. */
  forget({ to, ...message }: { node: string; to: string; roomId: string; epoch: number }): boolean {
    return to === this.#process && this.#takeovers.forget(message);
  }

  /** Returns whether a room with this id may be taken over here. */
  isMirrored(roomId: string): boolean {
    return this.#takeovers.has(roomId);
  }

  /** Returns whether the owner of a room with this id that may be taken over here has ended, or has no link. */
  isOrphaned(roomId: string): boolean {
    return this.#takeovers.isOrphaned(roomId);
  }

  /** Returns whether a member says that it may take over a room with this id. Asks nobody without `isListed`. */
  async isMirroredElsewhere(roomId: string, timeoutMs: number): Promise<boolean> {
    return (await this.#askForMirror({ roomId }, timeoutMs)).includes(true);
  }

  /**
   * Returns whether a room with this id may be taken over, here or by another member. Its owner may have been lost
   * before this node started. Asks nobody without `isListed`.
   */
  async isKept(roomId: string, timeoutMs: number): Promise<boolean> {
    const ask = async (): Promise<boolean> =>
      this.isMirrored(roomId) || (await this.isMirroredElsewhere(roomId, timeoutMs));
    if (!(await ask())) return false;
    // The room may have just ended, and its standby be about to forget it.
    await sleep(FORGOTTEN_MS, { clock: this.#options.clock });

    return ask();
  }

  /**
   * Returns whether a room that no member runs may go on at a standby, which may lack votes while a new process of its
   * owner knows nothing of it. Nobody may be told then that it does not exist. True, too, if a member does not answer,
   * and until this node has had time to meet the members. Never true without `isListed`.
   */
  async isAwaited(roomId: string): Promise<boolean> {
    if (this.#standbys === undefined) return false;
    if (this.isOrphaned(roomId) || this.#options.clock.now() - this.#since < JOINING_MS) return true;
    const answers = await this.#askForMirror({ roomId, orphaned: true }, AWAITED_TIMEOUT_MS);

    return answers.some((answer) => answer !== false);
  }

  /**
   * Resolves with true once a room whose owner has just been lost, or that is awaited, goes on elsewhere; with false if
   * it will not.
   */
  async comesBack(roomId: string, isAwaited: boolean): Promise<boolean> {
    return this.#standbys !== undefined && this.#expected.isBack(roomId, isAwaited);
  }

  owned(room: OwnedRoom): void {
    this.#expected.announced(room.roomId);
    this.#tellRelayed(room);
    this.#standbys?.owned(room);
  }

  disowned(roomId: string): void {
    this.#standbys?.ended(roomId);
  }

  /** Prepares the move of a room of this node. Resolves with false if another node may take it over. */
  async release(roomId: string): Promise<boolean> {
    return (await this.#standbys?.release(roomId)) ?? true;
  }

  /** Must be called when a room that was to move has stayed. */
  restore(roomId: string): void {
    this.#standbys?.restore(roomId);
  }

  memberUp(node: string, creation: number | undefined): void {
    const before = this.#creations.get(node);
    if (creation !== undefined) this.#creations.set(node, creation);
    if (before !== undefined && creation !== undefined && before !== creation) this.#processEnded(node, before, true);
    if (creation !== undefined) this.#takeovers.alive(node, creation);
    this.#witness?.linked(node, this.#awake.now());
    this.#standbys?.memberUp(node);
  }

  /** `why`: `leave` if it has left in order, `reset` if its link was closed, else `lost`. */
  memberDown(node: string, why: 'leave' | 'reset' | 'lost'): void {
    this.#standbys?.memberDown(node);
    if (why === 'leave') {
      this.#lease.gone(node, { now: this.#options.clock.now(), isSure: true });
      this.#standbys?.memberGone(node);
      this.#takeovers.left(node);
      this.#witness?.left(node);
      this.#creations.delete(node);
    } else if (why === 'reset') void this.#prove(node);
  }

  /**
   * Must be called with every announcement of a member, before it counts. Gives a room of this node up if the member
   * has taken it over.
   */
  meets(room: OwnedRoom): void {
    // Those who wait go on once it counts.
    this.#expected.announced(room.roomId);
    this.#tellRelayed(room);
    const { host, directory, withdraw, log, port } = this.#options;
    const ward = this.#standbys?.ward(room.roomId);
    if (ward === undefined || ward.isTaken || host.relayRef(room.roomId) !== undefined) return;
    const isLater = room.createdAt === ward.room.createdAt && (room.epoch ?? 0) > ward.epoch;
    // Nobody can have taken over a room that has never had a standby.
    if (!isLater || ward.handed === 0) return;
    ward.isTaken = true;
    const own = directory.announced(port.self, room.roomId) ?? ward.room;
    directory.given(room.roomId);
    log.warn('room.given_up', { roomId: room.roomId, epoch: ward.epoch, laterEpoch: room.epoch });
    if (host.roomRef(room.roomId) === undefined) {
      // It has crashed here meanwhile, and its end is held back: it is not the end of the room.
      host.fence.drop(room.roomId);
      return withdraw(own);
    }
    const carry: Carry = {
      isTaken: true,
      offer: async () => null,
      given: () => Promise.resolve(room.ref),
      over: () => withdraw(own),
    };
    host.giveRoom(room.roomId, carry).catch((error: unknown) => {
      log.error('room.give_up_failed', { roomId: room.roomId, error });
    });
  }

  close(): void {
    this.#standbys?.close();
    this.#takeovers.close();
  }

  /** Returns what each member answers; undefined if it does not. */
  async #askForMirror(
    question: { roomId: string; orphaned?: true },
    timeoutMs: number,
  ): Promise<(boolean | undefined)[]> {
    const { port } = this.#options;
    if (this.#standbys === undefined) return [];
    const nodes = port.members().filter((node) => port.speaks(node, STANDBY_PROTOCOL));
    const ask = (node: string): Promise<boolean | undefined> =>
      port.call(node, { type: 'hasMirror', ...question }, { timeoutMs }).catch(() => undefined);

    return Promise.all(nodes.map(ask));
  }

  #judge(): Witness {
    return (this.#witness ??= new Witness(this.#process, this.#awake.now()));
  }

  /** Sends the people of a room that has been taken over there, whose websockets this node holds. */
  #tellRelayed(room: OwnedRoom): void {
    const { host, directory, port } = this.#options;
    for (const former of directory.takenFrom(room, nodeOf(room.ref) ?? port.self))
      host.relayed.takenOver(room.roomId, former);
  }

  /** `isSure`: another process has the name. */
  #processEnded(node: string, creation: number, isSure: boolean): void {
    this.#lease.gone(node, { now: this.#options.clock.now(), isSure });
    this.#standbys?.memberGone(node);
    this.#takeovers.gone(node, creation);
  }

  /** Looks for proof that the process of a node whose link was reset has ended: its port mapper no longer lists it. */
  async #prove(node: string): Promise<void> {
    const { port, isListed, clock } = this.#options;
    const creation = this.#creations.get(node);
    if (isListed === undefined || creation === undefined) return;
    const since = clock.now();
    for (const atMs of PROOF_AT_MS) {
      await sleep(Math.max(0, since + atMs - clock.now()), { clock });
      if (port.members().includes(node) || this.#creations.get(node) !== creation) return;
      if ((await isListed(node)) !== false) continue;
      if (!port.members().includes(node) && this.#creations.get(node) === creation)
        this.#processEnded(node, creation, false);
      return;
    }
  }
}
