import { randomBytes } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import { type Log, silentLog } from '@bloom/log';
import type { TrustedProxies } from '@bloom/net';
import { createCertificate, type DtlsCertificate, type RelayRoute, TcpAcceptor } from '@bloom/webrtc';
import type { MediaEngine } from '../media-engine.js';
import { MediaWorkers } from './media-workers.js';

export interface TurnTlsOptions {
  /** 0 lets the system choose. */
  port: number;
  /** Name in the certificate, announced to clients. */
  host: string;
  /** Returns the certificate for a new connection. */
  context: () => SecureContext;
}

export interface MediaEngineOptions {
  /** Address the UDP and TCP sockets bind to (`JF_WEBRTC_TURN_LISTEN_IP`). */
  listenIp: string;
  /** Address clients reach us at (`JF_WEBRTC_TURN_IP`). */
  announcedIp: string;
  /** Addresses of the other family, for media on both IPv4 and IPv6. */
  second?: { listenIp: string; announcedIp: string };
  /** UDP ports, one per worker from the range (`JF_WEBRTC_TURN_PORT_RANGE`); `0..0` lets the system choose. */
  portRange: { min: number; max: number };
  /** Relay over TCP (`JF_WEBRTC_TURN_TCP_PORT`); absent = none, 0 lets the system choose. */
  tcpPort?: number;
  /** Relay over TLS (`JF_WEBRTC_TURN_TLS_PORT`); absent = none. */
  tls?: TurnTlsOptions;
  /** Connections on each of these ports, without and with an allocation; absent = the default of `TcpAcceptor`. */
  maxTcpConnections?: number;
  /** The proxies in front of both ports, which send PROXY headers; absent = none. */
  proxies?: TrustedProxies;
  /** Shared by all transports; created if absent. */
  certificate?: DtlsCertificate;
  log?: Log;
  /** Worker threads; 0, the default, keeps the media in the calling thread. */
  workers?: number;
  /** The compiled worker; default: the one beside this module. */
  workerEntry?: URL;
}

/**
 * Opens the whole media plane. Rejects with the `WebrtcError` of a socket that cannot be bound (`NO_FREE_PORT`,
 * `BAD_ADDRESS`).
 */
export async function createMediaEngine(options: MediaEngineOptions): Promise<MediaEngine> {
  const { listenIp, announcedIp, second, portRange, tcpPort, tls, workers = 0, workerEntry, log = silentLog } = options;
  const certificate = options.certificate ?? (await createCertificate());
  const nonceSecret = randomBytes(32);

  let engine: MediaWorkers | undefined;
  const route = (username: string): RelayRoute | undefined => engine?.relayRoute(username);
  const acceptors: TcpAcceptor[] = [];
  /** Listens on each address family and returns the port. */
  const listen = async (port: number, context?: () => SecureContext): Promise<number> => {
    let bound = port;
    for (const listenAddress of second === undefined ? [listenIp] : [listenIp, second.listenIp]) {
      const acceptor = await TcpAcceptor.listen({
        listenAddress,
        ipv6Only: second !== undefined,
        port: bound,
        nonceSecret,
        route,
        ...(options.maxTcpConnections === undefined ? {} : { maxConnections: options.maxTcpConnections }),
        ...(options.proxies === undefined ? {} : { proxies: options.proxies }),
        ...(context === undefined ? {} : { tls: context }),
      });
      acceptors.push(acceptor);
      bound = acceptor.port;
    }
    return bound;
  };
  let ports: { tcpPort?: number; tls?: { host: string; port: number } };
  try {
    ports = {
      ...(tcpPort === undefined ? {} : { tcpPort: await listen(tcpPort) }),
      ...(tls === undefined ? {} : { tls: { host: tls.host, port: await listen(tls.port, tls.context) } }),
    };
  } catch (error) {
    await Promise.all(acceptors.map((acceptor) => acceptor.close()));
    throw error;
  }

  return (engine = await MediaWorkers.start({
    workers,
    settings: {
      listenIp,
      ...(second === undefined ? {} : { secondListenIp: second.listenIp }),
      announcedIp,
      portRange,
      certificate,
      nonceSecret,
    },
    endpoint: {
      address: announcedIp,
      ...(second === undefined ? {} : { secondAddress: second.announcedIp }),
      fingerprint: certificate.fingerprint,
      ...ports,
    },
    log,
    acceptors,
    ...(workerEntry === undefined ? {} : { entry: workerEntry }),
  }));
}
