/** Why a call ended. */
export type EndReason =
  /** We hung up. */
  | 'hung_up'
  /** The other side hung up. */
  | 'remote_hung_up'
  /** We hung up before the other side answered. */
  | 'cancelled'
  | 'busy'
  | 'declined'
  /** Temporarily unavailable: switched off, do not disturb. */
  | 'unavailable'
  | 'not_found'
  | 'no_answer'
  /** The provider redirected the call twice, or to an address that cannot be called. */
  | 'redirected'
  /** Wrong password, or this user may not call that number. */
  | 'unauthorized'
  /** No codec in common, or a session description that cannot be read. */
  | 'not_acceptable'
  | 'server_error'
  /** No response at all, or no route to the provider. */
  | 'unreachable'
  /** Another phone has continued the call. */
  | 'moved'
  /** The provider does not accept that the call came here from another phone. */
  | 'not_moved'
  /** No audio, no RTCP and no response to OPTIONS arrived. */
  | 'media_timeout'
  /** Any other refusal. */
  | 'failed';

const exact: Readonly<Record<number, EndReason>> = {
  401: 'unauthorized',
  402: 'unauthorized',
  403: 'unauthorized',
  404: 'not_found',
  407: 'unauthorized',
  408: 'no_answer',
  410: 'not_found',
  415: 'not_acceptable',
  480: 'unavailable',
  484: 'not_found',
  485: 'not_found',
  486: 'busy',
  487: 'cancelled',
  488: 'not_acceptable',
  600: 'busy',
  603: 'declined',
  604: 'not_found',
  606: 'not_acceptable',
  607: 'declined',
};

/** Returns the reason for a final response to INVITE; `status` is 300..699. */
export function reasonOfStatus(status: number): EndReason {
  const known = exact[status];
  if (known) return known;
  if (status < 400) return 'redirected';
  return status >= 500 && status < 600 ? 'server_error' : 'failed';
}
