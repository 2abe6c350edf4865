/**
 * Decides when a negotiation cycle starts and when it has ended. It knows nothing about their contents.
 *
 * The client is always the offerer: `offerData`, its offer, our answer, then an ICE restart. It can add or remove
 * tracks only after a complete cycle, so a missing cycle is a deadlock while a superfluous one is harmless.
 */
import type { SessionTimer } from '@bloom/rooms';

/** Time that the client has to answer `offerData`. Some versions fail to build an offer and stay silent. */
const OFFER_TIMEOUT_MS = 10_000;
/** Pause before the next attempt, unless a new reason comes up first. */
const RETRY_MS = 10_000;
/**
 * Time that ICE has to connect with new credentials. Then the cycle ends while ICE continues, so that the queue moves
 * on.
 */
const ICE_TIMEOUT_MS = 5_000;

/**
 * `offering`: waiting for the client's offer; `answering`: waiting for the media plane to apply it; `connecting`:
 * answered, waiting for ICE.
 */
type CycleState = 'idle' | 'offering' | 'answering' | 'connecting';

export interface CycleHooks {
  /** Returns whether there is anything to negotiate besides the client's own requests. */
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
  /** Number of unanswered `offerData`. */
  #unanswered = 0;
  #crossed = false;
  #generation = 0;
  /** First generation of the transport; its cycle ends when DTLS connects. */
  readonly #first: number;
  /** Generation of the current credentials, which are kept when the client does not restart ICE. */
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

  /** Handles the client's request for a cycle whose `offerData` is yet to be sent. */
  request(): void {
    this.#owed = true;
    this.#startIfIdle();
  }

  /** Starts a cycle if one is needed. */
  consider(): void {
    if (this.#hooks.isNeeded()) this.#startIfIdle();
  }

  /**
   * Returns whether an offer was expected. An offer that arrives after the next `offerData` is taken as the answer to
   * that one, which a further cycle corrects.
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
   * True when the accepted offer came late or an earlier `offerData` was never answered. The client may have set
   * another offer since, and then cannot apply the answer because it does not match.
   */
  get mayHaveCrossed(): boolean {
    return this.#crossed;
  }

  /** Records a valid offer. Returns the generation of this negotiation. */
  negotiating(restarted: boolean): number {
    this.#hooks.clearTimer(this.#stalled ? 'retry' : 'offer');
    this.#stalled = false;
    this.#state = 'answering';
    this.#generation += 1;
    if (restarted) this.#credentials = this.#generation;
    return this.#generation;
  }

  /** Returns true when the media plane is ready for this generation, so the answer may be sent. */
  isAnswerDue(generation: number): boolean {
    return this.#state === 'answering' && generation === this.#generation;
  }

  /** Records that the answer was sent. `incomplete`: the client offered fewer m-lines than requested. */
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
