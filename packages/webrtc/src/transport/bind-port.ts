import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebrtcError } from '../errors.js';
import { portSocket } from './client-sockets.js';

/** Whether several sockets may share a number, each for one client: depends on the kernel's lookup; works on Linux. */
export const SHARES_PORTS = process.platform === 'linux';

const LOCK_ATTEMPTS = 100;
const LOCK_PAUSE_MS = 5;
/** Attempts for a port of the system's choice: another process may take it first. */
const RANDOM_ATTEMPTS = 10;

/**
 * Binds the first free UDP port of the range. Rejects with `WebrtcError` `NO_FREE_PORT` or `BAD_ADDRESS`.
 *
 * Where ports are shared, the socket allows others on its number, so a second port of ours would find it free as well.
 * Therefore a socket that shares nothing tests the number first, under a lock until the real socket is bound.
 */
export async function bindFirstFree(address: string, { min, max }: { min: number; max: number }): Promise<Socket> {
  for (let port = min; port <= max; port++) {
    const socket = port === 0 ? await bindRandom(address) : await bindOne(address, port);
    if (socket !== undefined) return socket;
  }
  throw new WebrtcError(
    'NO_FREE_PORT',
    `every UDP port of ${min}-${max} on ${address} is taken (JF_WEBRTC_TURN_PORT_RANGE, JF_WEBRTC_TURN_LISTEN_IP)`,
  );
}

async function bindRandom(address: string): Promise<Socket | undefined> {
  if (!SHARES_PORTS) return bind(address, 0, false);
  for (let attempt = 0; attempt < RANDOM_ATTEMPTS; attempt++) {
    const probe = await bind(address, 0, false);
    if (probe === undefined) return undefined;
    const { port } = probe.address();
    probe.close();
    const socket = await bindOne(address, port);
    if (socket !== undefined) return socket;
  }
  return undefined;
}

async function bindOne(address: string, port: number): Promise<Socket | undefined> {
  if (!SHARES_PORTS) return bind(address, port, false);
  const lock = await lockPort(port);
  if (lock === undefined) return undefined;
  try {
    const probe = await bind(address, port, false);
    if (probe === undefined) return undefined;
    probe.close();
    return await bind(address, port, true);
  } finally {
    lock.close();
  }
}

/** A name in Linux' abstract namespace: held by one process or thread at a time, and freed when its holder ends. */
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

/** Returns undefined when the port is taken. */
async function bind(address: string, port: number, shared: boolean): Promise<Socket | undefined> {
  const socket = portSocket({ address, shared });
  try {
    // Listened for before, because with our lookup binding ends within the call.
    const listening = once(socket, 'listening');
    socket.bind({ port, address, exclusive: true });
    await listening;
    return socket;
  } catch (error) {
    socket.close();
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE' || code === 'EACCES') return undefined;
    // The reason is in the sentence: that is what arrives from the thread of a media worker.
    const where = `${address} (JF_WEBRTC_TURN_LISTEN_IP)`;
    throw new WebrtcError('BAD_ADDRESS', `no UDP port can be bound on ${where}: ${message}`, { cause: error });
  }
}
