/** The state of one client's media as the server sees it (docs/reference/media-state.md). */

/** How packets reach the client: directly, or through the relay over the named transport. */
export type MediaPathName = 'udp' | 'tcp' | 'relay-udp' | 'relay-tcp' | 'relay-tls';

/**
 * `idle`: nothing to send or receive yet. `interrupted`: was connected, but nothing arrives. `failed`: the time for
 * `connecting` or `interrupted` is over; it returns to `connected` as soon as packets pass.
 */
export type MediaStateName = 'idle' | 'connecting' | 'connected' | 'interrupted' | 'failed';

export type MediaProblem =
  /** Nothing arrives at the announced addresses and ports. */
  | 'NO_CHECKS'
  /** Checks arrive, but the answers do not reach the client. */
  | 'ONE_WAY'
  /** The path works, but the DTLS handshake does not complete. */
  | 'DTLS_FAILED'
  /** The path works, but a published track sends nothing. */
  | 'NO_MEDIA';

export interface MediaReport {
  state: MediaStateName;
  /** Only while `connected`. */
  path?: MediaPathName;
  problem?: MediaProblem;
  /** Time from the last answer to `connected`, or since the path was lost. Only in reports of `connected`. */
  ms?: number;
}

/** How well one client's media flows; `lost`: nothing has arrived from the client for 8 s. */
export type ConnectionQuality = 'excellent' | 'good' | 'poor' | 'lost';
