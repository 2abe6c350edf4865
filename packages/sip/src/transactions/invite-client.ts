import { Timer } from '../clock.js';
import { SipHeaders } from '../headers.js';
import type { SipRequest, SipResponse } from '../message.js';
import { parseCSeq } from '../values.js';
import type { ClientTransaction, ClientTransactionOptions, TransactionFailure } from './client-transaction.js';
import { LIFETIME, T1 } from './timers.js';

/**
 * Client transaction of INVITE, RFC 3261 section 17.1.1, with the accepted state of RFC 6026: repeated 2xx and those of
 * other branches of a fork keep coming to `onResponse`, whose owner acknowledges them. Others are acknowledged here.
 */
export class InviteClient implements ClientTransaction {
  readonly request: SipRequest;
  readonly #options: ClientTransactionOptions;
  readonly #repeat: Timer;
  readonly #lifetime: Timer;
  #state: 'calling' | 'proceeding' | 'completed' | 'accepted' | 'terminated' = 'calling';
  #interval = T1;
  #ack: SipRequest | undefined;

  constructor(options: ClientTransactionOptions) {
    this.request = options.request;
    this.#options = options;
    this.#repeat = new Timer(options.clock);
    this.#lifetime = new Timer(options.clock);
  }

  /** Somebody answered, but not finally: the moment from which CANCEL may be sent (section 9.1). */
  get proceeding(): boolean {
    return this.#state === 'proceeding';
  }

  start(): void {
    this.#lifetime.start(LIFETIME, () => this.#fail('timeout'));
    if (!this.#options.reliable) this.#repeat.start(this.#interval, () => this.#again());
    this.#options.send(this.request);
  }

  receive(response: SipResponse): void {
    if (this.#state === 'terminated') return;
    if (this.#state === 'completed') {
      if (response.status >= 300 && this.#ack) this.#options.send(this.#ack);
      return;
    }
    if (this.#state === 'accepted') {
      if (response.status >= 200 && response.status < 300) this.#options.onResponse(response);
      return;
    }
    this.#repeat.stop();
    this.#lifetime.stop();
    if (response.status < 200) {
      this.#state = 'proceeding';
    } else if (response.status < 300) {
      this.#state = 'accepted';
      this.#lifetime.start(LIFETIME, () => this.abandon());
    } else {
      this.#state = 'completed';
      this.#ack = acknowledgeFailure(this.request, response);
      this.#options.send(this.#ack);
      if (this.#options.reliable) this.abandon();
      else this.#lifetime.start(LIFETIME, () => this.abandon());
    }
    this.#options.onResponse(response);
  }

  transportFailed(): void {
    if (this.#state === 'calling' || this.#state === 'proceeding') this.#fail('transport');
  }

  abandon(): void {
    if (this.#state === 'terminated') return;
    this.#state = 'terminated';
    this.#repeat.stop();
    this.#lifetime.stop();
    this.#options.onEnd();
  }

  /** Timer A. */
  #again(): void {
    this.#interval *= 2;
    this.#repeat.start(this.#interval, () => this.#again());
    this.#options.send(this.request);
  }

  #fail(failure: TransactionFailure): void {
    this.abandon();
    this.#options.onFailure(failure);
  }
}

/** Section 17.1.1.3: same branch, same Request-URI, the To of the response. */
function acknowledgeFailure(request: SipRequest, response: SipResponse): SipRequest {
  const ack = sameBranch(request, 'ACK');
  ack.headers.set('To', response.headers.get('To') ?? (request.headers.get('To') as string));
  return ack;
}

/** Section 9.1: what is cancelled is found by the branch. */
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
