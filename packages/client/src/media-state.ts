/** How packets reach the server: directly, or through its relay over the named transport. */
export type MediaPath = 'udp' | 'tcp' | 'relay-udp' | 'relay-tcp' | 'relay-tls';

/** Why no packets pass, as the client sees it. */
export type MediaProblem =
  /** The browser offers no address that can work: Firefox and a server on loopback, a VPN, a policy. */
  | 'NO_CANDIDATES'
  /** The server's relay refused this browser. */
  | 'RELAY_REFUSED'
  /** A path works, but the DTLS handshake over it does not complete. */
  | 'DTLS_FAILED';

/** Whether packets can pass between this client and the server (docs/reference/media-state.md). */
export interface MediaState {
  /**
   * `idle`: nothing to send or receive yet. `interrupted`: was connected, and the client is looking for a new path.
   * `failed`: after 10 s of `connecting` or 20 s of `interrupted`; the client keeps trying.
   */
  readonly state: 'idle' | 'connecting' | 'connected' | 'interrupted' | 'failed';
  /** Only while `connected`. */
  readonly path: MediaPath | null;
  /** Only if `failed` and the client knows the cause. */
  readonly problem: MediaProblem | null;
  /** Only if `failed`: the problem and its remedy, in a sentence to show. */
  readonly reason: string | null;
}

export const IDLE: MediaState = { state: 'idle', path: null, problem: null, reason: null };

export const REASONS: Readonly<Record<MediaProblem | 'UNKNOWN', string>> = {
  NO_CANDIDATES:
    'This browser offers no network path to the server. Leave the VPN, allow WebRTC, or let the server announce an address other than loopback (JF_WEBRTC_TURN_IP).',
  RELAY_REFUSED: 'The relay of the server refused this browser. Joining again may help.',
  DTLS_FAILED:
    'The network path works, but the encryption over it does not. Leave the VPN or proxy, or try another network.',
  UNKNOWN:
    'No packets pass to the server. Try another network without VPN; the log of the server names the ports that must be open.',
};

/** Returns the path of a connection from its statistics; null if none is selected. */
export function pathOf(stats: RTCStatsReport): MediaPath | null {
  const all = [...stats.values()] as Record<string, unknown>[];
  const selected = all.find((one) => one['type'] === 'transport')?.['selectedCandidatePairId'];
  const pair = all.find(
    (one) =>
      one['type'] === 'candidate-pair' &&
      // Firefox has no statistics of transports in some releases.
      (selected === undefined ? one['state'] === 'succeeded' && one['nominated'] === true : one['id'] === selected),
  );
  const local = all.find((one) => one['type'] === 'local-candidate' && one['id'] === pair?.['localCandidateId']);
  if (local === undefined) return null;
  if (local['candidateType'] !== 'relay') return local['protocol'] === 'tcp' ? 'tcp' : 'udp';

  return `relay-${(local['relayProtocol'] ?? 'udp') as 'udp' | 'tcp' | 'tls'}`;
}

/** Returns what prevents a connection; null if this side cannot tell. */
export function problemOf(
  stats: RTCStatsReport,
  { ice, relayErrors }: { ice: RTCIceConnectionState; relayErrors: number },
): MediaProblem | null {
  if (ice === 'connected' || ice === 'completed') return 'DTLS_FAILED';
  const all = [...stats.values()] as Record<string, unknown>[];
  const own = all.filter((one) => one['type'] === 'local-candidate');
  const theirs = all.filter((one) => one['type'] === 'remote-candidate');
  if (relayErrors > 0 && !own.some((one) => one['candidateType'] === 'relay')) return 'RELAY_REFUSED';
  const unreachable = theirs.length > 0 && theirs.every(isLoopback) && !own.some(isLoopback);

  return own.length === 0 || unreachable ? 'NO_CANDIDATES' : null;
}

function isLoopback({ address, ip }: Record<string, unknown>): boolean {
  return /^(?:127\.|::1$)/.test(`${address ?? ip}`);
}
