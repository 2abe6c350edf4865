/** Reasons for drops. Every drop is counted under exactly one of them. */
const DROP_REASONS = [
  /** Not a packet of any protocol we speak, or cut short. */
  'malformed',
  /** SRTP or SRTCP that was received before, or is older than the replay window. */
  'replayed',
  /** STUN, SRTP or SRTCP whose integrity check failed, or a check for unknown credentials. */
  'unauthenticated',
  /** Media or DTLS from an address that has not passed a connectivity check. */
  'unknown_source',
  /** More SSRCs than a transport remembers. */
  'too_many_streams',
  /** Media before the DTLS handshake has ended. */
  'no_keys',
  /** DTLS records that do not fit the present state of the handshake. */
  'dtls_unexpected',
  /** Relay traffic without allocation, permission or channel. */
  'relay_unbound',
  /** Requests of a source that asks too often. */
  'rate_limited',
  /** A TCP relay client reads too slowly. */
  'backlog',
  /** A handler of the transport threw. */
  'handler_error',
] as const;

export type DropReason = (typeof DROP_REASONS)[number];

export type DropCounters = Record<DropReason, number>;

export function createDropCounters(): DropCounters {
  return Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as DropCounters;
}
