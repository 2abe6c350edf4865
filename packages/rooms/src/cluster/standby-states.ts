import { MoveSide, type Table } from './move-states.js';

/**
 * The states of a room at its standby, which continues the room if its owner is lost (docs/reference/moving.md). The
 * standby opens the room only with the votes of over half of the members that it and the owner last agreed on, or with
 * proof that the owner's process has ended.
 */
export type StandbyState =
  /** The standby has the room's state, and hears the owner. */
  | 'holding'
  /** The owner is silent or gone. The standby asks the other members for their votes. */
  | 'asking'
  /** The standby has the votes and opens the room's media. The owner may not publish anything for the room. */
  | 'opening'
  /** The standby owns the room. */
  | 'open'
  /** The standby has forgotten the room. */
  | 'dropped';

export type StandbyEvent =
  /** The owner has been silent for too long, or its process has ended. */
  | 'silent'
  /** The owner is heard again. */
  | 'heard'
  /** Enough members voted for the standby. */
  | 'won'
  /** Too few members voted, or one of them knows a later owner. */
  | 'lost'
  /** The room runs here. */
  | 'opened'
  /** The room could not be opened now. */
  | 'failed'
  /** The owner has another standby or has left in order, the room has ended or moved, or too much time has passed. */
  | 'dismissed';

const STANDBY: Table<StandbyState, StandbyEvent> = {
  holding: { silent: 'asking', dismissed: 'dropped' },
  asking: { heard: 'holding', lost: 'holding', won: 'opening', dismissed: 'dropped' },
  opening: { opened: 'open', failed: 'holding', dismissed: 'dropped' },
  open: {},
  dropped: {},
};

export type StandbySide = MoveSide<StandbyState, StandbyEvent>;

export function newStandbySide(): StandbySide {
  return new MoveSide<StandbyState, StandbyEvent>(STANDBY, 'holding');
}

/** A room that a standby asks votes for. */
export interface Candidacy {
  roomId: string;
  /** Unix milliseconds, by the owner's clock. */
  createdAt: number;
  /** Epoch under which the standby will own the room. The owner has given this number to no other node. */
  epoch: number;
}

/** A process of a member that counts for majorities: the next one of its name has forgotten its votes. */
export interface Voter {
  node: string;
  process: string;
}

/** A request for votes. */
export interface Campaign {
  /** The standby, and its process. */
  node: string;
  process: string;
  owner: string;
  ownerProcess: string;
  /** The process that has ended, by its creation; null = without proof. */
  creation: number | null;
  /** The standby has taken rooms of this owner over, which may not know it. */
  took: boolean;
  rooms: readonly Candidacy[];
}

/** A member's answer to a standby. `denied`: rooms that it knows to have ended, or to have a later owner or standby. */
export type Vote = { granted: true; process: string; denied: readonly string[] } | { granted: false };

/** Returns whether these votes are over half of the members. */
export function isMajority(votes: number, members: readonly Voter[]): boolean {
  return 2 * votes > members.length;
}

/** Returns whether these votes, none of them the owner's, are over half of the members other than the owner. */
export function isMajorityOfOthers(votes: number, members: readonly Voter[]): boolean {
  return 2 * votes > members.length - 1;
}

/** Returns whether two memberships are the same. */
export function sameVoters(a: readonly Voter[] | undefined, b: readonly Voter[]): boolean {
  return a?.length === b.length && a.every(({ node, process }, i) => node === b[i]?.node && process === b[i].process);
}

/** The votes for a standby, itself included. */
interface Count {
  votes: ReadonlyMap<string, Vote>;
  self: string;
  hasProof: boolean;
}

/** A room that a standby may take over. */
interface Contest {
  owner: string;
  roomId: string;
  /** The members that count, the owner included. */
  members: readonly Voter[];
}

/**
 * Returns whether the room has the votes of over half of its members; with proof, which makes up for the owner's, of
 * over half of the others. A member's next process has forgotten the votes of the one before, and does not count.
 */
export function hasVotes({ owner, roomId, members }: Contest, { votes, self, hasProof }: Count): boolean {
  const isFor = (vote: Vote | undefined): boolean => vote?.granted === true && !vote.denied.includes(roomId);
  if (!isFor(votes.get(self)) || (hasProof && ![...votes.values()].every(isFor))) return false;
  const given = members.filter(({ node, process }) => {
    const vote = votes.get(node);
    return node !== owner && isFor(vote) && vote?.granted === true && vote.process === process;
  });

  return hasProof ? isMajorityOfOthers(given.length, members) : isMajority(given.length, members);
}
