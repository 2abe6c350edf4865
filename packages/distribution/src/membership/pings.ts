import { isAtom, type Ref, type Term } from '@bloom/etf';
import type { Clock } from '@bloom/time';

const LIMIT_MS = 5_000;

/** Pings waiting for their answer. */
export class Pings {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, (alive: boolean) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sends a ping and waits for its answer; `send` returns false when the ping could not be sent. */
  ask(ref: Ref, send: (ref: Ref) => boolean): Promise<boolean> {
    const key = ref.words.join('.');
    return new Promise((resolve) => {
      const settle = (alive: boolean): void => {
        this.#clock.clearTimeout(timer);
        this.#waiting.delete(key);
        resolve(alive);
      };
      const timer = this.#clock.setTimeout(() => settle(false), LIMIT_MS);
      this.#waiting.set(key, settle);
      if (!send(ref)) settle(false);
    });
  }

  answered(ref: Ref, reply: Term): void {
    this.#waiting.get(ref.words.join('.'))?.(isAtom(reply, 'yes'));
  }

  stop(): void {
    for (const settle of this.#waiting.values()) settle(false);
  }
}
