import type { Server } from 'node:net';
import type { Log } from '@bloom/log';
import { networkOf } from '@bloom/net';
import type { Clock, LogThrottle } from '@bloom/time';
import { DistributionError, type HandshakeFailure } from './errors.js';
import { Connector } from './handshake/connector.js';
import type { Authenticated } from './handshake/dialer.js';
import { hasGivenName } from './handshake/flags.js';
import type { Decision, Identity, Secrets } from './handshake/handshake.js';
import { Listener, type ListenerOptions } from './handshake/listener.js';
import { isNodeName, type NodeName } from './handshake/names.js';
import type { Connections } from './link/connections.js';
import { Cuts } from './membership/cuts.js';
import { anyCreation } from './identifiers.js';
import type { NodeLimits } from './limits.js';
import type { NodeNetwork } from './world.js';

/** Handshakes that failed on our side, by reason. */
export type HandshakeCounters = Partial<Record<HandshakeFailure | 'rate', number>>;

/** Cookie of every Unix socket, publicly known: the permissions of the socket's directory decide who may connect. */
export const LOCAL_COOKIE = 'local';

export interface DoorOptions {
  readonly self: Identity;
  readonly secrets: Secrets;
  /** Undefined for a node that only dials. */
  readonly server: Server | undefined;
  /** Listens on a Unix socket. */
  readonly localServer: Server | undefined;
  readonly mapperPort: number;
  /** The Unix socket through which every node is dialled. */
  readonly via: string | undefined;
  readonly resolve: (host: string) => Promise<readonly string[]>;
  /** Undefined: the network of the machine. */
  readonly network: NodeNetwork | undefined;
  readonly limits: NodeLimits;
  readonly connections: Connections;
  /** Called when a node's cut has ended. */
  readonly cutEnded: (node: string) => void;
  readonly random: () => number;
  readonly clock: Clock;
  readonly throttle: LogThrottle;
  readonly log: Log;
}

/** Decides which nodes connect: accepts, dials, refuses, and keeps out nodes that an operator has cut off. */
export class Door {
  readonly counters: HandshakeCounters = {};
  readonly #options: DoorOptions;
  readonly #listeners: readonly Listener[];
  readonly #connector: Connector;
  readonly #cuts: Cuts;
  #closed = false;
  /** Names given so far to nodes without one. */
  #named = 0;

  constructor(options: DoorOptions) {
    this.#options = options;
    const { self, server, localServer, limits, connections, clock, cutEnded, via } = options;
    const localSecrets = { ...options.secrets, cookie: () => LOCAL_COOKIE };
    const secrets = via === undefined ? options.secrets : localSecrets;
    this.#cuts = new Cuts(clock, cutEnded);
    const listeners: ListenerOptions = {
      ...limits,
      clock,
      secrets,
      self,
      decide: (remote, address) =>
        hasGivenName(remote.flags) ? this.#nameFor(remote) : this.#connector.decide(remote, address),
      up: (accepted, acknowledge) => this.#accepted(accepted, acknowledge),
      failed: (why, address, node) => this.#refused(why, address, node),
    };
    this.#listeners = [
      new Listener(server, listeners),
      new Listener(localServer, { ...listeners, secrets: localSecrets }),
    ];
    this.#connector = new Connector({
      ...options,
      secrets,
      stepTimeoutMs: limits.stepTimeoutMs,
      isShaking: (node, address) => this.#isShaking(node, address),
      isConnected: (node) => connections.has(node),
      admits: (node) => this.#admits(node),
      up: (dialled) => connections.adopt(dialled, true),
      failed: (why) => this.#count(why),
    });
  }

  /**
   * Resolves when the node is connected.
   * @throws DistributionError LINK_CUT, NODE_STOPPED, NODE_UNREACHABLE, NODE_NOT_REGISTERED
   * @throws HandshakeFailed
   */
  async connect(target: NodeName): Promise<void> {
    if (this.#closed) throw stopped();
    const node = target.full;
    if (node === this.#options.self.name || this.#options.connections.has(node)) return;
    if (this.#cuts.has(node)) throw linkCut(node);
    await this.#connector.connect(target);
  }

  /** Ends the attempt to reach a node that is now connected. Returns a function that settles it for its callers. */
  connected(node: string, dialled: boolean): () => void {
    return this.#connector.take(node, dialled);
  }

  /** Closes the connection to the node and refuses new ones, from either side, for `ms`. */
  cut(node: string, ms: number): void {
    this.#cuts.begin(node, ms);
    this.#connector.abandon(node, linkCut(node));
    this.#options.connections.close(node, 'cut', 'an operator cut it');
  }

  /** Ends a cut early. Returns false when there was none. */
  uncut(node: string): boolean {
    return this.#cuts.end(node);
  }

  get cutNodes(): string[] {
    return this.#cuts.nodes;
  }

  /** Remaining time of a cut; null without one. */
  cutRemainingMs(node: string): number | null {
    return this.#cuts.remainingMs(node);
  }

  /** Stops dialling and admitting nodes. */
  close(): void {
    this.#closed = true;
    this.#cuts.stop();
    this.#connector.stop(stopped());
  }

  /** Stops listening. Resolves when every accepted socket has ended. */
  async closeServer(): Promise<void> {
    for (const listener of this.#listeners) listener.stop();
    const { server, localServer } = this.#options;
    await Promise.all([server, localServer].map(closeServer));
  }

  #isShaking(node: string, address?: string): boolean {
    return this.#listeners.some((listener) => listener.isShaking(node, address));
  }

  /** Names a node that has sent only its host. This node's creation keeps names of different members apart. */
  #nameFor({ name: host }: Identity): Decision {
    const { self, connections, random } = this.#options;
    let name: string;
    do {
      this.#named += 1;
      name = `${self.creation.toString(36)}_${this.#named.toString(36)}@${host}`;
    } while (connections.has(name) || this.#isShaking(name));
    return this.#admits(name) ? { name, creation: anyCreation(random) } : 'not_allowed';
  }

  #admits(node: string): boolean {
    const { self, connections, limits } = this.#options;
    if (this.#closed || node === self.name || this.#cuts.has(node) || !isNodeName(node)) return false;
    return connections.has(node) || connections.size < limits.maxConnections;
  }

  #accepted(accepted: Authenticated, acknowledge: () => void): void {
    const { socket, remote } = accepted;
    const { connections } = this.#options;
    // Only now has the node proved its name. Earlier, anyone could have ended the old connection.
    connections.close(remote.name, 'replaced', 'it connected again');
    // An operator may have cut it off during the handshake.
    if (this.#cuts.has(remote.name)) {
      socket.destroy();
      return;
    }
    acknowledge();
    connections.adopt(accepted, false);
  }

  #refused(reason: HandshakeFailure | 'rate', address: string, node = 'unknown'): void {
    this.#count(reason);
    // These are normal: the other attempt between the two nodes continues.
    if (reason === 'nok' || reason === 'aborted') return;
    // Strangers choose the names that they claim and could fill the log with new ones.
    if (this.#options.throttle.allows(`${reason} ${networkOf(address)}`)) {
      this.#options.log.warn('distribution.refused', { node, address, reason });
    }
  }

  #count(why: HandshakeFailure | 'rate'): void {
    this.counters[why] = (this.counters[why] ?? 0) + 1;
  }
}

async function closeServer(server: Server | undefined): Promise<void> {
  if (server?.listening === true) await new Promise<void>((resolve) => server.close(() => resolve()));
}

function linkCut(node: string): DistributionError {
  return new DistributionError('LINK_CUT', `the connection to ${node} was cut by an operator for a time`);
}

function stopped(): DistributionError {
  return new DistributionError('NODE_STOPPED', 'this node has been stopped');
}
