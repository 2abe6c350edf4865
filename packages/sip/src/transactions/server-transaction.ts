/** Server transactions, RFC 3261 section 17.2, with the accepted state of RFC 6026. */
import { type Clock, Timer } from '@bloom/time';
import type { SipRequest, SipResponse } from '../message.js';
import { LIFETIME, T1, T2, T4 } from './client-transaction.js';

export interface ServerTransactionOptions {
  request: SipRequest;
  reliable: boolean;
  clock: Clock;
  send: (response: SipResponse) => void;
  onEnd: () => void;
}

export interface ServerTransaction {
  readonly request: SipRequest;
  /** Takes a retransmission of the request. */
  repeated(): void;
  respond(response: SipResponse): void;
  abandon(): void;
}

/** Server transaction of every method except INVITE and ACK. */
export class NonInviteServer implements ServerTransaction {
  readonly request: SipRequest;
  readonly #options: ServerTransactionOptions;
  readonly #lifetime: Timer;
  #last: SipResponse | undefined;
  #ended = false;

  constructor(options: ServerTransactionOptions) {
    this.request = options.request;
    this.#options = options;
    this.#lifetime = new Timer(options.clock);
  }

  repeated(): void {
    if (this.#last !== undefined) this.#options.send(this.#last);
  }

  respond(response: SipResponse): void {
    if (this.#ended || (this.#last?.status ?? 0) >= 200) return;
    this.#last = response;
    this.#options.send(response);
    if (response.status < 200) return;
    if (this.#options.reliable) this.abandon();
    else this.#lifetime.start(LIFETIME, () => this.abandon());
  }

  abandon(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#lifetime.stop();
    this.#options.onEnd();
  }
}

export interface InviteServerOptions extends ServerTransactionOptions {
  /**
   * Called when a 2xx was never acknowledged (section 13.3.1.4). A rejection changes nothing, so its ACK does not
   * matter.
   */
  onNoAck: () => void;
}

/**
 * Server transaction of INVITE. Retransmits its final response, 2xx included (section 13.3.1.4), until the ACK arrives.
 */
export class InviteServer implements ServerTransaction {
  readonly request: SipRequest;
  readonly #options: InviteServerOptions;
  readonly #repeat: Timer;
  readonly #lifetime: Timer;
  #state: 'proceeding' | 'completed' | 'confirmed' | 'terminated' = 'proceeding';
  #last: SipResponse | undefined;
  #interval = T1;

  constructor(options: InviteServerOptions) {
    this.request = options.request;
    this.#options = options;
    this.#repeat = new Timer(options.clock);
    this.#lifetime = new Timer(options.clock);
  }

  /** True until the final response is acknowledged. */
  get open(): boolean {
    return this.#state === 'proceeding' || this.#state === 'completed';
  }

  repeated(): void {
    if (this.#last !== undefined && this.open) this.#options.send(this.#last);
  }

  respond(response: SipResponse): void {
    if (this.#state !== 'proceeding') return;
    this.#last = response;
    if (response.status >= 200) {
      this.#state = 'completed';
      this.#lifetime.start(LIFETIME, () => {
        this.abandon();
        if (response.status < 300) this.#options.onNoAck();
      });
      // A 2xx is retransmitted over TCP too, because its ACK is end to end.
      if (!this.#options.reliable || response.status < 300)
        this.#repeat.start(this.#interval, () => this.#retransmit());
    }
    this.#options.send(response);
  }

  /** Takes the ACK. */
  acknowledged(): void {
    if (this.#state !== 'completed') return;
    this.#state = 'confirmed';
    this.#repeat.stop();
    this.#lifetime.start(this.#options.reliable ? 0 : T4, () => this.abandon());
  }

  abandon(): void {
    if (this.#state === 'terminated') return;
    this.#state = 'terminated';
    this.#repeat.stop();
    this.#lifetime.stop();
    this.#options.onEnd();
  }

  #retransmit(): void {
    this.#interval = Math.min(this.#interval * 2, T2);
    this.#repeat.start(this.#interval, () => this.#retransmit());
    if (this.#last !== undefined) this.#options.send(this.#last);
  }
}
