import { type Atom, atom, isAtom, Pid, Ref, type Term, Tuple, tuple } from '@bloom/etf';
import { asGenCall, type GenCall } from './link/gen-call.js';
import { MESH_NAME } from './membership/mesh.js';
import type { Envelope, ExitSignal, Monitor, ProcessTable, SpawnAnswer, SpawnRequest, Target } from './processes.js';

const NET_KERNEL = 'net_kernel';

export interface SystemServices {
  readonly self: string;
  /** Pid of the services. */
  readonly pid: Pid;
  /** True when Erlang's `nodes()` lists this node; Erlang's `global` then expects an answer. */
  readonly visible: boolean;
  reply(call: GenCall, reply: Term): void;
  sendName(node: string, name: string, message: Term): void;
  mesh(node: string, message: Term): void;
  /** Receives the answer to a call made by the services themselves. */
  answered(ref: Ref, reply: Term): void;
}

/**
 * Answers what every node must answer, whatever runs on it: `net_kernel` for pings, membership, and in visible mode the
 * greeting of `global`. Everything else goes to the processes of the application.
 */
export class SystemTable implements ProcessTable {
  readonly #services: SystemServices;
  readonly #processes: ProcessTable | undefined;

  constructor(services: SystemServices, processes: ProcessTable | undefined) {
    this.#services = services;
    this.#processes = processes;
  }

  whereIs(target: Target): Pid | undefined {
    if (target === NET_KERNEL) return this.#services.pid;
    if (typeof target !== 'string' && this.#isOwn(target)) return this.#services.pid;
    return this.#processes?.whereIs(target);
  }

  deliver(envelope: Envelope, message: Term, node: string): void {
    const { to } = envelope;
    if (to === MESH_NAME) this.#services.mesh(node, message);
    else if (to === NET_KERNEL) this.#netKernel(message);
    else if (to === 'global_name_server' && this.#services.visible) this.#global(message, node);
    else if (to instanceof Pid && this.#isOwn(to)) this.#reply(message);
    else this.#processes?.deliver(envelope, message, node);
  }

  down(monitor: Monitor, reason: Term): void {
    this.#processes?.down(monitor, reason);
  }

  exit(signal: ExitSignal, reason: Term): void {
    if (!this.#isOwn(signal.to)) this.#processes?.exit(signal, reason);
  }

  spawn(request: SpawnRequest, args: readonly Term[], node: string): SpawnAnswer | Atom {
    return this.#processes?.spawn?.(request, args, node) ?? atom('notsup');
  }

  spawned(to: Pid, ref: Ref, result: Pid | Atom): void {
    this.#processes?.spawned?.(to, ref, result);
  }

  #isOwn(pid: Pid): boolean {
    const own = this.#services.pid;
    return pid.id === own.id && pid.serial === own.serial;
  }

  /** Answers {is_auth, Node} of `net_adm:ping` with `yes`. */
  #netKernel(message: Term): void {
    const call = asGenCall(message);
    if (call === undefined || !(call.request instanceof Tuple)) return;
    if (isAtom(call.request.elements[0], 'is_auth')) this.#services.reply(call, atom('yes'));
  }

  #reply(message: Term): void {
    if (!(message instanceof Tuple) || message.elements.length !== 2) return;
    const [tag, reply] = message.elements;
    if (tag instanceof Ref) this.#services.answered(tag, reply);
  }

  /** Answers init_connect; otherwise `global:sync()` on the other side would wait forever. */
  #global(message: Term, node: string): void {
    if (!(message instanceof Tuple) || !isAtom(message.elements[0], '$gen_cast')) return;
    const request = message.elements[1];
    if (!(request instanceof Tuple) || !isAtom(request.elements[0], 'init_connect')) return;
    this.#services.sendName(
      node,
      'global_name_server',
      tuple(atom('$gen_cast'), tuple(atom('in_sync'), atom(this.#services.self), true)),
    );
  }
}
