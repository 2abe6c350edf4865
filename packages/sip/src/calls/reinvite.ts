import { type Clock, Timer } from '@bloom/time';
import type { SipRequest, SipResponse } from '../message.js';
import type { Randomness } from '../randomness.js';
import type { Authenticator } from './authenticator.js';
import { Exchange, type ExchangeOutcome, type ExchangePort } from './exchange.js';
import type { SipUri } from '../values.js';

/** Time for the other side to accept. Nobody hears anything meanwhile. */
const TIMEOUT_MS = 10_000;

export interface ReinviteOptions {
  port: ExchangePort & { clock: Clock; randomness: Randomness };
  authenticator: Authenticator;
  hop: SipUri;
  /** Creates the request, with a higher CSeq each time. */
  build: () => SipRequest;
  /** Called once with the final response; `timeout` also if the other side never gets ready. */
  onOutcome: (outcome: ExchangeOutcome) => void;
  onSuccessAgain: (response: SipResponse, request: SipRequest) => void;
}

/** Our offer of a new session within a call, RFC 3261 section 14.1. */
export class Reinvite {
  readonly #options: ReinviteOptions;
  readonly #limit: Timer;
  readonly #retry: Timer;
  #exchange: Exchange | undefined;

  constructor(options: ReinviteOptions) {
    this.#options = options;
    this.#limit = new Timer(options.port.clock);
    this.#retry = new Timer(options.port.clock);
  }

  start(): void {
    this.#limit.start(TIMEOUT_MS, () => {
      this.abandon();
      this.#options.onOutcome({ failure: 'timeout' });
    });
    this.#send();
  }

  /** Ends it without an outcome. */
  abandon(): void {
    this.#limit.stop();
    this.#retry.stop();
    this.#exchange?.abandon();
  }

  #send(): void {
    this.#exchange = new Exchange({ ...this.#options, onOutcome: (outcome) => this.#take(outcome) });
    this.#exchange.start();
  }

  #take(outcome: ExchangeOutcome): void {
    if ('response' in outcome && outcome.response.status === 491) {
      // Both sides made an offer at once. The owner of the Call-ID waits for 2.1 to 4 s.
      this.#retry.start(2_100 + this.#options.port.randomness.below(1_900), () => this.#send());
      return;
    }
    this.#limit.stop();
    this.#options.onOutcome(outcome);
  }
}
