import { Allowance, type Rate } from '@bloom/time';

/** Limit on messages and on their bytes, each as a burst and per second. */
export interface DataRate {
  messages: Rate;
  bytes: Rate;
}

/** Counts messages with their bytes against a limit. */
export class DataAllowance {
  readonly #messages: Allowance;
  readonly #bytes: Allowance;

  constructor({ messages, bytes }: DataRate) {
    this.#messages = new Allowance(messages);
    this.#bytes = new Allowance(bytes);
  }

  /** Takes a message. `shares`: by how many the limit is divided, each of which counts for itself. */
  take(nowMs: number, bytes: number, shares = 1): boolean {
    return this.#messages.take(nowMs, shares) && this.#bytes.take(nowMs, bytes * shares);
  }
}
