/**
 * When a cycle of negotiation may start and when it is over; it knows nothing of what is negotiated.
 *
 * The client is always the offerer: `offerData`, its offer, our answer, then ICE restarts. It can add or remove tracks only
 * after a complete cycle, so a missing cycle is a deadlock while a superfluous one is harmless.
 */
import type { SessionTimer } from '@bloom/rooms';

/** The client did not answer `offerData`: some versions fail to build an offer and do not tell. */
export const OFFER_TIMEOUT_MS = 10_000;
/** Until the next attempt after that, unless there is a new cause before. */
export const RETRY_MS = 10_000;
/** ICE did not come back with the new credentials: the queue must not be stuck, ICE goes on trying. */
export const ICE_TIMEOUT_MS = 5_000;

/**
 * `idle`; `offering`: waiting for the client's offer; `answering`: the media plane takes over the outcome;
 * `connecting`: answered, waiting for ICE.
 */
export type CycleState = 'idle' | 'offering' | 'answering' | 'connecting';

export interface CycleHooks {
  /** Whether there is anything to negotiate apart from what the client asked for. */
  hasNews: () => boolean;
  /** Announces and sends `offerData`. */
  start: () => void;
  setTimer: (name: SessionTimer, ms: number) => void;
  clearTimer: (name: SessionTimer) => void;
}

export class Cycles {
  readonly #hooks: CycleHooks;
  #state: CycleState = 'idle';
  /** A cycle is owed whatever the news: the client asked for it, or the last one brought nothing. */
  #owed = false;
  /** The last `offerData` got no offer in time. Nothing starts by itself, but a late offer is still the answer to it. */
  #stalled = false;
  /** `offerData` sent without an offer so far. */
  #unanswered = 0;
  #generation = 0;
  /** First generation of the transport, whose end is DTLS. */
  readonly #first: number;
  /** Generation of the credentials in use: those of an answer live on when the client did not restart ICE. */
  #credentials = 0;
  #connectedGeneration = 0;
  #dtlsConnected = false;

  constructor(hooks: CycleHooks, lastGeneration: number) {
    this.#hooks = hooks;
    this.#generation = lastGeneration;
    this.#first = lastGeneration + 1;
  }

  get state(): CycleState {
    return this.#state;
  }

  /** Of the latest negotiation. */
  get generation(): number {
    return this.#generation;
  }

  /** The client wants `offerData` that is sent after this moment. */
  request(): void {
    this.#owed = true;
    this.#startIfIdle();
  }

  /** Something happened that may be worth a cycle. */
  consider(): void {
    if (this.#hooks.hasNews()) this.#startIfIdle();
  }

  /**
   * An offer came. False: it was not asked for.
   * One that comes after the next `offerData` answered it instead; a further cycle puts that right.
   */
  acceptOffer(): boolean {
    const wanted = this.#state === 'offering' || (this.#state === 'idle' && this.#stalled);
    if (this.#unanswered > 0) {
      this.#unanswered -= 1;
      if (!wanted) this.#owed = true;
    }
    return wanted;
  }

  /** The offer was good. Gives the generation of this negotiation. */
  negotiating(restarted: boolean): number {
    this.#hooks.clearTimer(this.#stalled ? 'retry' : 'offer');
    this.#stalled = false;
    this.#state = 'answering';
    this.#generation += 1;
    if (restarted) this.#credentials = this.#generation;
    return this.#generation;
  }

  /** Whether the answer may leave now: the media plane is ready for this generation. */
  isAnswerDue(generation: number): boolean {
    return this.#state === 'answering' && generation === this.#generation;
  }

  /** The answer has left. `incomplete`: the client offered fewer m-lines than it was asked for. */
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

  /** Stops all timers; the object is of no use after that. */
  close(): void {
    for (const name of ['offer', 'ice', 'retry'] as const) this.#hooks.clearTimer(name);
  }

  #endIfConnected(): void {
    if (this.#state !== 'connecting' || !this.#dtlsConnected) return;
    if (this.#generation !== this.#first && this.#connectedGeneration < this.#credentials) return;
    this.#hooks.clearTimer('ice');
    this.#end();
  }

  #end(): void {
    this.#state = 'idle';
    if (this.#owed || this.#hooks.hasNews()) this.#startIfIdle();
  }

  #startIfIdle(): void {
    if (this.#state !== 'idle') return;
    if (this.#stalled) this.#hooks.clearTimer('retry');
    this.#stalled = false;
    this.#owed = false;
    this.#state = 'offering';
    this.#unanswered = Math.min(this.#unanswered + 1, 2);
    this.#hooks.start();
    this.#hooks.setTimer('offer', OFFER_TIMEOUT_MS);
  }
}
