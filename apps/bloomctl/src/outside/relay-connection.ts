import { connect, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { EXIT } from '../exit.js';
import { span } from '../text/units.js';
import { type Path, PathFailure } from './problems.js';

interface RelayAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Connects to a relay over TCP or TLS, as a browser does before it allocates. Resolves with the time that took, ms.
 * @throws PathFailure
 */
export function connectRelay(
  { host, port }: RelayAddress,
  path: 'relay-tcp' | 'relay-tls',
  timeoutMs: number,
): Promise<number> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const secure = path === 'relay-tls';
    const socket = secure
      ? connectTls({ host, port, ...(isIP(host) === 0 ? { servername: host } : {}) })
      : connect({ host, port });
    const end = (settle: () => void): void => {
      socket.destroy();
      settle();
    };
    socket.setTimeout(timeoutMs, () => end(() => reject(refusal({ host, port, path }, 'ETIMEDOUT', span(timeoutMs)))));
    socket.once(secure ? 'secureConnect' : 'connect', () => end(() => resolve(performance.now() - startedAt)));
    socket.once('error', (error: NodeJS.ErrnoException) =>
      end(() => reject(refusal({ host, port, path }, error.code ?? '', error.message))),
    );
  });
}

function refusal({ host, port, path }: RelayAddress & { path: Path }, code: string, message: string): PathFailure {
  const where = `${host}:${port}`;
  const setting = path === 'relay-tls' ? 'JF_WEBRTC_TURN_TLS_PORT' : 'JF_WEBRTC_TURN_TCP_PORT';
  const fault = (text: string, said: string, fix: string) =>
    new PathFailure(undefined, { exit: EXIT.no, text: `${where}: ${text}`, message: said, fix });
  switch (code) {
    case 'ETIMEDOUT':
      return fault(
        `no answer within ${message}`,
        `Packets to ${where} are dropped, so networks without UDP cannot call.`,
        `Open TCP port ${port} in every firewall (${setting}).`,
      );
    case 'ECONNREFUSED':
      return fault(
        'refuses connections',
        `Nothing listens at ${where}, which the server announces.`,
        `Check ${setting}, and that the load balancer or container passes this port.`,
      );
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return fault(
        'the name has no address',
        `The server announces ${host}, a name without an address here.`,
        'Add it to DNS, or set JF_WEBRTC_TURN_IP.',
      );
    default:
      return fault(
        message,
        path === 'relay-tls'
          ? `No browser accepts the TLS connection to the relay at ${where}: ${message}.`
          : `The relay at ${where} cannot be reached: ${message}.`,
        path === 'relay-tls'
          ? 'Its certificate must be valid and name this host (JF_SSL_CERT_PATH); a proxy that ends TLS must not stand in front of it.'
          : `Check ${setting} and the firewalls.`,
      );
  }
}
