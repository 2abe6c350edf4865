import type { Log } from '@bloom/log';
import { LogThrottle, Timer, type Clock } from '@bloom/time';
import type { RoomHost } from '../room-host.js';
import type { HeldRoom } from '../room-host-options.js';
import { RoomError } from '../room-service.js';
import type { RoomSnapshot } from '../room/room-snapshot.js';
import type { ClusterPort } from './cluster-port.js';
import type { Directory, OwnedRoom } from './directory.js';
import { type Mirror, type MirrorAnswer, type MirroredRoom, Mirrors, type MirrorUpdate } from './mirrors.js';
import { type Campaign, type Candidacy, hasVotes, type Vote } from './standby-states.js';
import { STANDBY_PROTOCOL } from './standbys.js';
import { type TakenRoom, TakenRooms } from './taken-rooms.js';
import type { Contested, Witness } from './witness.js';

/** How often silent owners are looked for. */
const LOOK_MS = 200;
const VOTE_TIMEOUT_MS = 500;
/** Times that votes are asked for in a row before the pauses grow, and the longest pause. */
const QUICK_CAMPAIGNS = 50;
const MAX_CAMPAIGN_PAUSE_MS = 3_000;
/** Rooms that votes are asked for at once. */
const MAX_CANDIDACIES = 10_000;
/** Rooms that are opened at once. */
const AT_ONCE = 8;
/** How long the rooms of a silent owner are kept. Shorter than their owner counts with that. */
const KEPT_MS = 10 * 60_000;
/** How long a room that could not be opened waits for the next attempt; twice as long after each further failure. */
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
/** How often a former owner is told that a room has ended here: it may read nothing for a while. */
const TELL_MS = 5_000;

export interface TakeoversOptions {
  port: ClusterPort;
  host: Pick<RoomHost, 'holdRoom' | 'draining' | 'roomRef' | 'relayRef' | 'createdAt'>;
  directory: Pick<Directory, 'announced' | 'deniesTakeover'>;
  witness: () => Witness;
  /** Returns the creation of the process that a member's latest link led to. */
  creationOf: (node: string) => number | undefined;
  /** Announces a room that runs here from now on. */
  own: (room: OwnedRoom) => void;
  log: Log;
  clock: Clock;
  /** Stops with the process. */
  awake: Clock;
}

/** Keeps the state of other nodes' rooms, and takes them over when their owners are lost. */
export class Takeovers {
  readonly #options: TakeoversOptions;
  readonly #mirrors = new Mirrors();
  readonly #look: Timer;
  /** Owners whose rooms votes are being asked for. */
  readonly #asking = new Set<string>();
  /** Campaigns in a row that won no room, by owner, and when the next one may begin, by `clock.now`. */
  readonly #losses = new Map<string, { count: number; until: number }>();
  readonly #taken = new TakenRooms();
  /** Creations of processes that have ended, by node. */
  readonly #ended = new Map<string, number>();
  readonly #failures: LogThrottle;
  #isClosed = false;

  constructor(options: TakeoversOptions) {
    this.#options = options;
    this.#look = new Timer(options.clock);
    this.#failures = new LogThrottle(options.clock);
  }

  /** Returns whether this node is a standby of a room with this id. */
  has(roomId: string): boolean {
    return this.#mirrors.has(roomId);
  }

  /** Returns whether this node is a standby of a room with this id whose owner has ended, or has no link. */
  isOrphaned(roomId: string): boolean {
    const { port } = this.#options;

    return this.#mirrors.owners.some((owner) => {
      const mirror = this.#mirrors.get(owner, roomId);
      return mirror !== undefined && (isOrphan(mirror) || !port.members().includes(owner));
    });
  }

  /** Nodes whose rooms are kept here. */
  get owners(): string[] {
    return this.#mirrors.owners;
  }

  /** Keeps the latest state of a room. */
  keep(update: MirrorUpdate, room: MirroredRoom): MirrorAnswer {
    const { host, clock, port } = this.#options;
    const { roomId } = room.snapshot.config;
    const isOpening = this.#mirrors.get(update.node, roomId)?.side.state === 'opening';
    if (isOpening || this.#taken.has(update.node, roomId)) return { kept: false };
    if (this.#isClosed || host.draining) {
      this.#drop(update.node, roomId);
      return { refused: `${port.self} accepts no rooms` };
    }
    if (host.roomRef(roomId) !== undefined) {
      this.#drop(update.node, roomId);
      return { refused: `${port.self} has a room with this id` };
    }
    const refusal = this.#mirrors.keep(update, room, clock.now());
    if (!this.#look.running) this.#look.repeat(LOOK_MS, () => this.#lookAround());

    return refusal === null ? { kept: true } : { refused: refusal };
  }

  /** Forgets a room. Returns false for one that is being taken over, or has been. */
  forget({ node, roomId, epoch }: { node: string; roomId: string; epoch: number }): boolean {
    const mirror = this.#mirrors.get(node, roomId);
    if (mirror?.side.state === 'opening' || this.#taken.has(node, roomId)) return false;
    if (mirror !== undefined && mirror.epoch <= epoch) this.#drop(node, roomId);

    return true;
  }

  /** Must be called when a member has left in order: its rooms have ended or moved. */
  left(node: string): void {
    for (const { roomId } of this.#mirrors.of(node)) this.#drop(node, roomId);
    for (const { roomId } of this.#taken.of(node)) this.#taken.delete(node, roomId);
    this.#losses.delete(node);
  }

  /** Must be called when a process of a member has ended, with its creation. */
  gone(node: string, creation: number): void {
    const mirrors = this.#mirrors.of(node);
    if (mirrors.length === 0) return;
    this.#ended.set(node, creation);
    this.#losses.delete(node);
    const now = this.#options.awake.now();
    for (const mirror of mirrors) mirror.orphanedAt ??= now;
    void this.#ask(node);
  }

  /** Must be called when a process is linked, with its creation: a port mapper may have said that it has ended. */
  alive(node: string, creation: number): void {
    if (this.#ended.get(node) !== creation) return;
    this.#ended.delete(node);
    for (const mirror of this.#mirrors.of(node)) mirror.orphanedAt = undefined;
  }

  /** Answers a standby that asks for votes. */
  vote(campaign: Campaign): Vote {
    const { owner, ownerProcess, creation, took } = campaign;
    const { port, creationOf } = this.#options;
    const witness = this.#options.witness();
    // This may be the owner's next process.
    if (owner === port.self) {
      if (creation === null || ownerProcess === witness.process) return { granted: false };
      return this.#grant(campaign);
    }
    const isAlive =
      creation === null ? !this.#isSilent(owner) : port.members().includes(owner) && creationOf(owner) === creation;
    if (isAlive) {
      if (!took) witness.unvote(campaign);
      return { granted: false };
    }
    witness.vote(campaign);

    return this.#grant(campaign);
  }

  #grant(campaign: Campaign): Vote {
    const { rooms } = campaign;
    const denied = rooms.filter((room) => this.#denies(campaign, room)).map(({ roomId }) => roomId);

    return { granted: true, process: this.#options.witness().process, denied };
  }

  /** Returns whether the room has ended, moved or got another standby or owner, as far as this node knows. */
  #denies({ node: standby, owner, ownerProcess, creation }: Campaign, room: Candidacy): boolean {
    const { port, directory, creationOf } = this.#options;
    const witness = this.#options.witness();
    if (witness.hasRevoked(owner, room) || witness.hasLeft(owner, ownerProcess)) return true;
    const kept = this.#mirrors.get(owner, room.roomId);
    if (kept?.createdAt === room.createdAt && kept.epoch > room.epoch) return true;
    const present = owner === port.self ? undefined : creationOf(owner);
    const isFormer = owner === port.self || (creation !== null && present !== undefined && present !== creation);

    return directory.deniesTakeover({ owner, standby, isFormer }, room);
  }

  close(): void {
    this.#isClosed = true;
    this.#look.stop();
    for (const owner of this.#mirrors.owners)
      for (const { roomId } of this.#mirrors.of(owner)) this.#drop(owner, roomId);
  }

  #drop(owner: string, roomId: string): void {
    const side = this.#mirrors.get(owner, roomId)?.side;
    if (side === undefined || side.state === 'opening') return;
    side.on('dismissed');
    this.#mirrors.drop(owner, roomId);
  }

  #lookAround(): void {
    const { awake } = this.#options;
    const witness = this.#options.witness();
    const now = awake.now();
    for (const owner of this.#mirrors.owners) {
      const isForgotten = now - witness.heardAt(owner) > KEPT_MS;
      // The next process of the owner may be heard for ever, while the votes for the rooms of this one are missing.
      for (const { roomId, orphanedAt = now } of this.#mirrors.of(owner))
        if (isForgotten || now - orphanedAt > KEPT_MS) this.#drop(owner, roomId);
      const mirrors = this.#mirrors.of(owner);
      const isDue = this.#isSilent(owner) || mirrors.some(isOrphan);
      if (mirrors.length > 0 && isDue) void this.#ask(owner);
      else this.#losses.delete(owner);
    }
    this.#settleTaken();
    if (this.#mirrors.owners.length === 0 && this.#taken.size === 0) this.#look.stop();
  }

  /** Ends this node's own votes against owners that have withdrawn what it has taken over. */
  #settleTaken(): void {
    const { directory, port, host } = this.#options;
    for (const owner of this.#taken.owners) {
      // An owner without a link is forgotten after a while, and may announce the room still.
      if (!port.members().includes(owner) || this.#asking.has(owner)) continue;
      const rooms = this.#taken.of(owner);
      for (const room of rooms) {
        const { roomId, createdAt, epoch } = room;
        const announced = directory.announced(owner, roomId);
        if (announced?.createdAt !== createdAt || (announced.epoch ?? 0) > epoch) this.#taken.delete(owner, roomId);
        else if ((host.roomRef(roomId) ?? host.relayRef(roomId)) === undefined) this.#tellEnd(room);
      }
      for (const ownerProcess of new Set(rooms.map((room) => room.ownerProcess))) this.#unvote({ owner, ownerProcess });
    }
  }

  /** Lets a former owner, which would hear of no later one and never act again, give up a room that has ended here. */
  #tellEnd(room: TakenRoom): void {
    const { port, clock } = this.#options;
    const { owner, roomId, createdAt, epoch, ref, toldAt = Number.NEGATIVE_INFINITY } = room;
    if (ref === undefined || clock.now() - toldAt < TELL_MS) return;
    room.toldAt = clock.now();
    const news = { type: 'announce', node: port.self } as const;
    port.cast(owner, { ...news, created: { roomId, createdAt, epoch, ref } });
    port.cast(owner, { ...news, removed: roomId });
  }

  /** Ends this node's own vote against a process of an owner, unless it has rooms of that one. */
  #unvote(contested: Pick<Contested, 'owner' | 'ownerProcess'>): void {
    if (this.#taken.hasOf(contested)) return;
    const witness = this.#options.witness();
    witness.unvote({ ...contested, node: this.#options.port.self, process: witness.process });
  }

  /** Asks the members for their votes, and opens the rooms for which they are enough. */
  async #ask(owner: string): Promise<void> {
    if (this.#asking.has(owner) || this.#isClosed) return;
    this.#asking.add(owner);
    try {
      if ((this.#losses.get(owner)?.until ?? 0) > this.#options.clock.now()) return;
      // Those of the latest process first: for an earlier one, enough votes may be missing for ever.
      const processes = new Set(this.#mirrors.of(owner).map(({ process }) => process));
      for (const process of [...processes].toReversed()) {
        const all = this.#contested(owner, process);
        const orphans = all.filter(isOrphan);
        const mirrors = (orphans.length > 0 ? orphans : all).slice(0, MAX_CANDIDACIES);
        if (mirrors.length > 0) await this.#campaign(owner, mirrors, orphans.length > 0);
      }
    } finally {
      this.#asking.delete(owner);
    }
  }

  #isSilent(owner: string): boolean {
    const { port, awake, witness } = this.#options;

    return witness().isSilent(owner, { now: awake.now(), linked: port.members().includes(owner) });
  }

  /** Returns the rooms of that process of an owner that votes may be asked for now. */
  #contested(owner: string, process: string): Mirror[] {
    const { clock } = this.#options;
    const isSilent = this.#isSilent(owner);

    return this.#mirrors
      .of(owner)
      .filter((mirror) => mirror.process === process && (isSilent || isOrphan(mirror)))
      .filter(({ side, retryAt }) => side.state === 'holding' && retryAt <= clock.now())
      .filter((mirror) => !this.#dropIfHere(mirror));
  }

  /** Lets campaigns that win nothing become rare: in a small part of a cluster they go on for minutes. */
  #lost(owner: string, rooms: number): void {
    const { clock, log } = this.#options;
    const count = (this.#losses.get(owner)?.count ?? 0) + 1;
    const late = Math.max(0, count - QUICK_CAMPAIGNS);
    const pauseMs = late === 0 ? 0 : Math.min(LOOK_MS * 2 ** late, MAX_CAMPAIGN_PAUSE_MS);
    this.#losses.set(owner, { count, until: clock.now() + pauseMs });
    if (count === QUICK_CAMPAIGNS) log.warn('node.votes_missing', { node: owner, rooms });
  }

  /** Forgets a room if its id has been taken here since: it could never be opened. */
  #dropIfHere({ owner, roomId, createdAt }: Mirror): boolean {
    const { host, log } = this.#options;
    if (host.roomRef(roomId) === undefined) return false;
    // The room itself may have moved here.
    if (host.createdAt(roomId) !== createdAt)
      log.warn('room.not_taken_over', { roomId, node: owner, reason: 'another room here has its id' });
    this.#drop(owner, roomId);

    return true;
  }

  async #campaign(owner: string, mirrors: readonly Mirror[], hasProof: boolean): Promise<void> {
    const { port, clock } = this.#options;
    const witness = this.#options.witness();
    const since = clock.now();
    for (const { side } of mirrors) side.on('silent');
    const rooms = mirrors.map(({ roomId, createdAt, epoch }) => ({ roomId, createdAt, epoch }));
    const creation = hasProof ? (this.#ended.get(owner) ?? null) : null;
    const contested = { node: port.self, process: witness.process, owner, ownerProcess: mirrors[0]?.process ?? '' };
    const message: Campaign = { ...contested, creation, took: this.#taken.hasOf(contested), rooms };
    const votes = new Map<string, Vote>([[port.self, hasProof ? this.#ownVote(message) : this.vote(message)]]);
    // The owner's next process knows where its rooms have gone since.
    const hasSuccessor = hasProof && this.#options.creationOf(owner) !== creation;
    const voters = port
      .members()
      .filter((node) => (node !== owner || hasSuccessor) && port.speaks(node, STANDBY_PROTOCOL));
    await Promise.all(
      voters.map(async (node) => {
        const asked = port.call(node, { type: 'vote', ...message }, { timeoutMs: VOTE_TIMEOUT_MS });
        const vote = await asked.catch(() => undefined);
        if (vote !== undefined) votes.set(node, vote);
      }),
    );
    const isHeard = hasProof ? this.#ended.get(owner) !== creation : !this.#isSilent(owner);
    const won: Mirror[] = [];
    for (const mirror of mirrors) {
      const { side, roomId } = mirror;
      if (isHeard) side.on('heard');
      else if (hasVotes(mirror, { votes, self: port.self, hasProof })) {
        if (side.on('won')) won.push(mirror);
      } else {
        side.on('lost');
        // Somebody knows that the room has ended or goes on elsewhere, and no owner will say so.
        if (hasProof && [...votes.values()].some((vote) => vote.granted && vote.denied.includes(roomId)))
          this.#drop(owner, roomId);
      }
    }
    if (won.length > 0 || isHeard) this.#losses.delete(owner);
    else this.#lost(owner, mirrors.length);
    const lanes = Array.from({ length: AT_ONCE }, async () => {
      for (let mirror = won.shift(); mirror !== undefined; mirror = won.shift()) await this.#open(mirror, since);
    });
    await Promise.all(lanes);
    this.#unvote(contested);
  }

  /** This node has the proof, so its own vote depends only on what it knows of the rooms. */
  #ownVote(campaign: Campaign): Vote {
    this.#options.witness().vote(campaign);

    return this.#grant(campaign);
  }

  async #open(mirror: Mirror, since: number): Promise<void> {
    const { own, log, clock } = this.#options;
    const { owner, process: ownerProcess, roomId, createdAt, epoch, side } = mirror;
    const taken = { owner, ownerProcess, roomId, createdAt, epoch };
    this.#taken.add(taken);
    let held: HeldRoom | undefined;
    try {
      const snapshot = aged(mirror.room.snapshot, clock.now() - mirror.at);
      held = await this.#hold(snapshot, owner);
      const ref = await held.open(snapshot, createdAt);
      side.on('opened');
      this.#taken.add({ ...taken, ref });
      own({ roomId, createdAt, epoch, ref });
      log.warn('room.taken_over', { roomId, node: owner, epoch, ms: Math.round(clock.now() - since) });
      this.#mirrors.drop(owner, roomId);
    } catch (error) {
      this.#taken.delete(owner, roomId);
      side.on('failed');
      mirror.failures += 1;
      mirror.retryAt = clock.now() + Math.min(RETRY_MS * 2 ** (mirror.failures - 1), MAX_RETRY_MS);
      // Another room of this id is being opened here: the next attempt finds it, and forgets this one.
      const isTaken = error instanceof RoomError && error.code === 'ROOM_EXISTS';
      if (!isTaken && this.#failures.allows(`${owner} ${roomId} ${String(error)}`))
        log.error('room.take_over_failed', { roomId, node: owner, error });
      await held?.drop().catch(() => {});
    }
  }

  /** Takes a place for the room, without its components if this node cannot run them. */
  async #hold(room: RoomSnapshot, owner: string): Promise<HeldRoom> {
    const { host, log } = this.#options;
    try {
      return await host.holdRoom(room, owner);
    } catch (error) {
      if (room.components === undefined) throw error;
      const { config } = room;
      const held = await host.holdRoom({ config, components: [] }, owner);
      log.warn('room.components_lost', { roomId: config.roomId, error });
      return held;
    }
  }
}

function isOrphan({ orphanedAt }: Mirror): boolean {
  return orphanedAt !== undefined;
}

/** Returns the state after some time without changes. */
function aged(snapshot: RoomSnapshot, ms: number): RoomSnapshot {
  const left = (was: number | null): number | null => (was === null ? null : Math.max(0, Math.round(was - ms)));
  const peers = snapshot.peers.map((peer) => ({ ...peer, awayMs: left(peer.awayMs) }));

  return { ...snapshot, peers, peerlessMs: left(snapshot.peerlessMs) };
}
