import { randomBytes } from 'node:crypto';
import { systemClock, type Clock } from '@bloom/time';
import { DEFAULT_TTL } from './peer/credentials.js';
import { seal, unseal } from './peer/sealed.js';
import type { PermissionChanges } from './room-service.js';

/** Longest lifetime of a viewer's token or an invitation, seconds: 30 days. */
export const MAX_PASS_TTL = 30 * 24 * 60 * 60;

const VIEWER = 'bloom viewer token v1';
const INVITATION = 'bloom invitation v1';
const INVITATION_ID_BYTES = 12;

/** One room, and not a later one with the same id. */
export interface RoomIdentity {
  roomId: string;
  /** Unix milliseconds. */
  createdAt: number;
}

/** What an invitation allows its guests. */
export interface GuestTerms {
  /** Name of every guest; without it guests choose their own. */
  name?: string;
  permissions?: PermissionChanges;
  /** Number of guests; 0 = as many as the room holds. */
  uses: number;
}

export interface Invitation extends RoomIdentity, GuestTerms {
  id: string;
  /** Unix milliseconds. */
  expiresAt: number;
}

export interface IssuedPass {
  token: string;
  /** Unix milliseconds. */
  expiresAt: number;
}

/** Issues and reads tokens that open one room without the API token. They are signed, so no node stores any. */
export class Passes {
  readonly #key: { secretKeyBase: string };
  readonly #clock: Clock;

  /** `secretKeyBase`: `JF_SECRET_KEY_BASE`. */
  constructor(secretKeyBase: string, clock: Clock = systemClock) {
    this.#key = { secretKeyBase };
    this.#clock = clock;
  }

  /** Issues a token that opens the stream and the recordings of a room. `ttl`: seconds. */
  issueViewer({ roomId, createdAt }: RoomIdentity, ttl = DEFAULT_TTL): IssuedPass {
    const expiresAt = this.#expiry(ttl);

    return { token: seal(VIEWER, [roomId, createdAt, expiresAt], this.#key), expiresAt };
  }

  /** Returns the room that a viewer's token opens; undefined if it is invalid or has expired. */
  readViewer(token: string): RoomIdentity | undefined {
    const claim = unseal(VIEWER, token, this.#key) as [string, number, number] | undefined;
    if (claim === undefined) return undefined;
    const [roomId, createdAt, expiresAt] = claim;

    return this.#clock.wall() >= expiresAt ? undefined : { roomId, createdAt };
  }

  /** Issues an invitation to a room. `ttl`: seconds. */
  issueInvitation({ roomId, createdAt }: RoomIdentity, terms: GuestTerms, ttl = DEFAULT_TTL): IssuedPass {
    const id = randomBytes(INVITATION_ID_BYTES).toString('base64url');
    const expiresAt = this.#expiry(ttl);

    return { token: seal(INVITATION, { id, roomId, createdAt, expiresAt, ...terms }, this.#key), expiresAt };
  }

  /** Returns the invitation in a token, or the reason to refuse it. */
  readInvitation(token: string): Invitation | 'invalid token' | 'expired token' {
    const invitation = unseal(INVITATION, token, this.#key) as Invitation | undefined;
    if (invitation === undefined) return 'invalid token';

    return this.#clock.wall() >= invitation.expiresAt ? 'expired token' : invitation;
  }

  #expiry(ttl: number): number {
    return Math.floor(this.#clock.wall()) + ttl * 1_000;
  }
}
