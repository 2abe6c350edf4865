import type { Pid } from '@bloom/etf';
import { DistributionNode, type NodeOptions, type ProcessTable } from '@bloom/distribution';
import type { Log } from '@bloom/log';
import { noShapes, notSendable } from '../errors.js';
import type { Protocol } from '../protocol.js';
import { RemoteRef, type ActorRef, type AnyRef } from '../ref.js';
import type { ActorSystem, LocalActorSystem } from '../system.js';
import type { AnyShapes, Shapes } from '../shape.js';
import { Border } from './border.js';
import { newCounters, type RemoteCounters } from './counters.js';
import { Functions, type FunctionName, type FunctionOptions, type NodeFunction } from './functions.js';
import { Incoming } from './incoming.js';
import { Outgoing } from './outgoing.js';
import { PidTable } from './pid-table.js';
import { PlainData } from './plain-data.js';
import { exitReason } from './reasons.js';
import { Waiting } from './waiting.js';

export interface RemoteOptions {
  log: Log;
  /** Maximum number of unanswered calls to other nodes. Default 100,000. */
  maxCalls?: number;
  /** Maximum number of `registerFunction` functions running at once. Default 1,000. */
  maxRunningFunctions?: number;
  /** Called for every message, signal and answer refused for its shape. */
  onRefused?: () => void;
}

/** Connects one actor system to Erlang and to our actors on other nodes. */
export interface RemoteActors {
  /** Starts this system's node. Throws what `DistributionNode.start` throws. */
  start(options: Omit<NodeOptions, 'processes'>): Promise<DistributionNode>;
  /** undefined before `start`. */
  readonly node: DistributionNode | undefined;
  /** Returns the actor of this name on a node that need not be connected yet. `shapes` describes its answers. */
  remote<P extends Protocol>(node: string, name: string, shapes: Shapes<P>): ActorRef<P>;
  /** Adds a function for `rpc:call(Node, Module, Name, Args)` and `erpc`, which reach nothing else. */
  registerFunction(name: FunctionName, run: NodeFunction, options?: FunctionOptions): void;

  readonly counters: Readonly<RemoteCounters>;
  /** Number of living actors that other nodes know, and of open calls and monitors. */
  readonly gauges: { readonly pids: number; readonly calls: number; readonly monitors: number };
  /** Stops the node. Calls in progress fail with NO_CONNECTION. Idempotent. */
  close(): Promise<void>;
}

/** Connects an actor system of this process to others once `start` has been called. */
export function connectActors(system: ActorSystem, options: RemoteOptions): RemoteActors {
  return new ConnectedActors(system as LocalActorSystem, options);
}

class ConnectedActors implements RemoteActors {
  readonly counters = newCounters();
  readonly #system: LocalActorSystem;
  readonly #options: RemoteOptions;
  readonly #functions: Functions;
  #node: DistributionNode | undefined;
  #waiting: Waiting | undefined;
  #pids: PidTable | undefined;

  constructor(system: LocalActorSystem, options: RemoteOptions) {
    this.#system = system;
    this.#options = options;
    const { log, maxRunningFunctions = 1_000 } = options;
    const { counters } = this;
    this.#functions = new Functions({ clock: system.clock, log, counters, maxRunning: maxRunningFunctions });
  }

  get node(): DistributionNode | undefined {
    return this.#node;
  }

  get gauges(): RemoteActors['gauges'] {
    const calls = this.#waiting?.calls ?? 0;

    return { pids: this.#pids?.size ?? 0, calls, monitors: (this.#waiting?.size ?? 0) - calls };
  }

  start(options: Omit<NodeOptions, 'processes'>): Promise<DistributionNode> {
    return DistributionNode.start({ ...options, processes: (node) => this.#connect(node) });
  }

  #connect(node: DistributionNode): ProcessTable {
    const system = this.#system;
    const { log, maxCalls = 100_000, onRefused } = this.#options;
    const { counters } = this;
    const functions = this.#functions;
    const waiting = new Waiting(node, node.createPid(), maxCalls);
    const rex = node.createPid();
    functions.bind(node, rex);
    const pids = new PidTable({
      createPid: () => node.createPid(),
      isOwn: (pid: Pid) => pid.node === node.name && pid.creation === node.creation,
      monitor: (ref, listener) => void system.monitor(ref, listener),
      isAlive: (ref) => system.isAlive(ref),
      ended: (pid, { reason, error }) => node.exited(pid, exitReason(reason === 'crashed' ? reason : 'normal', error)),
    });
    const data = new PlainData({
      pidOf: (ref) => {
        if (system.find(ref)?.isForNodes === false) throw notSendable(noShapes(ref).message);
        return pids.pidOf(ref);
      },
      refOf: (pid) => pids.refOf(pid),
      named: (host, name) => new RemoteRef(host, name),
    });
    const border = new Border({ system, self: node.name, counters, log, onRefused });
    this.#node = node;
    this.#waiting = waiting;
    this.#pids = pids;
    system.router = new Outgoing({ system, node, waiting, data, border, counters, log });

    return new Incoming({ system, node, rex, waiting, pids, data, functions, border, counters, log });
  }

  remote(node: string, name: string, shapes: AnyShapes): AnyRef {
    return new RemoteRef(node, name, shapes);
  }

  registerFunction(name: FunctionName, run: NodeFunction, options: FunctionOptions = {}): void {
    this.#functions.register(name, run, options);
  }

  async close(): Promise<void> {
    await this.#node?.stop();
  }
}
