import type { SipResponse } from '../message.js';
import { ClientTransaction, T2, T4 } from './client-transaction.js';

/** Client transaction of every method except INVITE and ACK, RFC 3261 section 17.1.2. */
export class NonInviteClient extends ClientTransaction {
  #state: 'trying' | 'proceeding' | 'completed' = 'trying';

  receive(response: SipResponse): void {
    if (this.ended || this.#state === 'completed') return;
    if (response.status < 200) {
      this.#state = 'proceeding';
      this.options.onResponse(response);
      return;
    }
    this.#state = 'completed';
    this.stopTimers();
    // Timer K absorbs retransmissions of the response.
    if (this.options.reliable) this.abandon();
    else this.endAfter(T4);
    this.options.onResponse(response);
  }

  protected override get waiting(): boolean {
    return this.#state !== 'completed';
  }

  /** Timer E: doubles up to T2, and stays there once the server is working on the request. */
  protected override nextInterval(intervalMs: number): number {
    return this.#state === 'proceeding' ? T2 : Math.min(intervalMs * 2, T2);
  }
}
