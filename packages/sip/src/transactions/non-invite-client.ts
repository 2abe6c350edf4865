import { Timer } from '../clock.js';
import type { SipRequest, SipResponse } from '../message.js';
import type { ClientTransaction, ClientTransactionOptions, TransactionFailure } from './client-transaction.js';
import { LIFETIME, T1, T2, T4 } from './timers.js';

/** Client transaction of every method but INVITE and ACK, RFC 3261 section 17.1.2. */
export class NonInviteClient implements ClientTransaction {
  readonly request: SipRequest;
  readonly #options: ClientTransactionOptions;
  readonly #repeat: Timer;
  readonly #lifetime: Timer;
  #state: 'trying' | 'proceeding' | 'completed' | 'terminated' = 'trying';
  #interval = T1;

  constructor(options: ClientTransactionOptions) {
    this.request = options.request;
    this.#options = options;
    this.#repeat = new Timer(options.clock);
    this.#lifetime = new Timer(options.clock);
  }

  start(): void {
    this.#lifetime.start(LIFETIME, () => this.#fail('timeout'));
    if (!this.#options.reliable) this.#repeat.start(this.#interval, () => this.#again());
    this.#options.send(this.request);
  }

  receive(response: SipResponse): void {
    if (this.#state === 'completed' || this.#state === 'terminated') return;
    if (response.status < 200) {
      this.#state = 'proceeding';
      this.#options.onResponse(response);
      return;
    }
    this.#state = 'completed';
    this.#repeat.stop();
    this.#lifetime.stop();
    // Timer K: late copies of the response are still ours.
    if (this.#options.reliable) this.abandon();
    else this.#lifetime.start(T4, () => this.abandon());
    this.#options.onResponse(response);
  }

  transportFailed(): void {
    if (this.#state === 'trying' || this.#state === 'proceeding') this.#fail('transport');
  }

  abandon(): void {
    if (this.#state === 'terminated') return;
    this.#state = 'terminated';
    this.#repeat.stop();
    this.#lifetime.stop();
    this.#options.onEnd();
  }

  /** Timer E: doubles up to T2; T2 at once when somebody is working on it. */
  #again(): void {
    this.#interval = this.#state === 'proceeding' ? T2 : Math.min(this.#interval * 2, T2);
    this.#repeat.start(this.#interval, () => this.#again());
    this.#options.send(this.request);
  }

  #fail(failure: TransactionFailure): void {
    this.abandon();
    this.#options.onFailure(failure);
  }
}
