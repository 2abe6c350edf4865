import { Agent as HttpAgent, type AgentOptions, type ClientRequestArgs } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions } from 'node:https';
import { connect, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '@bloom/time';
import { inRacingOrder, race } from './race.js';
import { type Names, systemResolver } from './resolver.js';
import { SocketLimit } from './socket-limit.js';

const CONNECT_TIMEOUT_MS = 10_000;

export interface ConnectOptions {
  /** Name or address. */
  readonly host: string;
  readonly port: number;
  readonly resolver?: Names | undefined;
  /** Time limit for one address; default 10 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock;
}

/**
 * Connects to the address of a host that accepts first, both families side by side.
 * @throws ResolveError, or the error of the first address
 */
export async function connectTcp(options: ConnectOptions): Promise<Socket> {
  const { host, port, resolver = systemResolver(), timeoutMs = CONNECT_TIMEOUT_MS, signal } = options;
  const addresses = isIP(host) === 0 ? inRacingOrder(await resolver.addresses(host)) : [host];

  return await race({
    candidates: addresses,
    attempt: (address, ended) => connectOnce({ address, port, timeoutMs, ended }),
    discard: (socket) => socket.destroy(),
    signal,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
}

interface Attempt {
  address: string;
  port: number;
  timeoutMs: number;
  ended: AbortSignal;
}

function connectOnce({ address, port, timeoutMs, ended }: Attempt): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, timeout: timeoutMs }).setNoDelay();
    const fail = (error: Error): void => {
      ended.removeEventListener('abort', abort);
      socket.destroy();
      reject(error);
    };
    const abort = (): void => fail(new Error('another address was faster'));
    const late = (): void =>
      fail(Object.assign(new Error(`connect ETIMEDOUT ${address}:${port}`), { code: 'ETIMEDOUT' }));
    ended.addEventListener('abort', abort);
    socket.once('error', fail);
    socket.once('timeout', late);
    socket.once('connect', () => {
      ended.removeEventListener('abort', abort);
      socket.off('error', fail).off('timeout', late).setTimeout(0);
      resolve(socket);
    });
  });
}

type OnSocket = (error: Error | null, socket: Duplex) => void;

export interface RacingAgents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
  /** Closes the agents' connections, and gives up those in progress. */
  destroy(): void;
}

/** The parts of a request that concern its connection. */
interface Wanted extends Pick<ClientRequestArgs, 'host' | 'port'> {
  readonly ended?: AbortSignal;
}

export interface AgentsOptions extends Pick<AgentOptions, 'keepAlive'> {
  /** Maximum number of sockets to one host, including those that are connecting. Default: no limit. */
  readonly maxSockets?: number;
}

/**
 * Returns agents that connect as `connectTcp` does, for HTTP requests to names. Before a request has a connection,
 * Node.js does not tell the agent when it is over, so requests pass a signal for that as `ended`.
 */
export function openAgents(options: AgentsOptions, resolver: Names = systemResolver()): RacingAgents {
  const { keepAlive = false, maxSockets = Number.POSITIVE_INFINITY } = options;
  const limit = new SocketLimit(maxSockets);
  const opening = new Set<() => void>();
  const open = ({ host, port, ended }: Wanted, onSocket: OnSocket, wrap = (socket: Socket): Duplex => socket) => {
    const release = limit.take({ host, port });
    const end = new AbortController();
    const giveUp = (): void => end.abort(new Error('the request was given up'));
    opening.add(giveUp);
    ended?.addEventListener('abort', giveUp);
    if (ended?.aborted === true) giveUp();
    connectTcp({ host: host ?? 'localhost', port: Number(port), resolver, signal: end.signal })
      .finally(() => {
        opening.delete(giveUp);
        ended?.removeEventListener('abort', giveUp);
      })
      .then((socket) => wrap(socket.once('close', release)))
      .then(
        (socket) => onSocket(null, socket),
        (error: Error) => {
          // On failure there is no socket, as the agents expect.
          (onSocket as (error: Error) => void)(error);
          release();
        },
      );
    return undefined;
  };
  const http = new (class extends HttpAgent {
    override createConnection(connection: ClientRequestArgs, onSocket: OnSocket): undefined {
      return open(connection, onSocket);
    }
  })({ keepAlive });
  const https = new (class extends HttpsAgent {
    override createConnection(connection: RequestOptions, onSocket: OnSocket): undefined {
      // Runs TLS over the socket, with the sessions that the agent keeps.
      const secure = (socket: Socket): Duplex => super.createConnection({ ...connection, socket } as object) as Duplex;
      return open(connection, onSocket, secure);
    }
  })({ keepAlive });
  limit.limit(http);
  limit.limit(https);

  return {
    http,
    https,
    destroy() {
      for (const giveUp of opening) giveUp();
      http.destroy();
      https.destroy();
    },
  };
}
