import type { Agent, ClientRequest, ClientRequestArgs } from 'node:http';

/** The method that Node.js calls for each request; undocumented, but overridden by other agents. */
interface Requested {
  addRequest(request: ClientRequest, options: ClientRequestArgs): void;
}

/**
 * Limits an agent's sockets per host. Node's own `maxSockets` does not count sockets that are still connecting, which
 * may be all of them.
 */
export class SocketLimit {
  readonly #max: number;
  /** Sockets that are connecting or open, by host and port. */
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Makes requests of this agent wait while all sockets are in use. */
  limit(agent: Agent): void {
    const target = agent as Agent & Requested;
    const add = target.addRequest.bind(agent);
    target.addRequest = (request, options) => {
      const key = keyOf(options);
      const isIdle = Object.entries(agent.freeSockets).some(([name, idle]) => name.startsWith(key) && idle?.length);
      if (isIdle || (this.#taken.get(key) ?? 0) < this.#max) return add(request, options);
      const line = this.#waiting.get(key) ?? [];
      this.#waiting.set(key, line);
      // Includes a request destroyed in the meantime: it reports its end only once it has a socket.
      line.push(() => target.addRequest(request, options));
    };
    // The agent's own listener has made the socket idle, or closed it.
    agent.on('free', (_socket, options: ClientRequestArgs) => this.#next(keyOf(options)));
  }

  /** Takes a socket. The returned function must be called once it is closed, or could not be opened. */
  take(host: ClientRequestArgs): () => void {
    const key = keyOf(host);
    this.#taken.set(key, (this.#taken.get(key) ?? 0) + 1);
    let isTaken = true;

    return () => {
      if (!isTaken) return;
      isTaken = false;
      const left = (this.#taken.get(key) ?? 1) - 1;
      if (left > 0) this.#taken.set(key, left);
      else this.#taken.delete(key);
      this.#next(key);
    };
  }

  #next(key: string): void {
    const line = this.#waiting.get(key);
    const start = line?.shift();
    if (line?.length === 0) this.#waiting.delete(key);
    start?.();
  }
}

/** Starts the agent's names for its sockets; whatever else distinguishes connections is appended. */
function keyOf({ host, port }: ClientRequestArgs): string {
  return `${host ?? 'localhost'}:${port ?? ''}:`;
}
