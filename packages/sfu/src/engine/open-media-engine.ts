import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { type Log, silentLog } from '@bloom/log';
import type { Endpoint, TrustedProxies } from '@bloom/net';
import { type AdvertisedPorts, createCertificate, RelayConnections, type RelayRoute, TcpAcceptor } from '@bloom/webrtc';
import type { MediaEngine } from '../media-engine.js';
import { MediaWorkers, type MediaWorkersOptions } from './media-workers.js';

export interface TurnTlsOptions {
  /** 0 lets the system choose. */
  port: number;
  /** Name in the certificate, announced to clients. */
  host: string;
  /**
   * Returns the certificate for a new connection. Absent: another listener accepts the connections, with its own
   * certificate, and hands them to `acceptRelayed`; `port` is the one that clients see.
   */
  context?: () => SecureContext;
}

/** A media plane whose relay also takes connections from another listener. */
export interface RelayingEngine extends MediaEngine {
  /** Serves a client of TURN over TLS. Destroys the socket if the relay is not open or its limits are reached. */
  acceptRelayed(socket: Socket, client: Endpoint): void;
}

export interface MediaEngineOptions {
  /** Address the UDP and TCP sockets bind to (`JF_WEBRTC_TURN_LISTEN_IP`). */
  listenIp: string;
  /** Address at which clients reach us (`JF_WEBRTC_TURN_IP`). */
  announcedIp: string;
  /** Addresses of the other family, for media on both IPv4 and IPv6. */
  second?: { listenIp: string; announcedIp: string };
  /** Further addresses to bind and announce, for UDP only. */
  more?: readonly string[];
  /** UDP ports, one per worker from the range (`JF_WEBRTC_TURN_PORT_RANGE`); `0..0` lets the system choose. */
  portRange: { min: number; max: number };
  /** Ports at which clients reach those (`JF_WEBRTC_ADVERTISED_PORTS`); absent = the same. */
  advertisedPorts?: AdvertisedPorts;
  /** Relay over TCP (`JF_WEBRTC_TURN_TCP_PORT`); absent = none, 0 lets the system choose. */
  tcpPort?: number;
  /** Relay over TLS (`JF_WEBRTC_TURN_TLS_PORT`); absent = none. */
  tls?: TurnTlsOptions;
  /**
   * Limit on connections to each of these ports, without and with an allocation; absent = the default of `TcpAcceptor`.
   */
  maxTcpConnections?: number;
  /** The proxies in front of both ports, which send PROXY headers; absent = none. */
  proxies?: TrustedProxies;
  log?: Log;
  /** Worker threads; 0, the default, keeps the media in the calling thread. */
  workers?: number;
  /** The compiled worker; default: the one beside this module. */
  workerEntry?: URL;
  /** Chooses the worker of a room's next transport; default: by how busy the workers are. */
  assign?: MediaWorkersOptions['assign'];
}

/**
 * Opens the whole media plane. Rejects with the `WebrtcError` of a socket that cannot be bound (`NO_FREE_PORT`,
 * `BAD_ADDRESS`).
 */
export async function openMediaEngine(options: MediaEngineOptions): Promise<RelayingEngine> {
  const {
    listenIp,
    announcedIp,
    second,
    more = [],
    portRange,
    advertisedPorts,
    tcpPort,
    tls,
    workers = 0,
    workerEntry,
    assign,
  } = options;
  const { log = silentLog } = options;
  const certificate = await createCertificate();
  const nonceSecret = randomBytes(32);

  let engine: MediaWorkers | undefined;
  const route = (username: string): RelayRoute | undefined => engine?.relayRoute(username);
  const acceptors: TcpAcceptor[] = [];
  const { maxTcpConnections: maxConnections } = options;
  const connections = { nonceSecret, route, ...(maxConnections === undefined ? {} : { maxConnections }) };
  /** Listens on each address family and returns the port. */
  const listen = async (port: number, context?: () => SecureContext): Promise<number> => {
    let bound = port;
    for (const listenAddress of second === undefined ? [listenIp] : [listenIp, second.listenIp]) {
      const acceptor = await TcpAcceptor.open({
        listenAddress,
        ipv6Only: second !== undefined,
        port: bound,
        ...connections,
        ...(options.proxies === undefined ? {} : { proxies: options.proxies }),
        ...(context === undefined ? {} : { tls: context }),
      });
      acceptors.push(acceptor);
      bound = acceptor.port;
    }
    return bound;
  };
  const tlsPort = async ({ port, context }: TurnTlsOptions): Promise<number> =>
    context === undefined ? port : await listen(port, context);
  let ports: { tcpPort?: number; tls?: { host: string; port: number } };
  try {
    ports = {
      ...(tcpPort === undefined ? {} : { tcpPort: await listen(tcpPort) }),
      ...(tls === undefined ? {} : { tls: { host: tls.host, port: await tlsPort(tls) } }),
    };
  } catch (error) {
    await Promise.all(acceptors.map((acceptor) => acceptor.close()));
    throw error;
  }

  return (engine = await MediaWorkers.open({
    workers,
    settings: {
      listenIp,
      ...(second === undefined ? {} : { secondListenIp: second.listenIp }),
      ...(more.length === 0 ? {} : { moreListenIps: more }),
      announcedIp,
      portRange,
      ...(advertisedPorts === undefined ? {} : { advertisedPorts }),
      certificate,
      nonceSecret,
    },
    endpoint: {
      address: announcedIp,
      ...(second === undefined ? {} : { secondAddress: second.announcedIp }),
      ...(more.length === 0 ? {} : { moreAddresses: more }),
      fingerprint: certificate.fingerprint,
      ...ports,
    },
    log,
    acceptors,
    ...(tls !== undefined && tls.context === undefined ? { relay: RelayConnections.open(connections) } : {}),
    ...(workerEntry === undefined ? {} : { entry: workerEntry }),
    ...(assign === undefined ? {} : { assign }),
  }));
}
