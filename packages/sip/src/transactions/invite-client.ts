import { SipHeaders } from '../headers.js';
import type { SipRequest, SipResponse } from '../message.js';
import { parseCSeq } from '../values.js';
import { ClientTransaction, LIFETIME } from './client-transaction.js';

/**
 * Client transaction of INVITE, RFC 3261 section 17.1.1, with the accepted state of RFC 6026: every 2xx, retransmitted
 * or from another branch of a fork, goes to `onResponse`, whose owner acknowledges it. Failures are acknowledged here.
 */
export class InviteClient extends ClientTransaction {
  #state: 'calling' | 'proceeding' | 'completed' | 'accepted' = 'calling';
  #ack: SipRequest | undefined;

  /** True after a provisional response: from then on CANCEL may be sent (section 9.1). */
  get proceeding(): boolean {
    return !this.ended && this.#state === 'proceeding';
  }

  receive(response: SipResponse): void {
    if (this.ended) return;
    if (this.#state === 'completed') {
      if (response.status >= 300 && this.#ack !== undefined) this.options.send(this.#ack);
      return;
    }
    if (this.#state === 'accepted') {
      if (response.status >= 200 && response.status < 300) this.options.onResponse(response);
      return;
    }
    this.stopTimers();
    if (response.status < 200) {
      this.#state = 'proceeding';
    } else if (response.status < 300) {
      this.#state = 'accepted';
      this.endAfter(LIFETIME);
    } else {
      this.#state = 'completed';
      this.#ack = acknowledgeFailure(this.request, response);
      this.options.send(this.#ack);
      if (this.options.reliable) this.abandon();
      else this.endAfter(LIFETIME);
    }
    this.options.onResponse(response);
  }

  /**
   * Over UDP nothing more is sent once the phone rings, so a failure then concerns another message to the same server.
   */
  protected override get waiting(): boolean {
    return this.#state === 'calling' || (this.#state === 'proceeding' && this.options.reliable);
  }

  /** Timer A. */
  protected override nextInterval(intervalMs: number): number {
    return intervalMs * 2;
  }
}

/** Section 17.1.1.3: same branch, same Request-URI, the To of the response. */
function acknowledgeFailure(request: SipRequest, response: SipResponse): SipRequest {
  const ack = sameBranch(request, 'ACK');
  ack.headers.set('To', response.headers.get('To') ?? (request.headers.get('To') as string));
  return ack;
}

/** Section 9.1: the branch identifies the request to cancel. */
export function cancelOf(invite: SipRequest): SipRequest {
  return sameBranch(invite, 'CANCEL');
}

function sameBranch(request: SipRequest, method: string): SipRequest {
  const headers = new SipHeaders();
  const copy = (name: string, ...values: readonly string[]) => headers.set(name, ...values);
  copy('Via', request.headers.get('Via') as string);
  copy('Max-Forwards', '70');
  copy('Route', ...request.headers.all('Route'));
  copy('From', request.headers.get('From') as string);
  copy('To', request.headers.get('To') as string);
  copy('Call-ID', request.headers.get('Call-ID') as string);
  copy('CSeq', `${parseCSeq(request.headers.get('CSeq') as string).sequence} ${method}`);
  return { kind: 'request', method, uri: request.uri, headers, body: Buffer.alloc(0) };
}
