import { type Clock, Timer } from '@bloom/time';
import { SipHeaders } from '../headers.js';
import type { SipRequest, SipResponse } from '../message.js';
import type { Randomness } from '../randomness.js';
import { sameTarget, type Target } from '../transport/target.js';
import { parseNameAddress, parseUri } from '../values.js';
import { Authenticator } from './authenticator.js';
import type { Account } from './dialog.js';
import type { ExchangeOutcome, ExchangePort } from './exchange.js';
import { Exchange } from './exchange.js';
import { addressOfRecord, registrarUri } from './identity.js';

export type RegistrationEvent =
  | { type: 'registered'; expiresSeconds: number }
  /** `final` failures are not retried, because nothing would change. */
  | { type: 'failed'; final: boolean; reason: RegistrationFailure; status: number | undefined; text: string }
  | { type: 'stopped' };

/** `waiting` means until the next attempt; `failed` is permanent. */
export type RegistrationState = 'idle' | 'registering' | 'registered' | 'waiting' | 'failed' | 'stopping' | 'stopped';

export type RegistrationFailure = 'unauthorized' | 'refused' | 'unreachable' | 'server';

export interface RegistrationOptions extends ExchangePort {
  account: Account;
  clock: Clock;
  randomness: Randomness;
  /** Returns our address for this user, the URI in Contact. */
  contact: () => string;
  /** Requested lifetime; the registrar decides. */
  expiresSeconds: number;
  onEvent: (event: RegistrationEvent) => void;
  /** Called with each response. Its Via shows our address as seen by the registrar. */
  onAnswer?: (response: SipResponse) => void;
}

const FIRST_RETRY_MS = 2000;
const LONGEST_RETRY_MS = 60_000;
/** Bounds of the refresh interval, whatever the registrar grants. */
const SHORTEST_REFRESH_MS = 5000;
const LONGEST_REFRESH_MS = 86_400_000;
/** Maximum number of consecutive 423 responses in one attempt. */
const MAX_TOO_BRIEF = 2;

/** Keeps one user registered, RFC 3261 section 10: refreshes, authenticates, retries, and finally unregisters. */
export class Registration {
  readonly #options: RegistrationOptions;
  readonly #authenticator: Authenticator;
  readonly #timer: Timer;
  readonly #callId: string;
  readonly #tag: string;
  #sequence = 0;
  #expires: number;
  #failures = 0;
  #tooBrief = 0;
  #state: RegistrationState = 'idle';
  /** True when the registrar may have our binding. */
  #bound = false;
  /** Contact of the last successful registration. Ours changes when the registrar reports another address. */
  #boundContact: string | undefined;
  #exchange: Exchange | undefined;
  #target: Target | undefined;

  constructor(options: RegistrationOptions) {
    this.#options = options;
    this.#authenticator = new Authenticator(options.account, options.randomness);
    this.#timer = new Timer(options.clock);
    this.#callId = options.randomness.token();
    this.#tag = options.randomness.token();
    this.#expires = options.expiresSeconds;
  }

  /** The server that has our binding. */
  get target(): Target | undefined {
    return this.#target;
  }

  get state(): RegistrationState {
    return this.#state;
  }

  start(): void {
    if (this.#state === 'idle') this.#register();
  }

  /** Unregisters; `stopped` follows when the registrar has answered or the time limit has passed. */
  stop(): void {
    if (this.#state === 'stopping' || this.#state === 'stopped') return;
    this.#timer.stop();
    const bound = this.#bound || this.#state === 'registering';
    this.#exchange?.abandon();
    if (!bound) {
      this.#stopped();
      return;
    }
    this.#state = 'stopping';
    // A registrar that misses the first few retransmissions will not answer later ones.
    this.#timer.start(4000, () => this.#stopped());
    this.#send(0, () => this.#stopped());
  }

  /** Stops without unregistering. */
  close(): void {
    this.#state = 'stopped';
    this.#timer.stop();
    this.#exchange?.abandon();
  }

  #register(): void {
    this.#state = 'registering';
    this.#send(this.#expires, (outcome) => this.#settle(outcome));
  }

  #send(expires: number, onOutcome: (outcome: ExchangeOutcome) => void): void {
    this.#exchange = new Exchange({
      port: expires === 0 ? { ...this.#options, locate: this.#locateBound } : this.#options,
      authenticator: this.#authenticator,
      hop: parseUri(registrarUri(this.#options.account)),
      build: () => this.#build(expires),
      onOutcome,
    });
    this.#exchange.start();
  }

  /** Puts the server that has our binding first: an unregistration has no time to wait for another server. */
  readonly #locateBound: ExchangePort['locate'] = (uri, done) => {
    const rank = (target: Target) => (this.#target !== undefined && sameTarget(target, this.#target) ? 0 : 1);
    this.#options.locate(uri, (targets) => done(targets.toSorted((a, b) => rank(a) - rank(b))));
  };

  #build(expires: number): SipRequest {
    this.#sequence += 1;
    const { account } = this.#options;
    const address = addressOfRecord(account);
    const headers = new SipHeaders();
    headers.set('Max-Forwards', '70');
    headers.set('From', `<${address}>;tag=${this.#tag}`);
    headers.set('To', `<${address}>`);
    headers.set('Call-ID', this.#callId);
    headers.set('CSeq', `${this.#sequence} REGISTER`);
    headers.set('Contact', ...this.#contacts(expires));
    headers.set('Expires', String(expires));
    headers.set('User-Agent', 'Bloom');
    return { kind: 'request', method: 'REGISTER', uri: registrarUri(account), headers, body: Buffer.alloc(0) };
  }

  /**
   * Returns the values of Contact. An earlier address is removed, since it would otherwise stay bound until it expires
   * (section 10.2.2).
   */
  #contacts(expires: number): string[] {
    const current = this.#options.contact();
    const values = [`<${current}>;expires=${expires}`];
    if (this.#boundContact !== undefined && this.#boundContact !== current)
      values.push(`<${this.#boundContact}>;expires=0`);
    return values;
  }

  #settle(outcome: ExchangeOutcome): void {
    if ('failure' in outcome) {
      const text = outcome.failure === 'unresolved' ? 'the registrar has no address' : 'the registrar does not answer';
      this.#fail({ final: false, reason: 'unreachable', status: undefined, text });
      return;
    }
    const { response, request } = outcome;
    if (response.status < 300) this.#target = outcome.target;
    this.#options.onAnswer?.(response);
    const { status } = response;
    const text = `${status} ${response.reason}`;
    if (status < 300) this.#registered(response, request);
    else if (status === 423) this.#lengthen(response, text);
    else if (status === 401 || status === 407) this.#fail({ final: true, reason: 'unauthorized', status, text });
    else if (status === 403 || status === 404 || status === 604 || (status >= 300 && status < 400))
      this.#fail({ final: true, reason: 'refused', status, text });
    else this.#fail({ final: false, reason: 'server', status, text, afterMs: retryAfter(response) });
  }

  #registered(response: SipResponse, request: SipRequest): void {
    const seconds = grantedSeconds(response, request) ?? this.#expires;
    if (seconds === 0) {
      this.#fail({ final: false, reason: 'refused', status: response.status, text: 'the registrar keeps no binding' });
      return;
    }
    this.#state = 'registered';
    this.#bound = true;
    this.#boundContact = parseNameAddress(request.headers.get('Contact') as string).uri;
    this.#failures = 0;
    this.#tooBrief = 0;
    const refreshMs = Math.min(Math.max((seconds * 1000) / 2, SHORTEST_REFRESH_MS), LONGEST_REFRESH_MS);
    this.#timer.start(refreshMs, () => this.#register());
    this.#options.onEvent({ type: 'registered', expiresSeconds: seconds });
  }

  /** 423 Interval Too Brief, section 10.2.8. */
  #lengthen(response: SipResponse, text: string): void {
    const wanted = deltaSeconds(response.headers.get('Min-Expires'));
    this.#tooBrief += 1;
    if (wanted === undefined || wanted <= this.#expires || this.#tooBrief > MAX_TOO_BRIEF) {
      this.#fail({ final: false, reason: 'server', status: 423, text });
      return;
    }
    this.#expires = wanted;
    this.#register();
  }

  #fail(failure: {
    final: boolean;
    reason: RegistrationFailure;
    status: number | undefined;
    text: string;
    afterMs?: number | undefined;
  }): void {
    const { afterMs, ...event } = failure;
    this.#state = failure.final ? 'failed' : 'waiting';
    if (failure.final) this.#bound = false;
    else {
      // Doubled each time, and spread so that phones do not all return to the registrar at once (RFC 5626 section 4.5).
      const limit = Math.min(FIRST_RETRY_MS * 2 ** Math.min(this.#failures, 10), LONGEST_RETRY_MS);
      const spread = limit / 2 + this.#options.randomness.below(Math.floor(limit / 2) + 1);
      this.#failures += 1;
      this.#timer.start(Math.max(spread, afterMs ?? 0), () => this.#register());
    }
    this.#options.onEvent({ type: 'failed', ...event });
  }

  #stopped(): void {
    if (this.#state === 'stopped') return;
    this.#state = 'stopped';
    this.#timer.stop();
    this.#exchange?.abandon();
    this.#options.onEvent({ type: 'stopped' });
  }
}

/** Returns the lifetime granted to our Contact, section 10.2.4. */
function grantedSeconds(response: SipResponse, request: SipRequest): number | undefined {
  const ours = parseNameAddress(request.headers.get('Contact') as string).uri;
  const contacts = response.headers.all('Contact');
  for (const value of contacts) {
    try {
      const contact = parseNameAddress(value);
      // Some registrars rewrite our address; if there is only one, it is ours.
      if (contact.uri === ours || contacts.length === 1) {
        const seconds = deltaSeconds(contact.params.get('expires'));
        if (seconds !== undefined) return seconds;
      }
    } catch {
      // Another phone's binding, which cannot be parsed.
    }
  }
  return deltaSeconds(response.headers.get('Expires'));
}

function retryAfter(response: SipResponse): number | undefined {
  const seconds = deltaSeconds(/^\d+/.exec(response.headers.get('Retry-After') ?? '')?.[0]);
  return seconds === undefined ? undefined : Math.min(seconds, 3600) * 1000;
}

function deltaSeconds(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
