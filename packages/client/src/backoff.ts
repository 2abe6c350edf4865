/** How a client returns after a lost connection. */
export interface ReconnectOptions {
  /** Longest pause before the first attempt, in milliseconds. Doubled for each further one. */
  readonly firstDelayMs?: number;
  /** Upper limit of the pause, in milliseconds. */
  readonly maxDelayMs?: number;
  /** Attempts before the client gives up; by default it never does. */
  readonly maxAttempts?: number;
}

/**
 * Returns the pause before attempt `attempt` (from 0) in milliseconds, or undefined when there is to be none. The pause is drawn
 * from the upper half of its range, so that the clients of a restarted server do not return all at once.
 */
export function reconnectDelayMs(
  attempt: number,
  { firstDelayMs = 500, maxDelayMs = 10_000, maxAttempts = Infinity }: ReconnectOptions = {},
  random = Math.random,
): number | undefined {
  if (attempt >= maxAttempts) return undefined;
  const longest = Math.min(maxDelayMs, firstDelayMs * 2 ** attempt);
  return longest * (0.5 + random() / 2);
}
