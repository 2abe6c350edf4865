import type { Log } from '@bloom/log';

/** Keeps exceptions of processes away from the transport. */
export class Faults {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  readonly guard = (what: string, run: () => void): void => {
    try {
      run();
    } catch (error) {
      this.report(what, error);
    }
  };

  report(what: string, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#log.error('distribution.handler_failed', { what, reason });
  }
}
