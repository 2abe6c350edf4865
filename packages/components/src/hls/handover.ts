import { type Clock, Timer } from '@bloom/time';

/** How the next node of a room has got the stored files of its stream. */
export type StreamTaken =
  /** It has a copy of each. */
  | 'copied'
  /** It goes on in the same directory, on a disk that both use. */
  | 'shared'
  /** It has copied the newest ones only. */
  | 'incomplete';

export type HandoverEnd =
  | StreamTaken
  /** The next node has not asked for a file for long. */
  | 'abandoned'
  /** The room has not arrived anywhere. */
  | 'lost';

/** Longer than the next node tries again to reach this one. */
const IDLE_MS = 180_000;
const CLOSING_IDLE_MS = 10_000;

/** The files of a stream whose room has left this node, until the next one has them. */
export class Handover {
  readonly #idle: Timer;
  #idleMs = IDLE_MS;
  #end: (how: HandoverEnd) => void = () => undefined;
  /** Never rejects. */
  readonly over: Promise<HandoverEnd> = new Promise((done) => (this.#end = done));

  readonly #isUnderway: () => boolean;

  /**
   * `isUnderway` returns true while the room may not have arrived yet, so that nobody can ask for files. `taker`: its
   * next node.
   */
  constructor(
    clock: Clock,
    isUnderway: () => boolean = () => false,
    readonly taker?: string,
  ) {
    this.#idle = new Timer(clock);
    this.#isUnderway = isUnderway;
    this.touch();
  }

  /** The next node has asked for a file. */
  touch(): void {
    this.#idle.start(this.#idleMs, () => {
      if (this.#isUnderway() && this.#idleMs !== CLOSING_IDLE_MS) this.touch();
      else this.end('abandoned');
    });
  }

  /** This node ends, and waits only as long as files are asked for. */
  hurry(): void {
    if (this.#idleMs === CLOSING_IDLE_MS) return;
    this.#idleMs = CLOSING_IDLE_MS;
    if (this.#idle.running) this.touch();
  }

  end(how: HandoverEnd): void {
    this.#idle.stop();
    this.#end(how);
  }
}
