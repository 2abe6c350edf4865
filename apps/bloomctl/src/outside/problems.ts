// Why no media passes, in the terms of docs/reference/media-state.md, for both the server and the client.
import { EXIT } from '../exit.js';
import { LayerFailure } from '../reach/findings.js';

export type Path = 'udp' | 'relay-udp' | 'relay-tcp' | 'relay-tls';

/** Seen by the server, by the client, or by both. */
export type Problem = 'NO_CHECKS' | 'ONE_WAY' | 'DTLS_FAILED' | 'NO_MEDIA' | 'NO_CANDIDATES' | 'RELAY_REFUSED';

/** A path without media. */
export class PathFailure extends LayerFailure {
  readonly problem: Problem | undefined;

  constructor(problem: Problem | undefined, fault: ConstructorParameters<typeof LayerFailure>[0]) {
    super(fault);
    this.problem = problem;
  }
}

/** Settings and ports of each way in. */
const OPEN: Readonly<Record<Path, (port: string) => string>> = {
  udp: (port) => `open UDP port ${port} in every firewall`,
  'relay-udp': (port) => `open UDP port ${port} in every firewall`,
  'relay-tcp': (port) => `open TCP port ${port} in every firewall (JF_WEBRTC_TURN_TCP_PORT)`,
  'relay-tls': (port) => `open TCP port ${port} in every firewall (JF_WEBRTC_TURN_TLS_PORT)`,
};

/** Returns the cause with the actual addresses and ports, and its remedy. `where`: `203.0.113.7:50000`. */
export function explain(problem: Problem, path: Path, where: string): PathFailure {
  const port = where.split(':').at(-1) ?? '';
  const said = (text: string, message: string, fix: string) =>
    new PathFailure(problem, { exit: EXIT.no, text: `${where}: ${text}`, message, fix });
  switch (problem) {
    case 'NO_CHECKS':
      return said(
        'nothing arrives there',
        `Nothing arrives from this client at ${where}.`,
        `Set JF_WEBRTC_TURN_IP to an address that clients reach, and ${OPEN[path](port)}.`,
      );
    case 'ONE_WAY':
      return said(
        'answers do not come back',
        `Packets of this client arrive at ${where}, but answers do not reach it.`,
        `Check the routes and NAT back to the client; answers leave from JF_WEBRTC_TURN_LISTEN_IP and have to arrive from UDP port ${port}.`,
      );
    case 'DTLS_FAILED':
      return said(
        'the DTLS handshake does not complete',
        `Checks pass between this client and ${where}, but its DTLS handshake does not complete.`,
        `Let port ${port} pass packets of 1,200 bytes; a proxy or VPN on the way may drop them.`,
      );
    case 'NO_MEDIA':
      return said(
        'connected, but media does not come back',
        `The path to ${where} works, but the media sent over it does not come back.`,
        'Look for peer.media_failed and dropped packets in the log of the node.',
      );
    case 'NO_CANDIDATES':
      return said(
        'this machine has no address for it',
        `This machine offers no network path to ${where}.`,
        'Leave the VPN, or let the server announce an address other than loopback (JF_WEBRTC_TURN_IP).',
      );
    case 'RELAY_REFUSED':
      return said(
        'the relay gives no allocation',
        `The relay at ${where} refuses this client.`,
        `If something else listens there, ${OPEN[path](port)} for the node itself; joining again may help.`,
      );
  }
}

/** The path does not work, and only this side could be asked. */
export function unexplained(path: Path, where: string): PathFailure {
  const port = where.split(':').at(-1) ?? '';
  return new PathFailure(undefined, {
    exit: EXIT.no,
    text: `${where}: no packets pass`,
    message: `No packets pass to ${where}, and the server does not say what it sees; with the API token it can.`,
    fix: `Set JF_WEBRTC_TURN_IP to an address that clients reach, and ${OPEN[path](port)}.`,
  });
}
