import type { Credentials } from '../digest.js';
import { SipHeaders } from '../headers.js';
import type { SipRequest, SipResponse } from '../message.js';
import type { NameAddress, SipUri } from '../values.js';
import { parseCSeq, parseNameAddress, parseUri } from '../values.js';

/** Our account at a provider. */
export interface Account extends Credentials {
  /** The provider: host name or IP address. */
  domain: string;
  /** Undefined: found through DNS, falling back to 5060. */
  port: number | undefined;
  transport: 'UDP' | 'TCP' | undefined;
}

/** A dialog as plain data, so that another process can continue it. */
export interface DialogState {
  callId: string;
  /** Values of the header fields in our requests, tags included. */
  from: string;
  to: string;
  /** URI of the other side. */
  remoteTarget: string;
  /** Values of Route, next hop first. */
  routes: readonly string[];
  /** CSeq of our last request. */
  localSequence: number;
  /** CSeq of the last request of the other side; null before the first. */
  remoteSequence: number | null;
}

/** A dialog in which we were the caller, RFC 3261 section 12. Early until a 2xx confirms it. */
export class Dialog {
  readonly callId: string;
  readonly localTag: string;
  readonly remoteTag: string;
  confirmed = false;
  readonly #from: string;
  #to: string;
  #remoteTarget: string;
  #routes: readonly string[];
  #localSequence: number;
  #remoteSequence: number | undefined;

  /** Continues a dialog. @throws SipError SIP_MALFORMED */
  constructor({ callId, from, to, remoteTarget, routes, localSequence, remoteSequence }: DialogState) {
    this.callId = callId;
    this.#from = from;
    this.localTag = tagOf(from);
    this.#to = to;
    this.remoteTag = tagOf(to);
    this.#localSequence = localSequence;
    this.#remoteSequence = remoteSequence ?? undefined;
    this.#remoteTarget = remoteTarget;
    this.#routes = routes;
    this.#check();
  }

  /** Creates a dialog from a response with a To tag (section 12.1.2). @throws SipError SIP_MALFORMED */
  static of(invite: SipRequest, response: SipResponse): Dialog {
    return new Dialog({
      callId: invite.headers.get('Call-ID') as string,
      from: invite.headers.get('From') as string,
      to: response.headers.get('To') as string,
      remoteTarget: contactOf(response) ?? invite.uri,
      routes: response.headers.all('Record-Route').toReversed(),
      localSequence: parseCSeq(invite.headers.get('CSeq') as string).sequence,
      remoteSequence: null,
    });
  }

  get id(): string {
    return dialogId(this.callId, this.localTag, this.remoteTag);
  }

  /** Next hop of a request in this dialog: the first route, or the remote target. @throws SipError SIP_MALFORMED */
  get nextHop(): SipUri {
    const first = this.#routes[0];
    return parseUri(first === undefined ? this.#remoteTarget : parseNameAddress(first).uri);
  }

  /** Takes the route set of the 2xx, which is final (section 13.2.2.4). @throws SipError SIP_MALFORMED */
  confirm(response: SipResponse): void {
    this.confirmed = true;
    this.#routes = response.headers.all('Record-Route').toReversed();
    this.refreshTarget(response);
    this.#check();
  }

  /** Returns what another process needs to continue the dialog. */
  state(): DialogState {
    return {
      callId: this.callId,
      from: this.#from,
      to: this.#to,
      remoteTarget: this.#remoteTarget,
      routes: this.#routes,
      localSequence: this.#localSequence,
      remoteSequence: this.#remoteSequence ?? null,
    };
  }

  /** Takes the remote target of a re-INVITE or UPDATE, or of the 2xx to our INVITE (section 12.2). */
  refreshTarget(message: SipRequest | SipResponse): void {
    this.#remoteTarget = contactOf(message) ?? this.#remoteTarget;
  }

  /** Creates the next request of this dialog. An ACK has the sequence number of its INVITE. */
  request(method: string, sequence = this.#nextSequence()): SipRequest {
    const headers = new SipHeaders();
    let uri = this.#remoteTarget;
    let routes = this.#routes;
    const first = routes[0];
    if (first !== undefined && !parseUri(parseNameAddress(first).uri).params.has('lr')) {
      // The route is a strict router of RFC 2543 (section 12.2.1.1).
      uri = parseNameAddress(first).uri;
      routes = [...routes.slice(1), `<${this.#remoteTarget}>`];
    }
    headers.set('Max-Forwards', '70');
    headers.set('Route', ...routes);
    headers.set('From', this.#from);
    headers.set('To', this.#to);
    headers.set('Call-ID', this.callId);
    headers.set('CSeq', `${sequence} ${method}`);
    return { kind: 'request', method, uri, headers, body: Buffer.alloc(0) };
  }

  /** Returns whether a request from the other side is in order (section 12.2.2). */
  accepts(request: SipRequest): boolean {
    const { sequence } = parseCSeq(request.headers.get('CSeq') as string);
    if (this.#remoteSequence !== undefined && sequence <= this.#remoteSequence) return false;
    this.#remoteSequence = sequence;
    return true;
  }

  /** Makes an unusable route fail now instead of at the end of the call. */
  #check(): void {
    for (const route of this.#routes) parseNameAddress(route);
    void this.nextHop;
  }

  #nextSequence(): number {
    this.#localSequence += 1;
    return this.#localSequence;
  }
}

function dialogId(callId: string, localTag: string, remoteTag: string): string {
  return `${callId} ${localTag} ${remoteTag}`;
}

/** Returns the id of the dialog that a request from the other side belongs to. @throws SipError SIP_MALFORMED */
export function dialogIdOfRequest(request: SipRequest): string {
  const local = tagOf(request.headers.get('To'));
  return dialogId(request.headers.get('Call-ID') ?? '', local, tagOf(request.headers.get('From')));
}

export function tagOf(value: string | undefined): string {
  return parseNameAddress(value ?? '').params.get('tag') ?? '';
}

function contactOf(message: SipRequest | SipResponse): string | undefined {
  const contact = message.headers.get('Contact');
  if (contact === undefined) return undefined;
  let address: NameAddress;
  try {
    address = parseNameAddress(contact);
    parseUri(address.uri);
  } catch {
    // An unusable Contact: keep the previous one.
    return undefined;
  }
  return address.uri;
}
