import { Timer } from '@bloom/time';
import { isSipError } from '../errors.js';
import { SipHeaders } from '../headers.js';
import { sessionDescription } from '../media/body.js';
import { AudioNegotiator, type NegotiatedAudio } from '../media/negotiation.js';
import type { SipRequest, SipResponse } from '../message.js';
import { cancelOf, InviteClient } from '../transactions/invite-client.js';
import type { ServerTransaction } from '../transactions/server-transaction.js';
import { LIFETIME } from '../transactions/client-transaction.js';
import { parseNameAddress, parseUri } from '../values.js';
import { Acknowledgements } from './acknowledgements.js';
import { Authenticator } from './authenticator.js';
import type { CallEvent, CallOptions, CallState, MovingCall } from './call-options.js';
import { DialogRequests } from './dialog-requests.js';
import { Dialog, dialogIdOfRequest, tagOf } from './dialog.js';
import type { EndReason } from './end-reason.js';
import { reasonOfStatus } from './end-reason.js';
import type { ExchangeOutcome } from './exchange.js';
import { Exchange } from './exchange.js';
import { addressOfRecord, numberUri } from './identity.js';
import { Reinvite } from './reinvite.js';
import { ACCEPT, ALLOW } from './responses.js';

const UNKNOWN = 'the other side does not know this call';

/**
 * Requests that the former phone may have sent in the dialog since it described the call. A gap does no harm: sequence
 * numbers only have to grow (RFC 3261 section 12.2.1.1).
 */
const SKIPPED_SEQUENCES = 10;

/** An outgoing call from INVITE to its end; RFC 3261 sections 9, 13, 14 and 15. */
export class Call {
  readonly callId: string;
  readonly #options: CallOptions;
  readonly #tag: string;
  readonly #authenticator: Authenticator;
  readonly #negotiator: AudioNegotiator;
  readonly #timer: Timer;
  #invite: Exchange;
  /** The URI being called: the number's, or the one the provider redirected the call to. */
  #uri: string;
  #redirected = false;
  #asking: Exchange | undefined;
  /** Set while the other side has not accepted yet that the call is here now. */
  #moving: Reinvite | undefined;
  #isFrozen = false;
  #hasLeft = false;
  readonly #acks: Acknowledgements;
  readonly #requests: DialogRequests;
  #sequence = 0;
  #lastInvite: SipRequest | undefined;
  #dialog: Dialog | undefined;
  #state: CallState = 'idle';
  #cancelSent = false;
  #held = false;
  /** Requests still unanswered after the end. */
  #pending = 0;
  #settled = false;

  /** @throws SipError SIP_MALFORMED for a former call with unusable addresses */
  constructor(options: CallOptions) {
    this.#options = options;
    const { randomness, former } = options;
    if (former !== undefined) {
      const { localSequence, ...dialog } = former.dialog;
      this.#dialog = new Dialog({ ...dialog, localSequence: localSequence + SKIPPED_SEQUENCES });
      this.#held = former.held;
    }
    this.callId = former?.dialog.callId ?? randomness.token();
    this.#tag = randomness.token();
    this.#authenticator = new Authenticator(options.account, randomness);
    this.#timer = new Timer(options.clock);
    this.#negotiator = new AudioNegotiator({
      ...options.media,
      codecs: options.codecs,
      session: former?.session ?? { id: randomness.below(2 ** 31), version: 0, origin: options.media.address },
    });
    this.#uri = numberUri(options.account, options.number);
    this.#invite = this.#newInvite();
    this.#acks = new Acknowledgements(options);
    this.#requests = new DialogRequests({
      contact: options.contact,
      negotiator: this.#negotiator,
      onChange: (audio) => this.#mediaChanged(audio),
      onTarget: (request) => this.#dialog?.refreshTarget(request),
      onBye: () => this.#hangUp('remote_hung_up'),
      onDigit: (digit) => this.#emit({ type: 'digit', digit }),
      onBroken: () => this.#hangUp('failed'),
    });
  }

  get state(): CallState {
    return this.#state;
  }

  /** True once another phone has the call. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  start(): void {
    if (this.#state !== 'idle') return;
    if (this.#dialog !== undefined) {
      this.#bringHere(this.#dialog);
      return;
    }
    this.#state = 'dialling';
    this.#timer.start(this.#options.ringTimeoutMs, () => this.#hangUp('no_answer'));
    this.#invite.start();
  }

  /** Ends the call in any state; no effect once it has ended. */
  hangUp(reason?: EndReason): void {
    this.#hangUp(reason ?? (this.#state === 'answered' ? 'hung_up' : 'cancelled'));
  }

  /** Returns what another phone needs to continue the call; undefined before the answer and after the end. */
  moving(): MovingCall | undefined {
    if (this.#state !== 'answered' || this.#dialog === undefined) return undefined;
    const { number } = this.#options;
    return { number, dialog: this.#dialog.state(), session: this.#negotiator.session, held: this.#held };
  }

  /** True: changes of the call wait, because another phone is about to continue it. */
  freeze(frozen: boolean): void {
    this.#isFrozen = frozen;
    this.#requests.freeze(frozen);
  }

  /** Leaves an answered call to another phone: the other side is told nothing. Ends it in any other state. */
  leave(): void {
    if (this.moving() === undefined) {
      this.hangUp();
      return;
    }
    this.#hasLeft = true;
    this.freeze(true);
    this.#moving?.abandon();
    this.#end('moved');
    this.#settle();
  }

  /** Drops the call without notifying anyone. */
  close(): void {
    this.#state = 'ended';
    this.#settled = true;
    this.#timer.stop();
    this.#asking?.abandon();
    this.#moving?.abandon();
    this.#invite.abandon();
  }

  /** True for requests of the other side within this call. */
  owns(request: SipRequest): boolean {
    const isHere = this.#state !== 'ended' || this.#hasLeft;
    if (!isHere || this.#dialog === undefined) return false;
    return dialogIdOfRequest(request) === this.#dialog.id;
  }

  /** Answers a request inside the dialog. */
  receive(request: SipRequest, transaction: ServerTransaction): void {
    const inOrder = this.#dialog?.accepts(request) ?? false;
    this.#requests.receive(request, transaction, inOrder);
  }

  receiveAck(request: SipRequest): void {
    this.#requests.receiveAck(request);
  }

  /** Called when our answer to a re-INVITE was never acknowledged (section 13.3.1.4). */
  noAck(): void {
    this.#hangUp('failed');
  }

  /** Takes a 2xx that is retransmitted or comes from another branch of a fork (sections 13.2.2.4 and 17.1.1.3). */
  successAgain(response: SipResponse, request?: SipRequest): void {
    if (this.#acks.repeat(response) || this.#acks.areFull) return;
    const invite = request ?? this.#lastInvite;
    if (invite === undefined) return;
    // A BYE would end the call at the phone that has it now.
    if (this.#hasLeft && this.#dialog !== undefined) this.#acks.send(this.#dialog, invite, response);
    else this.#refuseSuccess(response, invite);
  }

  /**
   * Asks the other side whether it still has the call (RFC 3261 section 11). `answered` is called for any response
   * except those that deny it, which end the call (section 12.2.1.2). undefined: what was asked is not repeated.
   */
  ask(answered: (() => void) | undefined): void {
    this.#asking?.abandon();
    const dialog = this.#dialog;
    if (answered === undefined || this.#state !== 'answered' || dialog === undefined || this.#isFrozen) return;
    this.#asking = new Exchange({
      port: this.#options,
      authenticator: this.#authenticator,
      hop: dialog.nextHop,
      build: () => {
        const request = dialog.request('OPTIONS');
        request.headers.set('Accept', ACCEPT);
        return request;
      },
      onOutcome: (outcome) => {
        if ('failure' in outcome) return;
        const { status } = outcome.response;
        if (isUnknown(status)) this.#hangUp('remote_hung_up', status, UNKNOWN);
        else answered();
      },
    });
    this.#asking.start();
  }

  /** Tells the other side that the call is here now, RFC 3261 section 14.1. */
  #bringHere(dialog: Dialog): void {
    this.#state = 'answered';
    this.#moving = new Reinvite({
      port: this.#options,
      authenticator: this.#authenticator,
      hop: dialog.nextHop,
      build: () => {
        const request = dialog.request('INVITE');
        this.#describe(request.headers);
        this.#lastInvite = { ...request, body: this.#negotiator.offer() };
        return this.#lastInvite;
      },
      onOutcome: (outcome) => {
        this.#moving = undefined;
        this.#broughtHere(dialog, outcome);
      },
      onSuccessAgain: (response, request) => this.successAgain(response, request),
    });
    this.#moving.start();
  }

  #broughtHere(dialog: Dialog, outcome: ExchangeOutcome): void {
    if ('failure' in outcome) {
      this.#hangUp('not_moved', undefined, 'the provider does not answer');
      return;
    }
    const { response, request } = outcome;
    const { status, reason } = response;
    if (status >= 300) {
      if (isUnknown(status)) this.#hangUp('remote_hung_up', status, UNKNOWN);
      else this.#hangUp('not_moved', status, `${status} ${reason}`);
      return;
    }
    dialog.refreshTarget(response);
    this.#acks.send(dialog, request, response);
    let audio: NegotiatedAudio;
    try {
      audio = this.#negotiator.takeAnswer(sessionDescription(response) ?? response.body);
    } catch (error) {
      if (!isSipError(error, 'SDP_UNUSABLE')) throw error;
      this.#hangUp('not_moved', status, error.message);
      return;
    }
    this.#emit({ type: 'moved' });
    this.#mediaChanged(audio);
  }

  #newInvite(): Exchange {
    const { account, randomness } = this.#options;
    const hop = parseUri(this.#uri);
    // Send the password only to the host it was given for.
    const isProvider = hop.host.toLowerCase() === account.domain.toLowerCase();
    return new Exchange({
      port: this.#options,
      authenticator: isProvider ? this.#authenticator : new Authenticator(undefined, randomness),
      hop,
      build: () => this.#buildInvite(),
      onProvisional: (response, request) => this.#provisional(response, request),
      onOutcome: (outcome) => this.#outcome(outcome),
      onSuccessAgain: (response, request) => this.successAgain(response, request),
    });
  }

  #buildInvite(): SipRequest {
    const { account, number } = this.#options;
    this.#sequence += 1;
    const uri = this.#uri;
    const headers = new SipHeaders();
    headers.set('Max-Forwards', '70');
    headers.set('From', `<${addressOfRecord(account)}>;tag=${this.#tag}`);
    headers.set('To', `<${numberUri(account, number)}>`);
    headers.set('Call-ID', this.callId);
    headers.set('CSeq', `${this.#sequence} INVITE`);
    this.#describe(headers);
    this.#lastInvite = { kind: 'request', method: 'INVITE', uri, headers, body: this.#negotiator.offer() };
    return this.#lastInvite;
  }

  /** Adds what an INVITE says about us and about its body. */
  #describe(headers: SipHeaders): void {
    headers.set('Contact', `<${this.#options.contact()}>`);
    headers.set('Allow', ALLOW);
    headers.set('Accept', ACCEPT);
    headers.set('User-Agent', 'Bloom');
    headers.set('Content-Type', 'application/sdp');
  }

  #provisional(response: SipResponse, request: SipRequest): void {
    if (this.#state === 'ended') {
      this.#cancel();
      return;
    }
    const tag = tagOf(response.headers.get('To'));
    if (tag !== '' && this.#dialog?.remoteTag !== tag) this.#dialog = Dialog.of(request, response);
    if (response.status === 100) return;
    const description = sessionDescription(response);
    if (description !== undefined && description.length > 0) {
      try {
        this.#emit({ type: 'media', audio: this.#negotiator.takeAnswer(description), early: true });
      } catch (error) {
        // Early media is optional, so ignore a bad SDP in an 18x.
        if (!isSipError(error, 'SDP_UNUSABLE')) throw error;
      }
    }
    if (this.#state !== 'dialling') return;
    this.#state = 'ringing';
    this.#emit({ type: 'ringing', status: response.status });
  }

  /** Follows a 301 or 302 once, to the first usable Contact (RFC 3261 section 8.1.3.4). Returns whether it did. */
  #redirect({ status, headers }: SipResponse): boolean {
    if ((status !== 301 && status !== 302) || this.#redirected || this.#state === 'ended') return false;
    const target = headers
      .all('Contact')
      .map(usableUri)
      .find((uri) => uri !== undefined && uri !== this.#uri);
    if (target === undefined) return false;
    this.#redirected = true;
    this.#uri = target;
    this.#dialog = undefined;
    this.#invite = this.#newInvite();
    this.#invite.start();
    return true;
  }

  #outcome(outcome: ExchangeOutcome): void {
    if ('response' in outcome && this.#redirect(outcome.response)) return;
    this.#timer.stop();
    if ('failure' in outcome) {
      const text = outcome.failure === 'unresolved' ? 'the provider has no address' : 'the provider does not answer';
      this.#end('unreachable', undefined, text);
      this.#settle();
      return;
    }
    const { response, request } = outcome;
    if (response.status >= 300) {
      this.#end(reasonOfStatus(response.status), response.status, `${response.status} ${response.reason}`);
      this.#settle();
      return;
    }
    // The call was hung up just before the other side answered.
    if (this.#state === 'ended') this.#refuseSuccess(response, request);
    else this.#answered(response, request);
    this.#settle();
  }

  #answered(response: SipResponse, request: SipRequest): void {
    let dialog: Dialog;
    try {
      const early = this.#dialog?.remoteTag === tagOf(response.headers.get('To')) ? this.#dialog : undefined;
      dialog = early ?? Dialog.of(request, response);
      dialog.confirm(response);
    } catch (error) {
      if (!isSipError(error, 'SIP_MALFORMED')) throw error;
      this.#end('failed', response.status, error.message);
      return;
    }
    this.#dialog = dialog;
    this.#acks.send(dialog, request, response);
    this.#state = 'answered';
    let audio = this.#negotiator.agreed;
    try {
      // Some peers repeat the SDP of their 183 in the 2xx, others leave it out.
      const description = sessionDescription(response) ?? response.body;
      if (description.length > 0 || audio === undefined) audio = this.#negotiator.takeAnswer(description);
    } catch (error) {
      if (!isSipError(error, 'SDP_UNUSABLE')) throw error;
      this.#hangUp('not_acceptable', response.status, error.message);
      return;
    }
    this.#emit({ type: 'answered' });
    this.#emit({ type: 'media', audio, early: false });
  }

  /** Acknowledges and then ends a dialog that is no longer wanted. */
  #refuseSuccess(response: SipResponse, request: SipRequest): void {
    try {
      const dialog = Dialog.of(request, response);
      dialog.confirm(response);
      this.#acks.send(dialog, request, response);
      this.#bye(dialog);
    } catch (error) {
      if (!isSipError(error, 'SIP_MALFORMED')) throw error;
    }
  }

  #hangUp(reason: EndReason, status?: number, text = ''): void {
    if (this.#state === 'ended') return;
    const { state } = this;
    this.#timer.stop();
    this.#end(reason, status, text);
    if (state === 'answered' && this.#dialog !== undefined) {
      this.#moving?.abandon();
      if (reason !== 'remote_hung_up') this.#bye(this.#dialog);
      return;
    }
    if (state === 'idle') {
      this.#settle();
      return;
    }
    this.#invite.finish();
    const current = this.#invite.current;
    if (current === undefined) {
      // The address is still being looked up.
      this.#invite.abandon();
      this.#settle();
    } else if (current.transaction instanceof InviteClient && current.transaction.proceeding) this.#cancel();
  }

  /** Sends CANCEL, which is allowed only after a provisional response (section 9.1). */
  #cancel(): void {
    const current = this.#invite.current;
    if (this.#cancelSent || current === undefined) return;
    this.#cancelSent = true;
    this.#options.transactions.cancel(cancelOf(current.request), current.target, {
      onResponse: () => {},
      onFailure: () => {},
    });
    // If no 487 arrives, the INVITE is considered gone (section 9.1).
    this.#timer.start(LIFETIME, () => {
      this.#invite.abandon();
      this.#settle();
    });
  }

  #bye(dialog: Dialog): void {
    this.#pending += 1;
    const exchange = new Exchange({
      port: this.#options,
      authenticator: this.#authenticator,
      hop: dialog.nextHop,
      build: () => dialog.request('BYE'),
      onOutcome: () => {
        this.#pending -= 1;
        this.#settle();
      },
    });
    exchange.start();
  }

  #mediaChanged(audio: NegotiatedAudio): void {
    if (this.#state === 'ended') return;
    const held = audio.direction === 'recvonly' || audio.direction === 'inactive';
    this.#emit({ type: 'media', audio, early: false });
    if (held === this.#held) return;
    this.#held = held;
    this.#emit({ type: 'held', held });
  }

  /** Emits no events after the end, which a listener may cause while a message is being handled. */
  #emit(event: CallEvent): void {
    if (this.#state !== 'ended' || event.type === 'ended') this.#options.onEvent(event);
  }

  #end(reason: EndReason, status?: number, text = ''): void {
    if (this.#state === 'ended') return;
    const answered = this.#state === 'answered';
    this.#state = 'ended';
    this.#timer.stop();
    this.#asking?.abandon();
    this.#emit({ type: 'ended', reason, status, text });
    if (answered && reason === 'remote_hung_up') this.#settle();
  }

  #settle(): void {
    if (this.#settled || this.#state !== 'ended' || this.#pending > 0) return;
    this.#settled = true;
    this.#timer.stop();
    this.#options.onSettled();
  }
}

/** True for responses that deny a dialog (section 12.2.1.2). */
function isUnknown(status: number): boolean {
  return status === 481 || status === 408;
}

/** Returns the URI of a Contact if it can be called; `sips` cannot, for lack of TLS. */
function usableUri(contact: string): string | undefined {
  try {
    const { uri } = parseNameAddress(contact);
    return parseUri(uri).scheme === 'sip' ? uri : undefined;
  } catch (error) {
    if (!isSipError(error, 'SIP_MALFORMED')) throw error;
    return undefined;
  }
}
