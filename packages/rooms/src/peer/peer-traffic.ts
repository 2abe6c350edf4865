import type { TransportStats } from '@bloom/sfu';

/** Why media never flowed over a negotiated transport; a label of metrics. */
export type ConnectFailure =
  /** No connectivity check arrived from the client: a firewall, or a wrong announced address. */
  | 'no_checks'
  /** Checks arrived, but the client nominated no path. */
  | 'not_nominated'
  /** The path works, but the DTLS handshake did not complete. */
  | 'dtls';

/** Traffic over a peer's transports. */
export interface Traffic {
  bytesReceived: number;
  bytesSent: number;
  failure: ConnectFailure | undefined;
}

const NONE: Traffic = { bytesReceived: 0, bytesSent: 0, failure: undefined };

/** Keeps the traffic of closed transports per peer until it is taken. */
export class PeerTraffic {
  readonly #closed = new Map<string, Promise<Traffic>>();

  /** Adds the final counters of a transport. */
  add(peerId: string, closed: Promise<TransportStats | undefined>): void {
    const before = this.#closed.get(peerId);
    this.#closed.set(
      peerId,
      Promise.all([before ?? NONE, closed]).then(([sum, stats]) => (stats === undefined ? sum : plus(sum, stats))),
    );
  }

  /** Resolves with the traffic of the transports closed since the last call. */
  async take(peerId: string): Promise<Traffic> {
    const traffic = this.#closed.get(peerId);
    this.#closed.delete(peerId);

    return (await traffic) ?? NONE;
  }
}

function plus(sum: Traffic, stats: TransportStats): Traffic {
  return {
    bytesReceived: sum.bytesReceived + stats.bytesReceived,
    bytesSent: sum.bytesSent + stats.bytesSent,
    failure: failureOf(stats) ?? sum.failure,
  };
}

function failureOf({
  inbound,
  outbound,
  iceState,
  dtlsState,
  bindingRequestsReceived,
}: TransportStats): ConnectFailure | undefined {
  // Without tracks there was no reason to connect.
  if (inbound.length + outbound.length === 0) return undefined;
  if (iceState === 'new') return bindingRequestsReceived === 0 ? 'no_checks' : 'not_nominated';

  return dtlsState === 'connected' || dtlsState === 'closed' ? undefined : 'dtls';
}
