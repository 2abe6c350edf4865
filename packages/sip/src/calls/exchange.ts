import type { SipRequest, SipResponse } from '../message.js';
import type { ClientTransaction } from '../transactions/client-transaction.js';
import type { TransactionLayer } from '../transactions/transaction-layer.js';
import type { Target } from '../transport/target.js';
import type { SipUri } from '../values.js';
import type { AuthAttempt, Authenticator } from './authenticator.js';

/** `unresolved`: no address was found for the host. */
export type ExchangeFailure = 'timeout' | 'transport' | 'unresolved';

export type ExchangeOutcome =
  | { response: SipResponse; request: SipRequest; target: Target }
  | { failure: ExchangeFailure };

export interface ExchangePort {
  transactions: TransactionLayer;
  /** Looks up where to send a request, best target first (RFC 3263). `done` may be called synchronously or later. */
  locate: (uri: SipUri, done: (targets: readonly Target[]) => void) => void;
}

export interface ExchangeOptions {
  port: ExchangePort;
  authenticator: Authenticator;
  /** Creates the request, with a higher CSeq each time. */
  build: () => SipRequest;
  hop: SipUri;
  onProvisional?: (response: SipResponse, request: SipRequest, target: Target) => void;
  /** Called once. For INVITE, each further 2xx goes to `onSuccessAgain`. */
  onOutcome: (outcome: ExchangeOutcome) => void;
  onSuccessAgain?: (response: SipResponse, request: SipRequest) => void;
}

/** One request with everything needed to get a response: addresses, credentials, and the next server when one fails. */
export class Exchange {
  readonly #options: ExchangeOptions;
  readonly #auth: AuthAttempt;
  #targets: readonly Target[] = [];
  #at = 0;
  #transaction: ClientTransaction | undefined;
  #request: SipRequest | undefined;
  #done = false;
  #final = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#auth = options.authenticator.attempt();
  }

  /** The pending transaction. */
  get current(): { transaction: ClientTransaction; request: SipRequest; target: Target } | undefined {
    const target = this.#targets[this.#at];
    if (this.#done || this.#transaction === undefined || this.#request === undefined || target === undefined)
      return undefined;
    return { transaction: this.#transaction, request: this.#request, target };
  }

  start(): void {
    this.#options.port.locate(this.#options.hop, (targets) => {
      if (this.#done) return;
      this.#targets = targets;
      this.#try({ failure: 'unresolved' });
    });
  }

  /** Ends the exchange without an outcome. */
  abandon(): void {
    this.#done = true;
    this.#transaction?.abandon();
  }

  /** Stops retrying: the next response is the outcome, even a challenge. */
  finish(): void {
    this.#final = true;
  }

  #try(otherwise: ExchangeOutcome): void {
    const target = this.#targets[this.#at];
    if (target === undefined || this.#final) {
      this.#settle(otherwise);
      return;
    }
    const request = this.#options.build();
    this.#options.authenticator.authorize(request);
    this.#request = request;
    this.#transaction = undefined;
    // The transaction may fail before `request` returns.
    const transaction = this.#options.port.transactions.request(request, target, {
      onResponse: (response) => this.#receive(response, request, target),
      onFailure: (failure) => {
        if (this.#done) return;
        this.#at += 1;
        this.#try({ failure });
      },
    });
    if (this.#request === request) this.#transaction = transaction;
  }

  #receive(response: SipResponse, request: SipRequest, target: Target): void {
    if (this.#done) {
      if (response.status >= 200 && response.status < 300) this.#options.onSuccessAgain?.(response, request);
      return;
    }
    const { status } = response;
    if (status < 200) {
      this.#options.onProvisional?.(response, request, target);
      return;
    }
    const outcome = { response, request, target };
    if ((status === 401 || status === 407) && !this.#final && this.#auth.challenged(response)) {
      this.#try(outcome);
      return;
    }
    if (status === 503 && this.#at + 1 < this.#targets.length) {
      // Another server may be available (RFC 3263 section 4.3).
      this.#at += 1;
      this.#try(outcome);
      return;
    }
    if (status < 300) this.#options.authenticator.accepted();
    this.#settle(outcome);
  }

  #settle(outcome: ExchangeOutcome): void {
    if (this.#done) return;
    this.#done = true;
    this.#options.onOutcome(outcome);
  }
}
