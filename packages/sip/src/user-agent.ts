import { isIP } from 'node:net';
import { type Account, tagOf } from './calls/dialog.js';
import { Call } from './calls/call.js';
import type { CallOptions } from './calls/call-options.js';
import { escapeUser } from './calls/identity.js';
import { Registration, type RegistrationEvent } from './calls/registration.js';
import { ALLOW, responseWith, unsupported } from './calls/responses.js';
import type { Clock } from '@bloom/time';
import type { SipMessage, SipRequest, SipResponse } from './message.js';
import type { Randomness } from './randomness.js';
import type { ServerTransaction } from './transactions/server-transaction.js';
import { TransactionLayer } from './transactions/transaction-layer.js';
import type { Target, TransportName } from './transport/target.js';
import { hostText, parseVia, type SipUri } from './values.js';

/** The environment of a user agent. */
export interface UserAgentPort {
  clock: Clock;
  randomness: Randomness;
  /** Sends a message. Failures are reported later through `transportFailed`. */
  send: (message: SipMessage, target: Target) => void;
  locate: (uri: SipUri, done: (targets: readonly Target[]) => void) => void;
  /** Returns the address at which others reach us. */
  local: (transport: TransportName) => { host: string; port: number };
}

export interface RegisterOptions {
  expiresSeconds: number;
  onEvent: (event: RegistrationEvent) => void;
}

export type CallRequest = Pick<CallOptions, 'number' | 'media' | 'codecs' | 'ringTimeoutMs' | 'onEvent'> &
  Partial<Pick<CallOptions, 'onSettled' | 'former'>>;

/** A SIP user agent for one account, without sockets: messages in, messages out. It places calls but accepts none. */
export class UserAgent {
  readonly #port: UserAgentPort;
  readonly #account: Account;
  readonly #transactions: TransactionLayer;
  readonly #calls = new Map<string, Call>();
  readonly #strangerTag: string;
  #registration: Registration | undefined;
  /** Our address as seen by the registrar through a router (RFC 3581). */
  #seenAs: { host: string; port: number } | undefined;

  constructor(port: UserAgentPort, account: Account) {
    this.#port = port;
    this.#account = account;
    this.#strangerTag = port.randomness.token();
    this.#transactions = new TransactionLayer({
      clock: port.clock,
      randomness: port.randomness,
      send: port.send,
      sentBy: port.local,
      onRequest: (request, transaction) => this.#receiveRequest(request, transaction),
      onAck: (request) => this.#callOf(request)?.receiveAck(request),
      onNoAck: (invite) => this.#callOf(invite)?.noAck(),
      onLateSuccess: (response) => this.#calls.get(response.headers.get('Call-ID') ?? '')?.successAgain(response),
    });
  }

  /** Number of running transactions and of unsettled calls. */
  get activity(): { transactions: number; calls: number } {
    return { transactions: this.#transactions.size, calls: this.#calls.size };
  }

  receive(message: SipMessage, source: Target): void {
    this.#transactions.receive(message, source);
  }

  transportFailed(target: Target): void {
    this.#transactions.transportFailed(target);
  }

  register(options: RegisterOptions): Registration {
    this.#registration ??= new Registration({
      ...this.#exchangePort(),
      account: this.#account,
      contact: () => this.#contact(),
      onAnswer: (response) => this.#recordAddress(response),
      ...options,
    });
    this.#registration.start();
    return this.#registration;
  }

  /** Calls a number, or continues the call that another phone had. @throws SipError SIP_MALFORMED for the latter */
  dial(options: CallRequest): Call {
    const call = new Call({
      ...this.#exchangePort(),
      account: this.#account,
      contact: () => this.#contact(),
      ...options,
      onSettled: () => {
        // One that another phone has still tells the other side so.
        if (!call.hasLeft) this.#calls.delete(call.callId);
        options.onSettled?.();
      },
    });
    this.#calls.set(call.callId, call);
    call.start();
    return call;
  }

  /** Drops everything immediately, without BYE or unregistering. */
  close(): void {
    this.#registration?.close();
    for (const call of this.#calls.values()) call.close();
    this.#calls.clear();
    this.#transactions.close();
  }

  #exchangePort() {
    const { clock, randomness, locate } = this.#port;
    return { clock, randomness, locate, transactions: this.#transactions };
  }

  #contact(): string {
    const transport = this.#account.transport ?? 'UDP';
    const { host, port } = this.#seenAs ?? this.#port.local(transport);
    const suffix = transport === 'TCP' ? ';transport=tcp' : '';
    return `sip:${escapeUser(this.#account.username)}@${hostText(host)}:${port}${suffix}`;
  }

  /** Puts the address that the server sees (RFC 3581) into our Contact. */
  #recordAddress(response: SipResponse): void {
    const via = parseVia(response.headers.get('Via') as string);
    const rport = via.params.get('rport') ?? '';
    const host = via.params.get('received') ?? via.host;
    const port = /^\d{1,5}$/.test(rport) ? Number(rport) : 0;
    // Over TCP the port belongs to a single connection, and we do not listen on it.
    if (via.transport === 'UDP' && isIP(host) !== 0 && port > 0 && port < 65_536) this.#seenAs = { host, port };
  }

  #callOf(request: SipRequest): Call | undefined {
    const call = this.#calls.get(request.headers.get('Call-ID') ?? '');
    return call?.owns(request) ? call : undefined;
  }

  #receiveRequest(request: SipRequest, transaction: ServerTransaction): void {
    const call = this.#callOf(request);
    if (call !== undefined) {
      call.receive(request, transaction);
      return;
    }
    this.#answerStranger(request, transaction);
    // Stateless (section 8.2.7): a flood from strangers must not use up the transactions of a call.
    transaction.abandon();
  }

  #answerStranger(request: SipRequest, transaction: ServerTransaction): void {
    const respond = (status: number, reason: string, headers: [string, string][] = []) =>
      transaction.respond(responseWith(request, { status, reason, toTag: this.#strangerTag, headers }));
    if (request.method === 'CANCEL' || tagOf(request.headers.get('To')) !== '') {
      respond(481, 'Call/Transaction Does Not Exist');
      return;
    }
    const bad = unsupported(request);
    if (bad !== undefined) transaction.respond(bad);
    else if (request.method === 'OPTIONS')
      respond(200, 'OK', [
        ['Allow', ALLOW],
        ['Accept', 'application/sdp'],
      ]);
    else if (request.method === 'INVITE') respond(480, 'This Phone Only Calls');
    else respond(405, 'Method Not Allowed', [['Allow', ALLOW]]);
  }
}
