import { atom, Pid, type Term } from '@bloom/etf';
import { DistributionNode, noProcesses, type NodeOptions, type ProcessTable } from '@bloom/distribution';
import type { Log } from '@bloom/log';
import { NoConnection, NoProcess } from '../errors.js';
import type { Protocol } from '../protocol.js';
import { LocalRef, RemoteRef, type ActorRef, type AnyRef } from '../ref.js';
import type { ActorSystem, LocalActorSystem } from '../system.js';
import { newCounters, type RemoteCounters } from './counters.js';
import { Functions, type FunctionOptions, type NodeFunction } from './functions.js';
import { Incoming } from './incoming.js';
import { Outgoing } from './outgoing.js';
import { PidTable } from './pid-table.js';
import { PlainData } from './plain-data.js';
import { exitReason } from './reasons.js';
import { Waiting } from './waiting.js';

const DEFAULT_CALL_TIMEOUT_MS = 5_000;

export interface RemoteOptions {
  log: Log;
  /** Calls to other nodes waiting for their answer at once. Default 100,000. */
  maxCalls?: number;
  /** Functions of `registerFunction` running at once. Default 1,000. */
  maxRunningFunctions?: number;
}

/** A process of another node: by pid, or by its registered name there. */
export type RemoteProcess = Pid | { readonly name: string; readonly node: string } | AnyRef;

/** Erlang and our own actors on other nodes, for one actor system. */
export interface RemoteActors {
  /** Starts the node that speaks for this system. Throws as `DistributionNode.start`. */
  start(options: Omit<NodeOptions, 'processes'>): Promise<DistributionNode>;
  /** undefined before `start`. */
  readonly node: DistributionNode | undefined;
  /** The actor registered under that name on that node; need not be connected yet. */
  remote<P extends Protocol>(node: string, name: string): ActorRef<P>;
  /** What `rpc:call(Node, Module, Name, Args)` and `erpc` reach. There is nothing else they reach. */
  registerFunction(module: string, name: string, arity: number, run: NodeFunction, options?: FunctionOptions): void;

  /**
   * `gen_server:call(Target, Request)`, 5 s unless told.
   * @throws NoProcess, NoConnection, CallTimeout, CallCrashed, LinkFull, NotSendable, TooManyCalls
   */
  callTerm(target: RemoteProcess, request: Term, timeoutMs?: number): Promise<Term>;
  /** `gen_server:cast`. False when it was not sent. @throws NotSendable */
  castTerm(target: RemoteProcess, message: Term): boolean;
  /** `Target ! Message`. False when it was not sent. @throws NotSendable */
  sendTerm(target: RemoteProcess, message: Term): boolean;
  /**
   * `erpc:call(Node, Module, Name, Args)`, 5 s unless told.
   * @throws NoConnection, CallTimeout, RemoteFault (its `reason`), NotSendable, TooManyCalls
   */
  callFunction(
    node: string,
    fun: readonly [module: string, name: string],
    args: readonly Term[],
    timeoutMs?: number,
  ): Promise<Term>;

  /** Links an actor of this process with a process elsewhere: each ends with the other. @throws NoProcess */
  link(own: AnyRef, other: Pid): void;
  unlink(own: AnyRef, other: Pid): void;
  /** `exit(Target, Reason)`. False when it was not sent. */
  exit(target: Pid, reason: Term): boolean;
  /** The pid of an actor, as Erlang sees it. @throws NoProcess for one by name */
  pidOf(ref: AnyRef): Pid;
  refOf(pid: Pid): AnyRef;

  readonly counters: Readonly<RemoteCounters>;
  /** Living actors that other nodes know, and what is open. */
  readonly gauges: { readonly pids: number; readonly calls: number; readonly monitors: number };
  /** Stops the node; calls that wait fail with NoConnection. Idempotent. */
  close(): Promise<void>;
}

/** Connects an actor system of this process to others, as soon as `start` has been called. */
export function connectActors(system: ActorSystem, options: RemoteOptions): RemoteActors {
  return new ConnectedActors(system as LocalActorSystem, options);
}

interface Bound {
  readonly node: DistributionNode;
  readonly waiting: Waiting;
  readonly pids: PidTable;
  readonly outgoing: Outgoing;
  readonly incoming: ProcessTable;
}

class ConnectedActors implements RemoteActors {
  readonly counters = newCounters();
  readonly #system: LocalActorSystem;
  readonly #options: RemoteOptions;
  readonly #functions: Functions;
  #bound: Bound | undefined;

  constructor(system: LocalActorSystem, options: RemoteOptions) {
    this.#system = system;
    this.#options = options;
    const { log, maxRunningFunctions = 1_000 } = options;
    this.#functions = new Functions({
      clock: system.clock,
      log,
      counters: this.counters,
      maxRunning: maxRunningFunctions,
    });
  }

  get node(): DistributionNode | undefined {
    return this.#bound?.node;
  }

  get gauges(): RemoteActors['gauges'] {
    const { pids, waiting } = this.#bound ?? {};
    const calls = waiting?.calls ?? 0;

    return { pids: pids?.size ?? 0, calls, monitors: (waiting?.size ?? 0) - calls };
  }

  async start(options: Omit<NodeOptions, 'processes'>): Promise<DistributionNode> {
    const table = (): ProcessTable => this.#bound?.incoming ?? noProcesses;
    const node = await DistributionNode.start({
      ...options,
      processes: {
        whereIs: (target) => table().whereIs(target),
        deliver: (to, message, from, origin) => table().deliver(to, message, from, origin),
        down: (watcher, ref, target, reason) => table().down(watcher, ref, target, reason),
        exit: (to, from, reason, linked) => table().exit(to, from, reason, linked),
        spawn: (request, args, origin) => table().spawn?.(request, args, origin) ?? atom('notsup'),
        spawned: (to, ref, result) => table().spawned?.(to, ref, result),
      },
    });
    this.#bind(node);

    return node;
  }

  #bind(node: DistributionNode): void {
    const system = this.#system;
    const { log, maxCalls = 100_000 } = this.#options;
    const { counters } = this;
    const functions = this.#functions;
    const waiting = new Waiting(node, node.createPid(), maxCalls);
    const rex = node.createPid();
    functions.bind(node, rex);
    const pids = new PidTable({
      createPid: () => node.createPid(),
      isOwn: (pid) => pid.node === node.name && pid.creation === node.creation,
      monitor: (ref, listener) => void system.monitor(ref, listener),
      isAlive: (ref) => system.isAlive(ref),
      ended: (pid, { reason, error }) => node.exited(pid, exitReason(reason === 'crashed' ? reason : 'normal', error)),
    });
    const data = new PlainData({
      pidOf: (ref) => pids.pidOf(ref),
      refOf: (pid) => pids.refOf(pid),
      named: (host, name) => this.remote(host, name),
    });
    const outgoing = new Outgoing({ system, node, waiting, data, counters, log });
    const incoming = new Incoming({ system, node, rex, waiting, pids, data, functions, counters, log });
    this.#bound = { node, waiting, pids, outgoing, incoming };
    system.router = outgoing;
  }

  remote(node: string, name: string): AnyRef {
    return new RemoteRef(node, name);
  }

  registerFunction(
    module: string,
    name: string,
    arity: number,
    run: NodeFunction,
    options: FunctionOptions = {},
  ): void {
    this.#functions.register([module, name, arity], run, options);
  }

  async callTerm(target: RemoteProcess, request: Term, timeoutMs = DEFAULT_CALL_TIMEOUT_MS): Promise<Term> {
    const ref = remoteRef(target);

    return await this.#started(ref.node).outgoing.request(ref, request, timeoutMs);
  }

  castTerm(target: RemoteProcess, message: Term): boolean {
    return this.#bound?.outgoing.sendCast(remoteRef(target), message) ?? false;
  }

  sendTerm(target: RemoteProcess, message: Term): boolean {
    return this.#bound?.outgoing.send(remoteRef(target), message) ?? false;
  }

  async callFunction(
    node: string,
    fun: readonly [module: string, name: string],
    args: readonly Term[],
    timeoutMs = DEFAULT_CALL_TIMEOUT_MS,
  ): Promise<Term> {
    return await this.#started(node).outgoing.callFunction(node, fun, args, timeoutMs);
  }

  link(own: AnyRef, other: Pid): void {
    if (!this.#system.isAlive(own)) throw new NoProcess(own);
    this.#started(other.node).node.link(this.pidOf(own), other);
  }

  unlink(own: AnyRef, other: Pid): void {
    this.#bound?.node.unlink(this.pidOf(own), other);
  }

  exit(target: Pid, reason: Term): boolean {
    const bound = this.#bound;

    return bound?.node.exit(bound.waiting.pid, target, reason) === 'sent';
  }

  pidOf(ref: AnyRef): Pid {
    if (ref instanceof LocalRef) return this.#started('this node').pids.pidOf(ref);
    if (ref instanceof RemoteRef && ref.to instanceof Pid) return ref.to;
    throw new NoProcess(ref);
  }

  refOf(pid: Pid): AnyRef {
    return this.#started(pid.node).pids.refOf(pid);
  }

  async close(): Promise<void> {
    await this.#bound?.node.stop();
  }

  #started(node: string): Bound {
    if (this.#bound === undefined) throw new NoConnection('actors that were not connected', node);

    return this.#bound;
  }
}

function remoteRef(target: RemoteProcess): RemoteRef {
  if (target instanceof RemoteRef) return target;
  if (target instanceof Pid) return new RemoteRef(target.node, target);
  if ('name' in target) return new RemoteRef(target.node, target.name);
  throw new NoProcess(target);
}
