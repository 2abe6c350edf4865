import type { Clock } from '@bloom/time';
import { isSipError, SipError } from '../errors.js';
import { SipHeaders } from '../headers.js';
import type { SipMessage, SipRequest, SipResponse } from '../message.js';
import type { Randomness } from '../randomness.js';
import type { Target, TransportName } from '../transport/target.js';
import { sameTarget } from '../transport/target.js';
import { hostText, parseCSeq, parseNameAddress, parseVia, writeParams } from '../values.js';
import type { ClientTransaction, TransactionFailure } from './client-transaction.js';
import { InviteClient } from './invite-client.js';
import { NonInviteClient } from './non-invite-client.js';
import type { ServerTransaction } from './server-transaction.js';
import { InviteServer, NonInviteServer } from './server-transaction.js';

/** Requests beyond this number are dropped: an honest peer of a phone never opens so many. */
const MAX_SERVER_TRANSACTIONS = 1000;
const COOKIE = 'z9hG4bK';

export interface TransactionLayerPort {
  clock: Clock;
  randomness: Randomness;
  send: (message: SipMessage, target: Target) => void;
  /** Returns the address for Via, where we expect responses. */
  sentBy: (transport: TransportName) => { host: string; port: number };
  /** Called for each new request; answer it with `respond`. */
  onRequest: (request: SipRequest, transaction: ServerTransaction, source: Target) => void;
  /** Called for an ACK outside any transaction, which acknowledges a 2xx. */
  onAck: (request: SipRequest) => void;
  /** Called when our 2xx to an INVITE was never acknowledged. */
  onNoAck: (invite: SipRequest) => void;
  /** Called for a 2xx to an INVITE whose transaction has ended. */
  onLateSuccess: (response: SipResponse) => void;
}

export interface ClientHandlers {
  onResponse: (response: SipResponse) => void;
  onFailure: (failure: TransactionFailure) => void;
}

/** Matches messages to transactions, RFC 3261 sections 17.1.3 and 17.2.3, and creates new ones. */
export class TransactionLayer {
  readonly #port: TransactionLayerPort;
  readonly #clients = new Map<string, { transaction: ClientTransaction; target: Target }>();
  readonly #servers = new Map<string, ServerTransaction>();

  constructor(port: TransactionLayerPort) {
    this.#port = port;
  }

  /** Number of running transactions. */
  get size(): number {
    return this.#clients.size + this.#servers.size;
  }

  /** Sends a request in a new transaction, with a new Via. */
  request(request: SipRequest, target: Target, handlers: ClientHandlers): ClientTransaction {
    this.#addVia(request, target);
    return this.#start(request, target, handlers);
  }

  /** Sends a CANCEL with the Via of the request it cancels. */
  cancel(request: SipRequest, target: Target, handlers: ClientHandlers): ClientTransaction {
    return this.#start(request, target, handlers);
  }

  /** Sends an ACK for a 2xx. It has no transaction, so the caller sends it again for each retransmitted 2xx. */
  sendAck(request: SipRequest, target: Target): void {
    this.#addVia(request, target);
    this.#port.send(request, target);
  }

  /** Takes a received message. Malformed ones are dropped (sections 8.2 and 18.1.2). */
  receive(message: SipMessage, source: Target): void {
    try {
      if (message.kind === 'response') this.#receiveResponse(message);
      else this.#receiveRequest(message, source);
    } catch (error) {
      if (!isSipError(error, 'SIP_MALFORMED')) throw error;
    }
  }

  /** Reports that messages to this hop cannot be delivered. */
  transportFailed(target: Target): void {
    // Copy: a failure may start new transactions, which have not failed.
    const failed = [...this.#clients.values()].filter((client) => sameTarget(client.target, target));
    for (const client of failed) client.transaction.transportFailed();
  }

  /** Drops all transactions silently. */
  close(): void {
    for (const client of this.#clients.values()) client.transaction.abandon();
    for (const server of this.#servers.values()) server.abandon();
  }

  #start(request: SipRequest, target: Target, handlers: ClientHandlers): ClientTransaction {
    const key = clientKey(request.headers, request.method);
    const options = {
      request,
      reliable: target.transport !== 'UDP',
      clock: this.#port.clock,
      send: (message: SipRequest) => this.#port.send(message, target),
      onEnd: () => this.#clients.delete(key),
      ...handlers,
    };
    const transaction = request.method === 'INVITE' ? new InviteClient(options) : new NonInviteClient(options);
    this.#clients.set(key, { transaction, target });
    transaction.start();
    return transaction;
  }

  #addVia(request: SipRequest, target: Target): void {
    const { host, port } = this.#port.sentBy(target.transport);
    const branch = `${COOKIE}${this.#port.randomness.token()}`;
    request.headers.set('Via', `SIP/2.0/${target.transport} ${hostText(host)}:${port};branch=${branch};rport`);
  }

  #receiveResponse(response: SipResponse): void {
    // More than one Via means that the response is for another host (section 8.1.3.3).
    if (response.headers.all('Via').length !== 1) return;
    const { method } = parseCSeq(response.headers.get('CSeq') ?? '');
    const client = this.#clients.get(clientKey(response.headers, method));
    if (client !== undefined) client.transaction.receive(response);
    else if (method === 'INVITE' && response.status >= 200 && response.status < 300) this.#port.onLateSuccess(response);
  }

  #receiveRequest(request: SipRequest, source: Target): void {
    const via = parseVia(request.headers.get('Via') ?? '');
    const { method } = parseCSeq(request.headers.get('CSeq') ?? '');
    // All of these are mandatory (section 8.1.1); without them no response is possible.
    parseNameAddress(request.headers.get('From') ?? '');
    parseNameAddress(request.headers.get('To') ?? '');
    if (!request.headers.get('Call-ID')) throw new SipError('SIP_MALFORMED', 'a request without Call-ID');
    this.#addReceived(request, source);

    const key = serverKey(request, method === 'ACK' ? 'INVITE' : method);
    const known = this.#servers.get(key);
    if (request.method === 'ACK') {
      if (known instanceof InviteServer) known.acknowledged();
      this.#port.onAck(request);
      return;
    }
    if (known !== undefined) {
      known.repeated();
      return;
    }
    if (this.#servers.size >= MAX_SERVER_TRANSACTIONS) return;

    const back = answerTarget(via, source);
    const options = {
      request,
      reliable: source.transport !== 'UDP',
      clock: this.#port.clock,
      send: (response: SipResponse) => this.#port.send(response, back),
      onEnd: () => this.#servers.delete(key),
      onNoAck: () => this.#port.onNoAck(request),
    };
    const transaction = request.method === 'INVITE' ? new InviteServer(options) : new NonInviteServer(options);
    this.#servers.set(key, transaction);
    if (method !== request.method) {
      transaction.respond(responseTo(request, { status: 400, reason: 'CSeq Does Not Match The Method' }));
      // Stateless (section 8.2.7): anyone can send these.
      transaction.abandon();
      return;
    }
    this.#port.onRequest(request, transaction, source);
  }

  /** Adds the source address to Via (section 18.2.1 and RFC 3581). */
  #addReceived(request: SipRequest, source: Target): void {
    const [top, ...others] = request.headers.all('Via');
    const via = parseVia(top as string);
    const params = new Map(via.params);
    if (via.host !== source.host || params.has('rport')) params.set('received', source.host);
    if (params.get('rport') === '') params.set('rport', String(source.port));
    const port = via.port === undefined ? '' : `:${via.port}`;
    const noted = `SIP/2.0/${via.transport} ${hostText(via.host)}${port}${writeParams(params)}`;
    request.headers.set('Via', noted, ...others);
  }
}

function clientKey(headers: SipHeaders, method: string): string {
  return `${parseVia(headers.get('Via') ?? '').params.get('branch') ?? ''} ${method}`;
}

function serverKey(request: SipRequest, method: string): string {
  const text = request.headers.get('Via') as string;
  const via = parseVia(text);
  const branch = via.params.get('branch') ?? '';
  if (branch.startsWith(COOKIE)) return `${branch} ${via.host}:${via.port ?? ''} ${method}`;
  // The peer speaks RFC 2543 (section 17.2.3).
  const from = parseNameAddress(request.headers.get('From') as string).params.get('tag') ?? '';
  const { sequence } = parseCSeq(request.headers.get('CSeq') as string);
  return [request.uri, from, request.headers.get('Call-ID'), sequence, text, method].join(' ');
}

/** Section 18.2.2: over TCP the same connection, over UDP the source address if `rport` requests it. */
function answerTarget(via: ReturnType<typeof parseVia>, source: Target): Target {
  if (source.transport !== 'UDP' || via.params.has('rport')) return source;
  return { ...source, port: via.port ?? 5060 };
}

export interface ResponseStart {
  status: number;
  reason: string;
  /** Added when the request has none. */
  toTag?: string | undefined;
}

/** Creates a response with the fields that section 8.2.6.2 copies. */
export function responseTo(request: SipRequest, { status, reason, toTag }: ResponseStart): SipResponse {
  const headers = new SipHeaders();
  headers.set('Via', ...request.headers.all('Via'));
  headers.set('From', request.headers.get('From') as string);
  const to = request.headers.get('To') as string;
  const tagged = parseNameAddress(to).params.has('tag') || toTag === undefined;
  headers.set('To', tagged ? to : `${to};tag=${toTag}`);
  headers.set('Call-ID', request.headers.get('Call-ID') as string);
  headers.set('CSeq', request.headers.get('CSeq') as string);
  return { kind: 'response', status, reason, headers, body: Buffer.alloc(0) };
}
