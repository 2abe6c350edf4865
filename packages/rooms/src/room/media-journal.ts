import type { Log } from '@bloom/log';
import type { MediaEndpoint, MediaPathName, MediaProblem, MediaReport } from '@bloom/sfu';

/** A connection that was established or failed, for metrics and reports. */
export interface MediaMeasure {
  type: 'media';
  peerId: string;
  outcome: 'connected' | 'failed';
  /** `none`: never connected. */
  path: MediaPathName | 'none';
  /** Time from the answer to the connection. */
  seconds?: number;
  problem?: MediaProblem;
  endpoint: MediaEndpoint;
}

interface MediaJournalOptions {
  log: () => Log;
  endpointOf: (peerId: string) => MediaEndpoint | undefined;
  measure: (measure: MediaMeasure) => void;
}

/** One person's media, over all of its connections. */
interface Person {
  path: MediaPathName | undefined;
  /** True when the failure is logged and the person has not connected since. */
  failed: boolean;
  report: MediaReport;
}

/** Logs connections and failures of people's media, once per person and episode, with what to do about it. */
export class MediaJournal {
  readonly #options: MediaJournalOptions;
  readonly #people = new Map<string, Person>();

  constructor(options: MediaJournalOptions) {
    this.#options = options;
  }

  reported(peerId: string, name: string | undefined, report: MediaReport): void {
    const { log, endpointOf, measure } = this.#options;
    const endpoint = endpointOf(peerId);
    if (endpoint === undefined) return;
    const person = this.#people.get(peerId) ?? { path: undefined, failed: false, report };
    this.#people.set(peerId, person);
    const before = person.report.state;
    person.report = report;
    const { state, problem } = report;
    if (state === 'connected') {
      const { path = 'udp', ms = 0 } = report;
      const isNews = person.failed || person.path === undefined || before === 'connecting';
      person.path = path;
      person.failed = false;
      if (!isNews || report.ms === undefined) return;
      log().info('peer.media_connected', { peerId, name, path, ms });
      measure({ type: 'media', peerId, outcome: 'connected', path, seconds: ms / 1_000, endpoint });
    } else if (state === 'failed' && problem !== undefined && !person.failed) {
      person.failed = true;
      log().warn('peer.media_failed', { peerId, name, problem, ...explain(problem, endpoint) });
      measure({ type: 'media', peerId, outcome: 'failed', path: person.path ?? 'none', problem, endpoint });
    }
  }

  forget(peerId: string): void {
    this.#people.delete(peerId);
  }
}

/** Returns the cause with the actual addresses and ports, and its remedy. */
function explain(problem: MediaProblem, endpoint: MediaEndpoint): { reason: string; fix: string } {
  const where = socketsOf(endpoint).join(', ');
  switch (problem) {
    case 'NO_CHECKS':
      return {
        reason: `nothing arrives from this client at ${where}`,
        fix: `set JF_WEBRTC_TURN_IP to an address that clients reach, and open UDP port ${endpoint.port} in every firewall`,
      };
    case 'ONE_WAY':
      return {
        reason: `packets of this client arrive at ${where}, but answers do not reach it`,
        fix: `check the routes and NAT back to the client; answers leave from JF_WEBRTC_TURN_LISTEN_IP and have to arrive from UDP port ${endpoint.port}`,
      };
    case 'DTLS_FAILED':
      return {
        reason: `checks pass between this client and ${where}, but its DTLS handshake does not complete`,
        fix: `let UDP port ${endpoint.port} pass packets of 1,200 bytes; a proxy or VPN on the way may drop them`,
      };
    case 'NO_MEDIA':
      return { reason: 'a published track sends nothing', fix: 'check the device and the browser of this client' };
  }
}

/** Returns every address and port announced to clients, such as `203.0.113.7:50000/udp`. */
function socketsOf({ address, secondAddress, moreAddresses = [], port, tcpPort, tls }: MediaEndpoint): string[] {
  const addresses = secondAddress === undefined ? [address] : [address, secondAddress];
  return [
    ...[...addresses, ...moreAddresses].map((each) => `${bracketed(each)}:${port}/udp`),
    ...(tcpPort === undefined ? [] : addresses.map((each) => `${bracketed(each)}:${tcpPort}/tcp`)),
    ...(tls === undefined ? [] : [`${bracketed(tls.host)}:${tls.port}/tls`]),
  ];
}

function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
