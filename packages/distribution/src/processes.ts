import type { Atom, Pid, Ref, Term } from '@bloom/etf';
import type { SpawnRequest } from './link/control.js';

/** A process by pid or by registered name. */
export type Target = Pid | string;

export interface SpawnAnswer {
  /** The new process. */
  readonly pid: Pid;
  /** Called once the answer has been queued, so that messages of the process come after it. */
  readonly run: () => void;
}

/**
 * The processes that a node represents. Called synchronously in the order of arrival; an exception is logged and has no
 * other effect. Pids of targets belong to this node with its current creation.
 */
export interface ProcessTable {
  /** Returns the live process with that pid or name. */
  whereIs(target: Target): Pid | undefined;
  /** Delivers a message from `node` to a pid, a registered name or an alias, or drops it. */
  deliver(to: Pid | string | Ref, message: Term, from: Pid | undefined, node: string): void;
  /** Reports the end of `target`, which `watcher` monitored. */
  down(watcher: Pid, ref: Ref, target: Pid | { readonly name: string; readonly node: string }, reason: Term): void;
  /** Delivers an exit signal: a link broke, or (`linked` false) another process called exit/2. */
  exit(to: Pid, from: Pid, reason: Term, linked: boolean): void;
  /** Starts a process for another node, or returns an atom to refuse. Default `notsup`. */
  spawn?(request: SpawnRequest, args: readonly Term[], node: string): SpawnAnswer | Atom;
  /** Receives the answer to our spawn request; an atom is a refusal. */
  spawned?(to: Pid, ref: Ref, result: Pid | Atom): void;
}
