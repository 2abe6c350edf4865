import type { Log } from '@bloom/log';
import type { Invitation, Passes } from '@bloom/rooms';
import { Allowances, type Clock, LogThrottle, systemClock } from '@bloom/time';
import { HttpError } from './errors.js';

/** Wrong tokens that a network may try, and guests that one invitation may bring. */
const WRONG_TOKENS = { burst: 10, perSecond: 10 / 60 };
const GUESTS = { burst: 60, perSecond: 1 };

export interface InvitationsOptions {
  passes: Passes;
  log: Log;
  clock?: Clock | undefined;
}

/** Reads the invitations that strangers present, at a limited rate. */
export class Invitations {
  readonly #options: InvitationsOptions;
  readonly #wrong: Allowances;
  readonly #guests: Allowances;
  readonly #throttle: LogThrottle;

  constructor(options: InvitationsOptions) {
    const { clock = systemClock } = options;
    this.#options = options;
    this.#wrong = new Allowances(WRONG_TOKENS, clock);
    this.#guests = new Allowances(GUESTS, clock);
    this.#throttle = new LogThrottle(clock);
  }

  /**
   * Returns the invitation in a token from this network. Wrong tokens never keep out clients with a right one.
   * @throws HttpError 401 for a wrong token, 410 for an expired one, 429
   */
  read(token: string, network: string): Invitation {
    const invitation = this.#options.passes.readInvitation(token);
    if (invitation === 'invalid token') {
      if (!this.#wrong.take(network)) this.#refuse(429, 'Too many wrong tokens; try again in a minute', network);
      return this.#refuse(401, 'Invalid token', network);
    }
    if (invitation === 'expired token') return this.#refuse(410, 'The invitation has expired', network);
    if (!this.#guests.take(invitation.id)) {
      this.#refuse(429, 'Too many guests use this invitation; try again in a minute', network);
    }

    return invitation;
  }

  #refuse(status: number, reason: string, network: string): never {
    if (this.#throttle.allows(`${status} ${network}`)) {
      this.#options.log.info('invitation.refused', { network, reason });
    }
    throw new HttpError(status, reason);
  }
}
