/** How a client returns after a lost connection. */
export interface ReconnectOptions {
  /** Longest pause before the first attempt, in milliseconds. Doubled for each further one. */
  readonly firstDelayMs?: number;
  /** Upper limit of the pause, in milliseconds. In the first 30 s of an outage it is 2,000 ms, if that is less. */
  readonly maxDelayMs?: number;
  /** Attempts before the client gives up; by default it never does. */
  readonly maxAttempts?: number;
  /** Seats from `renew` in a row that may be refused, or lost within 10 s, before the call ends; 20 by default. */
  readonly maxSeats?: number;
}

/** An outage of this length is most likely a restart or another network: a person is waiting for its end. */
const YOUNG_OUTAGE_MS = 30_000;
const YOUNG_MAX_DELAY_MS = 2_000;

/**
 * Returns the pause before attempt `attempt` (from 0) in milliseconds, in an outage of `outageMs` so far, or undefined when there is to
 * be none.
 *
 * The pause is drawn from its whole range ("full jitter"): whatever the clients did before, they are spread evenly. Of 1,000 clients of
 * one restarted node, each pausing 0 to 2 s (1 s on average), about 1,000 a second knock while the node is down, where a refused
 * connection costs it nothing. Once it is up, a client returns after 0.7 s on average (the mean of the square of its pause, divided by
 * twice its mean), all within 2 s. After 30 s, pauses of up to 10 s make that 200 a second.
 */
export function reconnectDelayMs(
  attempt: number,
  {
    firstDelayMs = 500,
    maxDelayMs = 10_000,
    maxAttempts = Infinity,
    outageMs = Infinity,
  }: ReconnectOptions & { readonly outageMs?: number } = {},
  random = Math.random,
): number | undefined {
  if (attempt >= maxAttempts) return undefined;
  const limit = outageMs < YOUNG_OUTAGE_MS ? Math.min(maxDelayMs, YOUNG_MAX_DELAY_MS) : maxDelayMs;
  return Math.min(limit, firstDelayMs * 2 ** attempt) * random();
}
