import type { Log } from '@bloom/log';

interface Step {
  what: string;
  close: () => void | Promise<void>;
}

/** What was opened, closed again in the opposite order; one that fails does not keep the others from closing. */
export class Closing {
  readonly #steps: Step[] = [];
  #done: Promise<void> | undefined;

  constructor(private readonly log: Log) {}

  /** Opened last, so closed first. */
  last(what: string, close: () => void | Promise<void>): void {
    this.#steps.push({ what, close });
  }

  /** Idempotent. */
  run(): Promise<void> {
    this.#done ??= this.#run();

    return this.#done;
  }

  async #run(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.close();
      } catch (error) {
        this.log.error('node.close_failed', { what: step.what, error });
      }
    }
  }
}
