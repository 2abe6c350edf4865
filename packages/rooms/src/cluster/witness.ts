import type { Candidacy } from './standby-states.js';

/** How long an owner without a link must have been silent before a member votes against it, in milliseconds. */
export const SILENT_MS = 3_000;
/** The same for an owner whose link stands: a frozen process, or a dead machine whose link has not timed out. */
export const FROZEN_MS = 5_000;

/** A vote for a process of a standby. It counts until the owner has heard from that process again. */
export interface GivenVote {
  standby: string;
  process: string;
  /** Distinguishes the votes of one member. */
  number: number;
}

/** A campaign for the rooms of one process of an owner: its next process has others. */
export interface Contested {
  owner: string;
  ownerProcess: string;
  /** The standby, and its process. */
  node: string;
  process: string;
}

interface OwnerRecord {
  /** When the owner was last heard, by the awake clock. */
  heardAt: number;
  /** The process that sent the latest pulse. */
  process?: string;
  /** The process that has left in order. */
  left?: string | undefined;
  /** Votes against the owner, by its process, the standby and that one's process. */
  readonly votes: Map<string, GivenVote & { readonly against: string }>;
  /** Revoked epochs by room, the oldest first. */
  readonly revoked: Map<string, { epoch: number; at: number }>;
}

/** What an owner says with a pulse. */
export interface Pulse {
  process: string;
  /** Numbers of votes that are over: their standbys have answered the owner since, without having taken its rooms. */
  settled: readonly number[];
  /** Standbys that have been replaced: nobody may take the rooms over under these epochs or earlier ones. */
  revoked: readonly Candidacy[];
}

/** What a member answers to a pulse. */
export interface PulseAnswer {
  /** The member's process. */
  process: string;
  /** The votes against the owner that count. */
  votes: readonly GivenVote[];
  /** False if the member could not remember what was revoked. */
  noted: boolean;
}

/** Owners remembered; the rest count as never heard. */
const MAX_OWNERS = 10_000;
/** Votes remembered against one owner: each standby process that asks has one. */
const MAX_VOTES = 1_000;
/**
 * Revoked rooms remembered for all owners, which share it equally, and for how long: longer than a standby keeps rooms
 * of an owner that it does not hear. What an owner holds beyond its share stays when others come.
 */
const MAX_REVOKED = 100_000;
const REVOKED_MS = 20 * 60_000;

/**
 * Judges as a member which owners are alive. An owner may act as long as enough members have answered its latest pulses
 * (`Lease`), so a member that has just heard an owner must not vote against it. Times are those of a clock that stops
 * with the process: what arrived during a pause is still unread.
 */
export class Witness {
  /** Identifies this process, which remembers its votes; the next one of the name does not. */
  readonly process: string;
  /** Those heard last come last. */
  readonly #owners = new Map<string, OwnerRecord>();
  /** Start of this process: an owner that has never been heard has been silent since then. */
  readonly #since: number;
  #given = 0;

  constructor(process: string, nowMs: number) {
    this.process = process;
    this.#since = nowMs;
  }

  /** Records a link to a member, a sign of life. */
  linked(node: string, now: number): void {
    this.#record(node).heardAt = now;
  }

  /** Records that a member has left in order: its rooms have ended or moved. */
  left(node: string): void {
    const record = this.#record(node);
    record.left = record.process;
  }

  /** Returns whether that process of an owner has left in order. */
  hasLeft(owner: string, process: string): boolean {
    return this.#owners.get(owner)?.left === process;
  }

  /** Records a pulse of an owner and returns the answer. */
  pulse(owner: string, { process, settled, revoked }: Pulse, now: number): PulseAnswer {
    const record = this.#record(owner);
    record.heardAt = now;
    record.process = process;
    const over = new Set(settled);
    const votes: GivenVote[] = [];
    for (const [key, { against, ...vote }] of record.votes) {
      // The rooms of another process are not those of this one.
      if (against !== process) continue;
      if (over.has(vote.number)) record.votes.delete(key);
      else votes.push(vote);
    }

    return { process: this.process, votes, noted: this.#revoke(record, revoked, now) };
  }

  /** Returns whether the owner has said that nobody may take the room over under this epoch. */
  hasRevoked(owner: string, room: Candidacy): boolean {
    return (this.#owners.get(owner)?.revoked.get(roomKey(room))?.epoch ?? -1) >= room.epoch;
  }

  /** Returns when the owner was last heard. */
  heardAt(owner: string): number {
    return this.#owners.get(owner)?.heardAt ?? this.#since;
  }

  /** Returns whether the owner has been silent for so long that this member votes against it. */
  isSilent(owner: string, { now, linked }: { now: number; linked: boolean }): boolean {
    return now - this.heardAt(owner) >= (linked ? FROZEN_MS : SILENT_MS);
  }

  /** Records a vote for a process of the standby, as which this node does not support the owner until both have met. */
  vote(contested: Contested): void {
    const { owner, ownerProcess: against, node: standby, process } = contested;
    // An owner counts only the members that have answered its pulses.
    const votes = this.#owners.get(owner)?.votes;
    if (votes === undefined) return;
    this.#given += 1;
    const key = contestedKey(contested);
    votes.delete(key);
    if (votes.size >= MAX_VOTES) votes.delete(votes.keys().next().value as string);
    votes.set(key, { standby, process, number: this.#given, against });
  }

  /** Ends a vote for a standby that has got too few. */
  unvote(contested: Contested): void {
    this.#owners.get(contested.owner)?.votes.delete(contestedKey(contested));
  }

  #revoke({ revoked }: OwnerRecord, rooms: readonly Candidacy[], now: number): boolean {
    for (const [key, { at }] of revoked) {
      if (at >= now - REVOKED_MS) break;
      revoked.delete(key);
    }
    if (rooms.length === 0) return true;
    if (revoked.size + rooms.length > MAX_REVOKED / this.#revoking(revoked)) return false;
    for (const room of rooms) {
      const key = roomKey(room);
      const epoch = Math.max(room.epoch, revoked.get(key)?.epoch ?? 0);
      revoked.delete(key);
      revoked.set(key, { epoch, at: now });
    }

    return true;
  }

  /** Number of owners that have revoked rooms, this one included. */
  #revoking(own: OwnerRecord['revoked']): number {
    let owners = 0;
    for (const { revoked } of this.#owners.values()) if (revoked === own || revoked.size > 0) owners += 1;

    return owners;
  }

  #record(owner: string): OwnerRecord {
    const known = this.#owners.get(owner);
    if (known === undefined && this.#owners.size >= MAX_OWNERS)
      this.#owners.delete(this.#owners.keys().next().value as string);
    const record = known ?? { heardAt: this.#since, votes: new Map(), revoked: new Map() };
    this.#owners.delete(owner);
    this.#owners.set(owner, record);

    return record;
  }
}

/** Identifies a process of a standby among those that have been voted for. */
export function voteKey(standby: string, process: string): string {
  return `${standby}\0${process}`;
}

function contestedKey({ ownerProcess, node, process }: Contested): string {
  return `${ownerProcess}\0${voteKey(node, process)}`;
}

function roomKey({ roomId, createdAt }: Candidacy): string {
  return `${createdAt}\0${roomId}`;
}
