import { type Clock, Timer } from '@bloom/time';

const CHECK_MS = 1000;
/** The other side is asked after this long without a packet, and again after every further such period. */
const ASK_AFTER_MS = 10_000;

export interface LivenessOptions {
  clock: Clock;
  /** The call ends after this long without any sign of life. */
  timeoutMs: number;
  /** Returns the milliseconds since the phone's last packet; undefined before the first. */
  quietFor: () => number | undefined;
  /** Returns true while another phone may have taken the call over: then silence here says nothing. Default: never. */
  isElsewhere?: (() => boolean) | undefined;
  /**
   * Asks the other side whether it still has the call; `answered` is called when it responds. undefined: it is asked
   * nothing any more.
   */
  ask: (answered: (() => void) | undefined) => void;
  onGone: () => void;
}

/**
 * Distinguishes a silent phone from one that is gone. Silence alone proves nothing, since a muted phone may send
 * nothing (RFC 3551 section 4.1). Signs of life are RTP, RTCP and the response to an OPTIONS within the call.
 */
export class Liveness {
  readonly #options: LivenessOptions;
  readonly #timer: Timer;
  /** Time of the last sign of life that was not a packet. */
  #signAt = 0;
  #askedAt = 0;
  #isHeld = false;

  constructor(options: LivenessOptions) {
    this.#options = options;
    this.#timer = new Timer(options.clock);
  }

  start(): void {
    this.#sign();
    this.#askedAt = this.#signAt;
    this.#schedule();
  }

  /** A phone that holds the call may play music, but most send nothing, so no time limit applies during a hold. */
  setHeld(isHeld: boolean): void {
    if (this.#isHeld && !isHeld) this.#sign();
    this.#isHeld = isHeld;
  }

  stop(): void {
    this.#timer.stop();
  }

  #sign(): void {
    this.#signAt = this.#options.clock.now();
  }

  #schedule(): void {
    this.#timer.start(CHECK_MS, () => this.#check());
  }

  #check(): void {
    const { clock, timeoutMs, quietFor, isElsewhere, ask, onGone } = this.#options;
    const now = clock.now();
    if (isElsewhere?.() === true) {
      this.#sign();
      ask(undefined);
    }
    const sinceMs = now - this.#signAt;
    const quietMs = Math.min(sinceMs, quietFor() ?? sinceMs);
    if (quietMs >= timeoutMs && !this.#isHeld) {
      onGone();
      return;
    }
    this.#schedule();
    if (quietMs < ASK_AFTER_MS || now - this.#askedAt < ASK_AFTER_MS) return;
    this.#askedAt = now;
    ask(() => this.#sign());
  }
}
