/**
 * A source of names to try. A strategy only ever adds names: one that is no longer reported stays a member until its
 * link is lost. Membership is not decided here.
 */
export interface Strategy {
  /**
   * Reports full node names (`name@host`), now and whenever there are any to report, but never our own. Resolves when
   * the first report has been made or has failed.
   */
  start(report: (nodes: readonly string[]) => void): Promise<void>;
  /** Stops reporting. Idempotent. */
  stop(): void;
}

/** Logs a warning for the operator. */
export type DiscoveryWarning = (event: string, fields: Readonly<Record<string, string | number>>) => void;
