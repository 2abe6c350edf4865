/**
 * A strategy is a source of names to try. It only ever adds: a name that is no longer reported stays a member until its
 * link is lost. Membership is not decided here.
 */
export interface Strategy {
  /**
   * Reports full node names (`name@host`), now and whenever there is something to report. Our own name is never among
   * them. Resolves when the first report has been made or has failed.
   */
  start(report: (nodes: readonly string[]) => void): Promise<void>;
  /** Idempotent; nothing is reported afterwards. */
  stop(): void;
}

/** Logs a warning for the operator. */
export type DiscoveryWarning = (event: string, fields: Readonly<Record<string, string | number>>) => void;
