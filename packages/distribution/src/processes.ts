import type { Atom, Pid, Ref, Term } from '@bloom/etf';
import type { SpawnRequest } from './link/control.js';

/** A process by pid, or by registered name. */
export type Target = Pid | string;

export interface SpawnAnswer {
  /** The new process. */
  readonly pid: Pid;
  /** Called after the answer is on its way: what the process does may then be sent, too. */
  readonly run: () => void;
}

/**
 * What a node needs of the processes it speaks for. Called synchronously in the order of arrival; an exception is
 * logged and has no other effect. Pids handed in belong to this node, with its present creation.
 */
export interface ProcessTable {
  /** The live process of that pid or name. */
  whereIs(target: Target): Pid | undefined;
  /** A message to a pid, a registered name or an alias; one without a receiver is dropped. `node` is where it came from. */
  deliver(to: Pid | string | Ref, message: Term, from: Pid | undefined, node: string): void;
  /** What `watcher` monitored is gone. `target` is what it monitored; names come with their node. */
  down(watcher: Pid, ref: Ref, target: Pid | { readonly name: string; readonly node: string }, reason: Term): void;
  /** An exit signal: a link broke, or (`linked` false) another process called exit/2. */
  exit(to: Pid, from: Pid, reason: Term, linked: boolean): void;
  /** Another node wants a process here. An atom is the refusal; default `notsup`. */
  spawn?(request: SpawnRequest, args: readonly Term[], node: string): SpawnAnswer | Atom;
  /** The answer to a spawn request of ours; an atom is the refusal. */
  spawned?(to: Pid, ref: Ref, result: Pid | Atom): void;
}
