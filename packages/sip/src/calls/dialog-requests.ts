import { isSipError } from '../errors.js';
import { sessionDescription } from '../media/body.js';
import type { AudioNegotiator, NegotiatedAudio } from '../media/negotiation.js';
import type { SipRequest } from '../message.js';
import type { InviteServer, ServerTransaction } from '../transactions/server-transaction.js';
import { parseCSeq } from '../values.js';
import { ACCEPT, ALLOW, responseWith, unsupported } from './responses.js';

export interface DialogRequestsOptions {
  contact: () => string;
  negotiator: AudioNegotiator;
  onChange: (audio: NegotiatedAudio) => void;
  onTarget: (request: SipRequest) => void;
  onBye: () => void;
  onDigit: (digit: string) => void;
  /** Called when the two sides disagree on what was negotiated. */
  onBroken: () => void;
}

/** Answers requests inside a dialog: BYE, re-INVITE, UPDATE, INFO, OPTIONS. */
export class DialogRequests {
  readonly #options: DialogRequestsOptions;
  #isFrozen = false;
  /** The re-INVITE that was answered but not yet acknowledged. */
  #invite: { transaction: InviteServer; sequence: number; offered: boolean } | undefined;

  constructor(options: DialogRequestsOptions) {
    this.#options = options;
  }

  /** True: the other side is asked to repeat its changes, which then reach the phone that continues the call. */
  freeze(frozen: boolean): void {
    this.#isFrozen = frozen;
  }

  receive(request: SipRequest, transaction: ServerTransaction, inOrder: boolean): void {
    const respond = (status: number, reason: string, extras = {}) =>
      transaction.respond(responseWith(request, { status, reason, ...extras }));
    if (!inOrder && request.method !== 'CANCEL') {
      respond(500, 'Out Of Order');
      return;
    }
    const bad = unsupported(request);
    if (bad !== undefined) {
      transaction.respond(bad);
      return;
    }
    if (this.#isFrozen && (request.method === 'INVITE' || request.method === 'UPDATE')) {
      respond(491, 'Request Pending');
      return;
    }
    switch (request.method) {
      case 'BYE':
        respond(200, 'OK');
        this.#options.onBye();
        break;
      case 'INVITE':
        this.#answerInvite(request, transaction as InviteServer);
        break;
      case 'UPDATE':
        this.#answerUpdate(request, transaction);
        break;
      case 'INFO': {
        respond(200, 'OK');
        const digit = digitOfInfo(request);
        if (digit !== undefined) this.#options.onDigit(digit);
        break;
      }
      case 'OPTIONS':
        respond(200, 'OK', {
          headers: [
            ['Allow', ALLOW],
            ['Accept', ACCEPT],
          ],
        });
        break;
      case 'CANCEL':
        // Every INVITE is answered immediately, so there is none left to cancel.
        respond(200, 'OK');
        break;
      default:
        respond(405, 'Method Not Allowed', { headers: [['Allow', ALLOW]] });
    }
  }

  /** Takes the ACK for one of our 2xx. */
  receiveAck(ack: SipRequest): void {
    const invite = this.#invite;
    if (invite === undefined || parseCSeq(ack.headers.get('CSeq') as string).sequence !== invite.sequence) return;
    this.#invite = undefined;
    invite.transaction.acknowledged();
    if (!invite.offered) return;
    try {
      this.#options.onChange(this.#options.negotiator.takeAnswer(sessionDescription(ack) ?? ack.body));
    } catch (error) {
      if (!isSipError(error, 'SDP_UNUSABLE')) throw error;
      this.#options.onBroken();
    }
  }

  #answerInvite(request: SipRequest, transaction: InviteServer): void {
    if (this.#invite?.transaction.open) {
      transaction.respond(
        responseWith(request, { status: 500, reason: 'Request Pending', headers: [['Retry-After', '2']] }),
      );
      return;
    }
    const description = sessionDescription(request);
    const body = this.#answerOffer(request, transaction, description);
    if (body === undefined) return;
    this.#options.onTarget(request);
    const { sequence } = parseCSeq(request.headers.get('CSeq') as string);
    this.#invite = { transaction, sequence, offered: description?.length === 0 };
    transaction.respond(
      responseWith(request, {
        status: 200,
        reason: 'OK',
        contact: this.#options.contact(),
        body,
        headers: [['Allow', ALLOW]],
      }),
    );
    this.#announce(description);
  }

  #answerUpdate(request: SipRequest, transaction: ServerTransaction): void {
    const description = sessionDescription(request);
    // Without an offer it only refreshes the target or a session timer (RFC 4028).
    if (description?.length === 0) {
      this.#options.onTarget(request);
      transaction.respond(responseWith(request, { status: 200, reason: 'OK', contact: this.#options.contact() }));
      return;
    }
    if (this.#invite?.transaction.open) {
      transaction.respond(responseWith(request, { status: 491, reason: 'Request Pending' }));
      return;
    }
    const body = this.#answerOffer(request, transaction, description);
    if (body === undefined) return;
    this.#options.onTarget(request);
    transaction.respond(responseWith(request, { status: 200, reason: 'OK', contact: this.#options.contact(), body }));
    this.#announce(description);
  }

  /** Returns the SDP for the 2xx: an answer, or our own offer if the request had none. Rejects an unusable offer. */
  #answerOffer(request: SipRequest, transaction: ServerTransaction, offer: Buffer | undefined): Buffer | undefined {
    if (offer === undefined) {
      transaction.respond(
        responseWith(request, { status: 415, reason: 'Unsupported Media Type', headers: [['Accept', ACCEPT]] }),
      );
      return undefined;
    }
    if (offer.length === 0) return this.#options.negotiator.offer();
    try {
      return this.#options.negotiator.answer(offer);
    } catch (error) {
      if (!isSipError(error, 'SDP_UNUSABLE')) throw error;
      transaction.respond(responseWith(request, { status: 488, reason: 'Not Acceptable Here' }));
      return undefined;
    }
  }

  #announce(description: Buffer | undefined): void {
    const { agreed } = this.#options.negotiator;
    if (agreed !== undefined && description?.length !== 0) this.#options.onChange(agreed);
  }
}

/** `Signal=5` of application/dtmf-relay, or the bare key of application/dtmf. */
function digitOfInfo(request: SipRequest): string | undefined {
  const type = request.headers.get('Content-Type') ?? '';
  if (!/^application\/dtmf/i.test(type) || request.body.length > 256) return undefined;
  const text = request.body.toString('latin1');
  return (/^Signal\s?=\s?([0-9*#A-D])/im.exec(text) ?? /^\s?([0-9*#A-D])\s?$/.exec(text))?.[1];
}
