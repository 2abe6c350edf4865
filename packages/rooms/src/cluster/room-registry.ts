import { randomUUID } from 'node:crypto';
import { ActorError, type ActorSystem, type MessageOf } from '@bloom/actors';
import type { Log } from '@bloom/log';
import type { Notification } from '@bloom/protocol';
import { LogThrottle, sleep, systemClock, Timer, type Clock } from '@bloom/time';
import { ownerUnreachable, refusals, roomAwaited, unwrap } from '../outcome.js';
import type { RoomRef } from '../room/room-messages.js';
import { RoomError, type CreatedRoom, type RoomConfig, type RoomView } from '../room-service.js';
import { Arrivals } from './arrivals.js';
import { Claims, homesOf } from './claims.js';
import type { ClusterPort } from './cluster-port.js';
import { Departures, ownerNamedBy } from './departures.js';
import { Directory, type OwnedRoom, type RoomConflict, type RoomPlace } from './directory.js';
import { nodeBehaviour, type OwnRooms } from './node-actor.js';
import { MovePoints } from './move-points.js';
import { NODE_ACTOR, type NodeProtocol } from './node-messages.js';
import { Placement, type PlacementDecision } from './placement.js';
import { NO_WEBHOOKS, type RoomWebhooks } from '../room/room-webhooks.js';
import { SilentMembers } from './silent-members.js';
import { Standby, type StandbyOptions } from './standby.js';

const LIST_TIMEOUT_MS = 2000;
const VIEW_TIMEOUT_MS = 4000;
/** How long a home has to decide about an id before the next home is asked. */
const CLAIM_TIMEOUT_MS = 500;
const LOOKUP_TIMEOUT_MS = 1000;
/** How long all members have to deny a room whose node has gone: its id is asked for meanwhile. */
const DENIAL_TIMEOUT_MS = CLAIM_TIMEOUT_MS - 200;
/** How long one that has not answered has when it is asked again: a busy process reads answers after their time. */
const DENIAL_AGAIN_MS = 100;
/** Delay before all rooms are resent to a member whose link rejected an announcement. */
const CATCH_UP_MS = 1000;
/** Delay before an owner of a conflicting room that did not answer is asked again. */
const CONFIRM_PAUSE_MS = 1000;

export interface RoomRegistryOptions {
  system: ActorSystem;
  port: ClusterPort;
  host: OwnRooms;
  log: Log;
  clock?: Clock;
  /** Returns ids that no other node returns, for rooms, claims and reservations. */
  newId?: () => string;
  /** Resolves with whether every member has all events of a room so far. Default: at once. */
  settled?: (roomId: string) => Promise<boolean>;
  /** Set if the rooms have standbys: see `StandbyOptions`. */
  isListed?: StandbyOptions['isListed'];
  /** Default: nobody receives webhooks. */
  webhooks?: RoomWebhooks;
  onPlaced?: (node: string) => void;
  onReservationRefused?: (node: string) => void;
  onConflict?: (conflict: RoomConflict) => void;
}

/** A call to a room of another node that failed. */
export interface ForwardFailure {
  node: string;
  roomId: string;
  call: string;
  requestId?: string | undefined;
  error: unknown;
}

/** Knows on which node of the cluster each room lives, and chooses a node for each new one. */
export class RoomRegistry {
  readonly directory: Directory;
  readonly placement: Placement;
  readonly silentMembers: SilentMembers;
  /** Moves rooms of this node away. */
  readonly departures: Departures;
  /** Keeps standbys of this node's rooms, and is one for rooms of other nodes. */
  readonly standby: Standby;
  readonly movePoints = new MovePoints();
  readonly #arrivals: Arrivals;
  readonly #options: RoomRegistryOptions;
  readonly #port: ClusterPort;
  readonly #claims: Claims;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #owned = new Map<string, OwnedRoom>();
  /** Members whose view of this node's rooms is out of date. */
  readonly #behind = new Set<string>();
  readonly #catchUp: Timer;
  readonly #forwardFailures: LogThrottle;

  constructor(options: RoomRegistryOptions) {
    const { system, port, host, log, clock = systemClock, newId = () => randomUUID() } = options;
    const { webhooks = NO_WEBHOOKS } = options;
    this.#clock = clock;
    this.#newId = newId;
    this.#options = options;
    this.#port = port;
    this.directory = new Directory(port.self, clock);
    this.#catchUp = new Timer(clock);
    this.#forwardFailures = new LogThrottle(clock);
    this.#claims = new Claims(clock);
    this.silentMembers = new SilentMembers({
      members: () => port.members(),
      ping: (node, timeoutMs) => port.call(node, { type: 'load' }, { timeoutMs }),
      received: (node) => port.received(node),
      log,
      clock,
    });
    this.placement = new Placement({
      port,
      silentMembers: this.silentMembers,
      log,
      clock,
      newId,
      isTaken: async (roomId) => {
        const known = this.directory.find(roomId);
        return known?.reachable === true && (await this.#hasNow(known.node, roomId)) === true;
      },
      ...(options.onPlaced ? { onPlaced: options.onPlaced } : {}),
      ...(options.onReservationRefused ? { onConflict: options.onReservationRefused } : {}),
    });
    const common = { port, host, log, clock };
    this.#arrivals = new Arrivals({
      ...common,
      announced: (node, roomId) => this.directory.announced(node, roomId),
      own: (room) => this.#own(room),
      webhooks,
      points: this.movePoints,
    });
    const withdraw = (room: OwnedRoom): void => {
      if (this.#owned.get(room.roomId) === room) this.#disown(room.roomId);
    };
    this.standby = new Standby({
      ...common,
      placement: this.placement,
      directory: this.directory,
      own: (room) => this.#own(room),
      withdraw,
      isListed: options.isListed,
      newId,
    });
    this.departures = new Departures({
      ...common,
      placement: this.placement,
      owned: (roomId) => this.#owned.get(roomId),
      directory: this.directory,
      withdraw,
      release: (roomId) => this.standby.release(roomId),
      restore: (roomId) => this.standby.restore(roomId),
      settled: options.settled ?? (async () => true),
      webhooks,
      newId,
      points: this.movePoints,
    });
    const actor = system.spawn(
      nodeBehaviour({
        rooms: host,
        clock,
        newId,
        arrivals: this.#arrivals,
        departures: this.departures,
        standby: this.standby,
        claim: (roomId, claimant) => this.#decide(roomId, claimant),
        unclaim: (roomId, claimant, owner) => {
          if (owner === undefined || this.directory.knows(owner, roomId)) this.#claims.release(roomId, claimant);
          else this.#claims.settle(roomId, claimant, owner);
        },
        onSnapshot: (node, rooms) => {
          if (!this.#isMember(node)) return;
          for (const room of rooms) this.standby.meets(room);
          this.#report(this.directory.replace(node, rooms));
        },
        onAnnounce: (node, { created, removed }) => {
          if (!this.#isMember(node)) return;
          if (removed !== undefined) this.directory.remove(node, removed);
          if (created === undefined) return;
          this.standby.meets(created);
          this.#report([this.directory.add(node, created)]);
        },
      }),
      { name: NODE_ACTOR, mailbox: { essential: 'all' }, permanent: true },
    );
    system.register(NODE_ACTOR, actor);
  }

  /** Full name of this node. */
  get self(): string {
    return this.#port.self;
  }

  /** Returns the release that a member has announced, or null if it announced none. */
  releaseOf(node: string): string | null {
    return this.#port.releaseOf(node);
  }

  /** This node's latest placements, with the figures behind them. */
  get decisions(): readonly PlacementDecision[] {
    return this.placement.decisions;
  }

  /** Must be called with every notification of a local room before it is published. */
  observe({ type, roomId }: Pick<Notification, 'type' | 'roomId'>, requestId?: string): void {
    const { host } = this.#options;
    if (type === 'roomCreated') {
      const ref = host.roomRef(roomId);
      if (ref === undefined) return;
      this.#own({ roomId, createdAt: host.createdAt(roomId) ?? this.#clock.wall(), ref }, requestId);
    } else if (type === 'roomDeleted' || type === 'roomCrashed') this.#disown(roomId, requestId);
  }

  /**
   * Sends this node's rooms to a member whose link has come up. The member does the same. `creation` identifies the
   * process.
   */
  memberUp(node: string, creation?: number): void {
    this.standby.memberUp(node, creation);
    this.#tellAll(node);
  }

  /** `isReset`: the link was closed, perhaps because the process has ended. */
  memberDown(node: string, orderly: boolean, isReset = false): void {
    this.standby.memberDown(node, orderly ? 'leave' : isReset ? 'reset' : 'lost');
    if (orderly) this.#arrivals.giverLeft(node);
    if (orderly) this.directory.left(node);
    else this.directory.lost(node);
  }

  /**
   * Creates a room on the least-loaded node. An id chosen by the caller is first claimed across the cluster.
   * @throws RoomError `ROOM_EXISTS`, `NO_NODE`, `DRAINING`, or the refusal of the chosen node
   */
  async createRoom(config: RoomConfig, requestId?: string): Promise<CreatedRoom> {
    const { roomId } = config;
    // A generated id is unique without a claim.
    if (roomId === null) return created(await this.placement.create(config, requestId));

    const claimant = this.#newId();
    const askedAt = this.#clock.now();
    const homes = await this.#claim(roomId, claimant, requestId);
    let owner: string | undefined;
    try {
      const placed = await this.placement.create(config, requestId, askedAt);
      owner = placed.node;
      return created(placed);
    } finally {
      this.#unclaim(homes, { roomId, claimant, ...(owner === undefined ? {} : { owner }) }, requestId);
    }
  }

  /** Returns the rooms of all other nodes and the nodes that did not answer. */
  async listOthers(): Promise<{ rooms: RoomView[]; unreachable: string[] }> {
    const unreachable = new Set(this.directory.unreachable());
    const others = await Promise.all(
      this.#port.members().map((node) => {
        const answer = this.silentMembers.guard(node, () =>
          this.#port.call(node, { type: 'listRooms', text: true }, { timeoutMs: LIST_TIMEOUT_MS }),
        );
        return answer.then(fromText<readonly RoomView[]>).catch((): readonly RoomView[] => {
          unreachable.add(node);
          return [];
        });
      }),
    );
    return { rooms: others.flat(), unreachable: [...unreachable].toSorted() };
  }

  /**
   * Returns where a room lives. `denied` is a place where it has just been looked for in vain.
   * @throws RoomError `ROOM_NOT_FOUND` when every member denies having it; `OWNER_UNREACHABLE` when the known owner is
   *   cut off, when a member that may have it does not answer, or when it may go on at its standby
   */
  async locate(roomId: string, denied?: Pick<RoomPlace, 'node' | 'ref'>): Promise<RoomPlace> {
    const announced = this.directory.find(roomId);
    // The same node may have announced a later room of this id in the meantime.
    const isLater = announced !== undefined && announced.ref.key !== denied?.ref.key;
    const known = isLater ? announced : this.directory.find(roomId, denied?.node);
    if (known?.reachable === true) return known;

    // The announcement may not have arrived yet, but the owner knows its own room.
    const unanswered: string[] = [];
    // Asked first: a standby that takes the room over in between has it.
    const awaited = known === undefined && this.standby.isAwaited(roomId);
    const others = this.#port.members().filter((node) => node !== denied?.node);
    const answers = await Promise.all(
      others.map(async (node): Promise<RoomPlace | undefined> => {
        const ref = await this.lookUp(node, roomId).catch(() => {
          if (this.#isMember(node)) unanswered.push(node);
          return null;
        });
        return ref === null ? undefined : { node, ref };
      }),
    );
    const place = answers.find((answer) => answer !== undefined);
    if (place !== undefined) return place;
    if (known !== undefined) throw ownerUnreachable(roomId, known.node);
    if (unanswered.length > 0) {
      const nodes = unanswered.toSorted().join(', ');
      const verb = unanswered.length === 1 ? 'does' : 'do';
      throw new RoomError('OWNER_UNREACHABLE', `Room ${roomId} may be on ${nodes}, which ${verb} not respond`);
    }
    if (await awaited) throw roomAwaited(roomId);
    return unwrap(refusals.roomNotFound(roomId));
  }

  /**
   * Returns the last known state of a room that `locate` found on another node, or undefined when that node runs an
   * older release that keeps no such state; the caller then asks the room itself.
   * @throws RoomError `ROOM_NOT_FOUND`, or `OWNER_UNREACHABLE` when the node does not answer
   */
  async view(roomId: string, node: string, requestId?: string): Promise<RoomView | undefined> {
    const view = await this.silentMembers
      .guard(node, () =>
        this.#port.call(node, { type: 'viewRoom', roomId, text: true }, { timeoutMs: VIEW_TIMEOUT_MS, requestId }),
      )
      .then(fromText<RoomView | null>)
      .catch(async (error: unknown) => {
        if (error instanceof ActorError && error.code === 'UNKNOWN_MESSAGE') return undefined;
        this.forwardFailed({ node, roomId, call: 'viewRoom', requestId, error });
        throw ownerUnreachable(roomId, await ownerNamedBy(this.#port, node, { roomId, error }), error);
      });
    return view === null ? unwrap(refusals.roomNotFound(roomId)) : view;
  }

  /** Logs a call to another node that failed, at a limited rate: clients can repeat it at any rate. */
  forwardFailed(failure: ForwardFailure): void {
    const { node, roomId, call } = failure;
    if (this.#forwardFailures.allows(`${node} ${roomId} ${call}`)) {
      this.#options.log.warn('cluster.forward_failed', { ...failure });
    }
  }

  /** Ends moves, because this node leaves the cluster. Takes up to 5 s while a taker does not answer. */
  async close(): Promise<void> {
    this.#arrivals.close();
    this.standby.close();
    await this.departures.close();
  }

  #own(created: OwnedRoom, requestId?: string): void {
    this.#owned.set(created.roomId, created);
    this.#report([this.directory.add(this.self, created)]);
    this.#announce({ created }, requestId);
    this.standby.owned(created);
  }

  #disown(roomId: string, requestId?: string): void {
    this.#owned.delete(roomId);
    this.directory.remove(this.self, roomId);
    this.#announce({ removed: roomId }, requestId);
    this.standby.disowned(roomId);
  }

  #tellAll(node: string): void {
    this.#tell(node, { type: 'snapshot', node: this.self, rooms: [...this.#owned.values()] });
  }

  #announce(change: { created: OwnedRoom } | { removed: string }, requestId: string | undefined): void {
    const message = { type: 'announce', node: this.self, ...change } as const;
    for (const node of this.#port.members()) this.#tell(node, message, requestId);
  }

  /**
   * Sends news to a member. A full link drops the message, so the member is sent all rooms later: otherwise it could
   * reuse a taken id or route to a dead room.
   */
  #tell(node: string, news: MessageOf<NodeProtocol, 'snapshot' | 'announce'>, requestId?: string): void {
    if (this.#port.cast(node, news, requestId)) return;
    this.#behind.add(node);
    if (this.#catchUp.running) return;
    this.#catchUp.start(CATCH_UP_MS, () => {
      const behind = [...this.#behind].filter((member) => this.#isMember(member));
      this.#behind.clear();
      for (const member of behind) this.#tellAll(member);
    });
  }

  /** Asks the homes of the id in order until one decides. Returns the homes that hold the claim. */
  async #claim(roomId: string, claimant: string, requestId: string | undefined): Promise<string[]> {
    const port = this.#port;
    // The home may have no link to the room's owner, or may not know of the room yet.
    const known = this.directory.find(roomId);
    if (known?.reachable === true && (await this.#has(known.node, roomId))) return unwrap(refusals.roomExists(roomId));

    const asked: string[] = [];
    for (const home of homesOf(roomId, [port.self, ...port.members()])) {
      asked.push(home);
      const answer = await this.silentMembers
        .guard(home, () =>
          port.call(home, { type: 'claim', roomId, claimant }, { timeoutMs: CLAIM_TIMEOUT_MS, requestId }),
        )
        .catch(() => undefined);
      if (answer?.granted === true) return asked;
      if (answer === undefined) continue;
      this.#unclaim(asked, { roomId, claimant }, requestId);
      return unwrap(refusals.roomExists(roomId));
    }
    this.#unclaim(asked, { roomId, claimant }, requestId);
    throw new RoomError('NO_NODE', `No node could decide about the room id ${roomId} in time`);
  }

  #unclaim(
    homes: readonly string[],
    claim: { roomId: string; claimant: string; owner?: string },
    requestId: string | undefined,
  ): void {
    for (const home of homes) this.#port.cast(home, { type: 'unclaim', ...claim }, requestId);
  }

  /** Ignore late announcements from nodes that have left: they would mark dead rooms as reachable. */
  #isMember(node: string): boolean {
    return this.#port.members().includes(node);
  }

  /** Decides about an id as its home. */
  async #decide(roomId: string, claimant: string): Promise<boolean> {
    const before = this.#claims.holder(roomId);
    if (before?.owner !== undefined && !(await this.#has(before.owner, roomId))) {
      // The claimed room ended before its announcement arrived here.
      this.#claims.release(roomId, before.claimant);
    }
    if (!this.#claims.claim(roomId, claimant)) return false;

    const owner = this.directory.find(roomId);
    // The room may have just ended, or moved from a node that has gone: ask before deciding about the id.
    const exists = owner?.reachable === true ? await this.#has(owner.node, roomId) : await this.#hasMoved(roomId);
    if (exists) this.#claims.release(roomId, claimant);
    return !exists;
  }

  /** Returns whether a room whose node has gone runs on this or another member, as far as they answer. */
  async #hasMoved(roomId: string): Promise<boolean> {
    if (!this.directory.mayHaveMoved(roomId)) return this.standby.isKept(roomId, DENIAL_TIMEOUT_MS);
    const isHere = this.#options.host.roomRef(roomId) !== undefined || this.standby.isMirrored(roomId);
    const lookUp = (node: string): Promise<boolean> =>
      this.lookUp(node, roomId, DENIAL_TIMEOUT_MS)
        .catch(() => this.lookUp(node, roomId, DENIAL_AGAIN_MS))
        .then(
          (ref) => ref !== null,
          () => false,
        );
    const elsewhere = this.standby.isMirroredElsewhere(roomId, DENIAL_TIMEOUT_MS);

    return isHere || (await Promise.all([...this.#port.members().map(lookUp), elsewhere])).includes(true);
  }

  /**
   * Returns whether the node has the room now. Also true on timeout: refusing an id is safer than granting it twice.
   */
  async #has(node: string, roomId: string): Promise<boolean> {
    return (await this.#hasNow(node, roomId)) ?? true;
  }

  /** Returns whether the node has the room now; undefined if it does not answer. */
  async #hasNow(node: string, roomId: string): Promise<boolean | undefined> {
    const { host } = this.#options;
    if (node === this.self) return host.roomRef(roomId) !== undefined || host.relayRef(roomId) !== undefined;

    return this.lookUp(node, roomId).then(
      (ref) => ref !== null,
      () => undefined,
    );
  }

  /** Returns the member's actor for the room, or null. */
  lookUp(node: string, roomId: string, timeoutMs = LOOKUP_TIMEOUT_MS): Promise<RoomRef | null> {
    return this.silentMembers.guard(node, () => this.#port.call(node, { type: 'roomRef', roomId }, { timeoutMs }));
  }

  #report(conflicts: readonly (RoomConflict | undefined)[]): void {
    for (const conflict of conflicts) if (conflict !== undefined) void this.#reportConfirmed(conflict);
  }

  /**
   * Confirms the conflict first: one room may have ended with its node, or before the other was created, and the news
   * of that may not have arrived yet. An owner that does not answer is asked again until it does or its link is lost.
   */
  async #reportConfirmed(conflict: RoomConflict): Promise<void> {
    const { roomId, kept, shadowed } = conflict;
    const owners = [kept, shadowed];
    for (;;) {
      const answers = await Promise.all(owners.map((node) => this.#hasNow(node, roomId)));
      if (answers.includes(false)) return;
      if (!answers.includes(undefined)) break;
      if (!owners.every((node) => node === this.self || this.#isMember(node)))
        return this.directory.unconfirmed(roomId);
      await sleep(CONFIRM_PAUSE_MS, { clock: this.#clock });
    }
    this.#options.log.warn('cluster.room_on_two_nodes', {
      ...conflict,
      fix: `the room on ${shadowed} is reachable there only; delete one of them`,
    });
    this.#options.onConflict?.(conflict);
  }
}

function fromText<T>(answer: T | string): T {
  return typeof answer === 'string' ? (JSON.parse(answer) as T) : answer;
}

/** Removes the node from the answer: clients only know addresses. */
function created({ room, address }: CreatedRoom): CreatedRoom {
  return { room, address };
}
