/** How a client reconnects after losing its connection. */
export interface ReconnectOptions {
  /** Maximum pause before the first attempt, in milliseconds. It doubles with each further attempt. */
  readonly firstDelayMs?: number;
  /** Upper limit of the pause, in milliseconds. In the first 30 s of an outage it is at most 2,000 ms. */
  readonly maxDelayMs?: number;
  /** Number of attempts before the client gives up. By default it never does. */
  readonly maxAttempts?: number;
  /** Time without a connection, in milliseconds, after which the client gives up. By default it never does. */
  readonly maxOutageMs?: number;
  /**
   * Number of successive seats or connections that may be refused or lost within 10 s before the call ends. Default 20.
   */
  readonly maxSeats?: number;
}

/** A shorter outage is most likely a restart or a network change, and a person is waiting for it to end. */
const YOUNG_OUTAGE_MS = 30_000;
const YOUNG_MAX_DELAY_MS = 2_000;
const EXPECTED_SHARE = 0.2;

/**
 * Returns the pause before attempt `attempt` (from 0) in milliseconds, for an outage that has lasted `outageMs`, or
 * undefined if there is no further attempt.
 *
 * The pause is drawn from its whole range ("full jitter"), so that clients are spread evenly whatever they did before.
 * Of 1,000 clients of one restarted node, each pausing 0 to 2 s (1 s on average), about 1,000 a second try to connect
 * while the node is down, where a refused connection costs it nothing. Once it is up, a client returns after 0.7 s on
 * average (the mean of the square of its pause, divided by twice its mean), and all within 2 s. After 30 s, pauses of
 * up to 10 s reduce that to 200 a second. `isExpected`: the first attempt may wait at the server until the room goes
 * on, so its pause only spreads the connections.
 */
export function reconnectDelayMs(
  attempt: number,
  {
    firstDelayMs = 500,
    maxDelayMs = 10_000,
    maxAttempts = Infinity,
    outageMs = Infinity,
    isExpected = false,
  }: ReconnectOptions & { readonly outageMs?: number; readonly isExpected?: boolean } = {},
  random = Math.random,
): number | undefined {
  if (attempt >= maxAttempts) return undefined;
  const limit = outageMs < YOUNG_OUTAGE_MS ? Math.min(maxDelayMs, YOUNG_MAX_DELAY_MS) : maxDelayMs;
  const share = isExpected && attempt === 0 ? EXPECTED_SHARE : 1;
  return Math.min(limit, firstDelayMs * 2 ** attempt) * share * random();
}
