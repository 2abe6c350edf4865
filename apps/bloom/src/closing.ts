import type { Log } from '@bloom/log';

interface Step {
  what: string;
  close: () => void | Promise<void>;
}

/** Closes what was opened, in reverse order. A step that fails is logged and does not stop the others. */
export class Closing {
  readonly #log: Log;
  readonly #steps: Step[] = [];
  #done: Promise<void> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Adds a step; the step added last runs first. */
  onClose(what: string, close: () => void | Promise<void>): void {
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
        this.#log.error('node.close_failed', { what: step.what, error });
      }
    }
  }
}
