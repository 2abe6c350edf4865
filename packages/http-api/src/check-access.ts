import type { IncomingMessage } from 'node:http';
import type { Passes, RoomService } from '@bloom/rooms';
import { Allowances, type Clock, systemClock } from '@bloom/time';
import { bearerToken } from './auth.js';
import { HttpError } from './errors.js';

/** Limit on checks per invitation, per peer, and for all operators together: a page makes one for each attempt. */
const CHECKS = { burst: 10, perSecond: 10 / 60 };

export interface CheckAccessOptions {
  rooms: Pick<RoomService, 'readToken'>;
  passes: Passes;
  /** Accepts the API token. @throws HttpError 401 and 403 */
  authenticate(request: IncomingMessage): void;
  clock?: Clock | undefined;
}

/** Room of each admitted request that did not come from an operator. */
const ROOMS = new WeakMap<IncomingMessage, string>();

/** Returns the room of an admitted request's invitation or peer; undefined for an operator. */
export function roomOfCheck(request: IncomingMessage): string | undefined {
  return ROOMS.get(request);
}

/** Decides who may check the ways to this node: operators, and holders of an invitation or a peer's token. */
export class CheckAccess {
  readonly #options: CheckAccessOptions;
  readonly #checks: Allowances;

  constructor(options: CheckAccessOptions) {
    this.#options = options;
    this.#checks = new Allowances(CHECKS, options.clock ?? systemClock);
  }

  /** @throws HttpError 401, 403 and 429 */
  authenticate(request: IncomingMessage): void {
    if (!this.#checks.take(this.#holderOf(request))) throw new HttpError(429, 'Too many checks; try again in a minute');
  }

  /** Returns the bearer of the token, and keeps its room. @throws HttpError 401 and 403 */
  #holderOf(request: IncomingMessage): string {
    const { passes, rooms, authenticate } = this.#options;
    const token = bearerToken(request);
    const invitation = passes.readInvitation(token);
    if (typeof invitation === 'object') {
      ROOMS.set(request, invitation.roomId);
      return `invitation ${invitation.id}`;
    }
    const peer = rooms.readToken(token);
    if (typeof peer === 'object') {
      ROOMS.set(request, peer.roomId);
      return `peer ${peer.roomId} ${peer.peerId}`;
    }
    authenticate(request);

    return 'operator';
  }
}
