/** Reasons for drops. Every dropped packet is counted under exactly one of them. */
const DROP_REASONS = [
  /** Packet that is truncated or belongs to no protocol we speak. */
  'malformed',
  /** SRTP or SRTCP packet that was received before or is older than the replay window. */
  'replayed',
  /** STUN, SRTP or SRTCP packet with a failed integrity check, or a check for unknown credentials. */
  'unauthenticated',
  /** Media or DTLS from an address that has not passed a connectivity check. */
  'unknown_source',
  /** Packet with a new SSRC beyond the limit per transport. */
  'too_many_streams',
  /** Media received before the DTLS handshake completed. */
  'no_keys',
  /** DTLS record that does not fit the current state of the handshake. */
  'dtls_unexpected',
  /** Relay traffic without an allocation, a permission or a channel. */
  'relay_unbound',
  /** Request from a source that exceeds its rate limit. */
  'rate_limited',
  /** Packet for a TCP relay client that reads too slowly. */
  'backlog',
  /** A transport handler threw. */
  'handler_error',
] as const;

export type DropReason = (typeof DROP_REASONS)[number];

export type DropCounters = Record<DropReason, number>;

export function createDropCounters(): DropCounters {
  return Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as DropCounters;
}
