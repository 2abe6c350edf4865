import type { Atom, Pid, Ref, Term } from '@bloom/etf';

/** A process by pid or by registered name. */
export type Target = Pid | string;

export interface SpawnRequest {
  /** Id of the request, and reference of the monitor if one is requested. */
  readonly ref: Ref;
  readonly from: Pid;
  readonly module: string;
  readonly fun: string;
  readonly arity: number;
  readonly monitor: boolean;
  readonly link: boolean;
}

export interface SpawnAnswer {
  /** The new process. */
  readonly pid: Pid;
  /** Called once the answer has been queued, so that messages of the process come after it. */
  readonly run: () => void;
}

export interface Envelope {
  readonly to: Pid | string | Ref;
  readonly from: Pid | undefined;
}

export type Watched = Pid | { readonly name: string; readonly node: string };

export interface Monitor {
  readonly watcher: Pid;
  readonly ref: Ref;
  readonly target: Watched;
}

/** A link broke, or (`linked` false) another process called exit/2. */
export interface ExitSignal {
  readonly to: Pid;
  readonly from: Pid;
  readonly linked: boolean;
}

/**
 * The processes that a node represents. Called synchronously in the order of arrival; an exception is logged and has no
 * other effect. Pids of targets belong to this node with its current creation.
 */
export interface ProcessTable {
  /** Returns the live process with that pid or name. */
  whereIs(target: Target): Pid | undefined;
  /** Delivers a message from `node` to a pid, a registered name or an alias, or drops it. */
  deliver(envelope: Envelope, message: Term, node: string): void;
  /** Reports the end of a process that a process of this node monitored. */
  down(monitor: Monitor, reason: Term): void;
  exit(signal: ExitSignal, reason: Term): void;
  /** Starts a process for another node, or returns an atom to refuse. Default `notsup`. */
  spawn?(request: SpawnRequest, args: readonly Term[], node: string): SpawnAnswer | Atom;
  /** Receives the answer to our spawn request; an atom is a refusal. */
  spawned?(to: Pid, ref: Ref, result: Pid | Atom): void;
}
