/**
 * Decides when a cycle of negotiation starts and when it has ended. It knows nothing of the contents.
 *
 * The client is always the offerer: `offerData`, its offer, our answer, then ICE restarts. It can add or remove tracks only
 * after a complete cycle, so a missing cycle is a deadlock while a superfluous one is harmless.
 */
import type { SessionTimer } from '@bloom/rooms';

/** Time for the client to answer `offerData`: some versions fail to build an offer and remain silent. */
const OFFER_TIMEOUT_MS = 10_000;
/** Pause until the next attempt after that, unless there is a new reason before. */
const RETRY_MS = 10_000;
/** Time for ICE to connect with new credentials. The queue must not be stuck, so the cycle ends while ICE continues. */
const ICE_TIMEOUT_MS = 5_000;

/**
 * `offering`: waiting for the client's offer; `answering`: waiting for the media plane to apply it; `connecting`: answered,
 * waiting for ICE.
 */
type CycleState = 'idle' | 'offering' | 'answering' | 'connecting';

export interface CycleHooks {
  /** Returns whether there is anything to negotiate apart from the client's own requests. */
  isNeeded: () => boolean;
  /** Announces and sends `offerData`. */
  start: () => void;
  setTimer: (name: SessionTimer, ms: number) => void;
  clearTimer: (name: SessionTimer) => void;
}

export class Cycles {
  readonly #hooks: CycleHooks;
  #state: CycleState = 'idle';
  /** A cycle must follow even if `isNeeded` is false: the client requested it, or the last one failed. */
  #owed = false;
  /** The last `offerData` was not answered in time. A late offer is still accepted as its answer. */
  #stalled = false;
  /** Number of `offerData` without an offer so far. */
  #unanswered = 0;
  #crossed = false;
  #generation = 0;
  /** First generation of the transport, which ends when DTLS is connected. */
  readonly #first: number;
  /** Generation of the credentials in use: they are kept when the client did not restart ICE. */
  #credentials = 0;
  #connectedGeneration = 0;
  #dtlsConnected = false;

  constructor(hooks: CycleHooks, lastGeneration: number) {
    this.#hooks = hooks;
    this.#generation = lastGeneration;
    this.#first = lastGeneration + 1;
  }

  /** Generation of the latest negotiation. */
  get generation(): number {
    return this.#generation;
  }

  /** The client requests an `offerData` that is sent from now on. */
  request(): void {
    this.#owed = true;
    this.#startIfIdle();
  }

  /** Starts a cycle if one is needed. */
  consider(): void {
    if (this.#hooks.isNeeded()) this.#startIfIdle();
  }

  /**
   * Returns whether an offer was expected. An offer that arrives after the next `offerData` answers that one instead, which
   * a further cycle corrects.
   */
  acceptOffer(): boolean {
    const wanted = this.#state === 'offering' || (this.#state === 'idle' && this.#stalled);
    if (this.#unanswered > 0) {
      this.#unanswered -= 1;
      if (!wanted) this.request();
    }
    if (wanted) this.#crossed = this.#unanswered > 0;
    return wanted;
  }

  /**
   * The accepted offer came late, or an earlier `offerData` was never answered: the client may have set another offer meanwhile,
   * which the answer does not fit, so that it cannot apply it.
   */
  get mayHaveCrossed(): boolean {
    return this.#crossed;
  }

  /** The offer was valid. Returns the generation of this negotiation. */
  negotiating(restarted: boolean): number {
    this.#hooks.clearTimer(this.#stalled ? 'retry' : 'offer');
    this.#stalled = false;
    this.#state = 'answering';
    this.#generation += 1;
    if (restarted) this.#credentials = this.#generation;
    return this.#generation;
  }

  /** Returns whether the answer may be sent: the media plane is ready for this generation. */
  isAnswerDue(generation: number): boolean {
    return this.#state === 'answering' && generation === this.#generation;
  }

  /** The answer has been sent. `incomplete`: the client offered fewer m-lines than requested. */
  answered({ incomplete }: { incomplete: boolean }): void {
    this.#state = 'connecting';
    if (incomplete) this.#hooks.setTimer('retry', RETRY_MS);
    this.#hooks.setTimer('ice', ICE_TIMEOUT_MS);
    this.#endIfConnected();
  }

  iceConnected(generation: number): void {
    this.#connectedGeneration = Math.max(this.#connectedGeneration, generation);
    this.#endIfConnected();
  }

  dtlsConnected(): void {
    this.#dtlsConnected = true;
    this.#endIfConnected();
  }

  timer(name: SessionTimer): void {
    if (name === 'offer' && this.#state === 'offering') {
      this.#state = 'idle';
      this.#stalled = true;
      this.#owed = true;
      this.#hooks.setTimer('retry', RETRY_MS);
    } else if (name === 'ice' && this.#state === 'connecting') {
      this.#end();
    } else if (name === 'retry') {
      this.request();
    }
  }

  /** Stops all timers. The object must not be used afterwards. */
  close(): void {
    for (const name of ['offer', 'ice', 'retry', 'apply'] as const) this.#hooks.clearTimer(name);
  }

  #endIfConnected(): void {
    if (this.#state !== 'connecting' || !this.#dtlsConnected) return;
    if (this.#generation !== this.#first && this.#connectedGeneration < this.#credentials) return;
    this.#hooks.clearTimer('ice');
    this.#end();
  }

  #end(): void {
    this.#state = 'idle';
    if (this.#owed || this.#hooks.isNeeded()) this.#startIfIdle();
  }

  #startIfIdle(): void {
    if (this.#state !== 'idle') return;
    if (this.#stalled) this.#hooks.clearTimer('retry');
    this.#stalled = false;
    this.#owed = false;
    this.#state = 'offering';
    this.#unanswered += 1;
    this.#hooks.start();
    this.#hooks.setTimer('offer', OFFER_TIMEOUT_MS);
  }
}
