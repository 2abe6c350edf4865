import { type Clock, Timer } from '@bloom/time';
import { isSipError } from '../errors.js';
import type { AudioNegotiator, NegotiatedAudio } from '../media/negotiation.js';
import type { Direction } from '../media/sdp.js';
import type { SipRequest, SipResponse } from '../message.js';
import type { Randomness } from '../randomness.js';
import type { EndReason } from './end-reason.js';
import type { ExchangeOutcome } from './exchange.js';

export interface ReinviteOptions {
  clock: Clock;
  randomness: Randomness;
  negotiator: AudioNegotiator;
  request: (
    method: string,
    body: Buffer,
    onOutcome: (outcome: ExchangeOutcome) => void,
    onAgain: (response: SipResponse, request: SipRequest) => void,
  ) => void;
  acknowledge: (request: SipRequest, response: SipResponse) => void;
  onChange: (audio: NegotiatedAudio) => void;
  /** Called when the dialog is gone on the other side (section 12.2.1.2). */
  onGone: (reason: EndReason) => void;
}

/** Our own re-INVITE for hold and resume, RFC 3261 section 14.1; the last wish wins. */
export class Reinvite {
  readonly #options: ReinviteOptions;
  readonly #timer: Timer;
  #busy = false;
  #wanted: Direction | undefined;
  #stopped = false;

  constructor(options: ReinviteOptions) {
    this.#options = options;
    this.#timer = new Timer(options.clock);
  }

  /** True while an offer is unanswered. */
  get busy(): boolean {
    return this.#busy;
  }

  start(direction: Direction): void {
    this.#wanted = direction;
    if (!this.#busy && !this.#timer.running) this.#send();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer.stop();
  }

  #send(): void {
    const direction = this.#wanted;
    if (direction === undefined || this.#stopped) return;
    this.#wanted = undefined;
    this.#busy = true;
    this.#options.request(
      'INVITE',
      this.#options.negotiator.offer(direction),
      (outcome) => this.#settle(outcome, direction),
      (response, request) => this.#options.acknowledge(request, response),
    );
  }

  #settle(outcome: ExchangeOutcome, direction: Direction): void {
    this.#busy = false;
    if (this.#stopped) {
      if ('response' in outcome && outcome.response.status < 300)
        this.#options.acknowledge(outcome.request, outcome.response);
      return;
    }
    if ('failure' in outcome) {
      this.#options.onGone('unreachable');
      return;
    }
    const { response, request } = outcome;
    if (response.status < 300) {
      this.#options.acknowledge(request, response);
      try {
        this.#options.onChange(this.#options.negotiator.takeAnswer(response.body));
      } catch (error) {
        if (!isSipError(error, 'SDP_UNUSABLE')) throw error;
        this.#options.onGone('not_acceptable');
        return;
      }
      this.#send();
    } else if (response.status === 491) {
      // Glare: the owner of the Call-ID waits 2.1 to 4 seconds.
      this.#wanted ??= direction;
      this.#timer.start(2100 + this.#options.randomness.below(1900), () => this.#send());
    } else if (response.status === 408 || response.status === 481) this.#options.onGone('remote_hung_up');
    // Any other refusal changes nothing.
  }
}
