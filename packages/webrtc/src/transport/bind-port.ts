import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebrtcError } from '../errors.js';
import { portSocket } from './client-sockets.js';

/** True if sockets may share a port, each for one client. Depends on the kernel's socket lookup; works on Linux. */
export const SHARES_PORTS = process.platform === 'linux';

const LOCK_ATTEMPTS = 100;
const LOCK_PAUSE_MS = 5;
/** Attempts to bind a port chosen by the system: another process may take it first. */
const RANDOM_ATTEMPTS = 10;

/** The addresses of one port: usually one, or one per IP family. */
type PortAddresses = readonly string[];
/** One socket for each address. */
type PortSockets = [first: Socket, ...others: Socket[]];

/**
 * Binds the first UDP port of the range that is free on all addresses, with one socket each. Rejects with `WebrtcError`
 * `NO_FREE_PORT` or `BAD_ADDRESS`.
 *
 * A socket that shares its port would let our next port bind the same number. Therefore an exclusive socket probes the
 * number first, under a lock that is held until the real socket is bound.
 */
export async function bindFirstFree(
  addresses: PortAddresses,
  { min, max }: { min: number; max: number },
): Promise<PortSockets> {
  for (let port = min; port <= max; port++) {
    const sockets = port === 0 ? await bindRandom(addresses) : await bindAll(addresses, port);
    if (sockets !== undefined) return sockets;
  }
  const where = addresses.join(' and ');
  throw new WebrtcError(
    'NO_FREE_PORT',
    `every UDP port of ${min}-${max} on ${where} is taken (JF_WEBRTC_TURN_PORT_RANGE, JF_WEBRTC_TURN_LISTEN_IP)`,
  );
}

/** Binds a port chosen by the system. Probes it first, because another process or address may use it. */
async function bindRandom(addresses: PortAddresses): Promise<PortSockets | undefined> {
  for (let attempt = 0; attempt < RANDOM_ATTEMPTS; attempt++) {
    const probe = await bind(addresses[0] as string, { port: 0, shared: false });
    if (probe === undefined) return undefined;
    const { port } = probe.address();
    probe.close();
    const sockets = await bindAll(addresses, port);
    if (sockets !== undefined) return sockets;
  }
  return undefined;
}

async function bindAll(addresses: PortAddresses, port: number): Promise<PortSockets | undefined> {
  const sockets: Socket[] = [];
  const closeAll = (): void => {
    for (const socket of sockets) socket.close();
  };
  for (const address of addresses) {
    const socket = await bindOne(address, port, addresses.length > 1).catch((error: unknown) => {
      closeAll();
      throw error;
    });
    if (socket === undefined) {
      closeAll();
      return undefined;
    }
    sockets.push(socket);
  }
  return sockets as PortSockets;
}

async function bindOne(address: string, port: number, ipv6Only: boolean): Promise<Socket | undefined> {
  if (!SHARES_PORTS) return bind(address, { port, shared: false, ipv6Only });
  const lock = await lockPort(port);
  if (lock === undefined) return undefined;
  try {
    const probe = await bind(address, { port, shared: false, ipv6Only });
    if (probe === undefined) return undefined;
    probe.close();
    return await bind(address, { port, shared: true, ipv6Only });
  } finally {
    lock.close();
  }
}

/** Locks a name in Linux's abstract namespace: one process or thread holds it, until it closes it or exits. */
async function lockPort(port: number): Promise<Server | undefined> {
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
    const server = createServer();
    try {
      server.listen(`\0bloom-media-port-${port}`);
      await once(server, 'listening');
      return server;
    } catch {
      await delay(LOCK_PAUSE_MS);
    }
  }
  return undefined;
}

/** Binds a socket. Returns undefined when the port is in use. */
async function bind(
  address: string,
  { port, shared, ipv6Only = false }: { port: number; shared: boolean; ipv6Only?: boolean },
): Promise<Socket | undefined> {
  const socket = portSocket({ address, shared, ipv6Only });
  try {
    // Listen first: with our lookup, `bind` completes synchronously.
    const listening = once(socket, 'listening');
    socket.bind({ port, address, exclusive: true });
    await listening;
    return socket;
  } catch (error) {
    socket.close();
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE' || code === 'EACCES') return undefined;
    // The reason must be in the message, because only the message crosses from a media worker's thread.
    const where = `${address} (JF_WEBRTC_TURN_LISTEN_IP)`;
    throw new WebrtcError('BAD_ADDRESS', `no UDP port can be bound on ${where}: ${message}`, { cause: error });
  }
}

/** UDP ports as clients see them behind a port mapping, such as a NodePort of Kubernetes. Plain data. */
export interface AdvertisedPorts {
  /** Distance from a bound port to the one that clients reach, unless it is listed. */
  offset: number;
  /** Ports that clients reach, by bound port. */
  listed: ReadonlyMap<number, number>;
}

/** Returns the port at which clients reach a bound port; the port itself without a mapping. */
export function advertisedPort(port: number, ports: AdvertisedPorts | undefined): number {
  return ports === undefined ? port : (ports.listed.get(port) ?? port + ports.offset);
}
