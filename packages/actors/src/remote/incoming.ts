import { type Atom, atom, isAtom, isRecord, Pid, Ref, type Term, Tuple, tuple } from '@bloom/etf';
import {
  asGenCall,
  type DistributionNode,
  type Envelope,
  type ExitSignal,
  type GenCall,
  type Monitor,
  type ProcessTable,
  type SpawnAnswer,
  type SpawnRequest,
  type Target,
} from '@bloom/distribution';
import type { Log } from '@bloom/log';
import type { Cell } from '../cell/cell.js';
import { TermEnvelope, type Message, type Reply } from '../envelope.js';
import { ActorError, Exit, MailboxFull } from '../errors.js';
import type { LocalActorSystem } from '../system.js';
import type { Border } from './border.js';
import type { RemoteCounters } from './counters.js';
import { REX, type Functions } from './functions.js';
import type { PidTable } from './pid-table.js';
import type { PlainData } from './plain-data.js';
import { takeRequest } from './request-field.js';
import { faultText, isOrderly, reasonText } from './reasons.js';
import type { Waiting } from './waiting.js';

const OK = atom('ok');
const ERROR = atom('error');

export interface IncomingOptions {
  readonly system: LocalActorSystem;
  readonly node: DistributionNode;
  readonly rex: Pid;
  readonly waiting: Waiting;
  readonly pids: PidTable;
  readonly data: PlainData;
  readonly functions: Functions;
  readonly border: Border;
  readonly counters: RemoteCounters;
  readonly log: Log;
}

/** A call from another node, and the type of its message. */
interface Asked {
  readonly call: GenCall;
  readonly type: string;
}

/** Delivers messages from other nodes to the actors on this one. */
export class Incoming implements ProcessTable {
  readonly #options: IncomingOptions;

  constructor(options: IncomingOptions) {
    this.#options = options;
  }

  whereIs(target: Target): Pid | undefined {
    const { rex, waiting, pids, functions } = this.#options;
    if (target === REX) return rex;
    const cell = this.#cell(target);
    if (cell !== undefined) return pids.pidOf(cell.ref);
    if (typeof target === 'string') return undefined;
    if (isSame(target, waiting.pid)) return waiting.pid;

    return functions.process(target);
  }

  deliver({ to }: Envelope, message: Term, node: string): void {
    const { waiting, functions, counters } = this.#options;
    if (to instanceof Ref || (to instanceof Pid && isSame(to, waiting.pid))) {
      if (!waiting.answered(message, node)) counters.lateReplies++;
      return;
    }
    if (to === REX) {
      functions.rex(message, node);
      return;
    }
    const cell = this.#cell(to);
    if (cell === undefined) counters.deadLetters++;
    else this.#message(cell, message, node);
  }

  down({ ref }: Monitor, reason: Term): void {
    this.#options.waiting.down(ref, reason);
  }

  /**
   * Ends the actor unless the reason is `normal`, or delivers a message if the actor traps exits, as in Erlang. Only
   * `endable` actors end: pids can be guessed, and no other node may end a room or a service.
   */
  exit({ to, from, linked }: ExitSignal, reason: Term): void {
    const { border, counters, log } = this.#options;
    const cell = this.#cell(to);
    if (cell === undefined) return;

    const kill = !linked && isAtom(reason, 'kill');
    if (cell.behaviour.trapsExits === true && cell.behaviour.onTerm !== undefined && !kill) {
      const exit = new TermEnvelope({ kind: 'exit', term: reason, from, node: from.node });
      cell.receive(exit, { from: from.node, requestId: undefined });
      return;
    }
    if (isAtom(reason, 'normal')) return;
    if (cell.behaviour.endable !== true) {
      border.refuse(cell, from.node, 'it is not ended by exit signals');
      return;
    }
    counters.exits++;
    const text = reasonText(reason);
    log.warn('actor.exit_signal', { actor: cell.ref.path, node: from.node, linked, reason: text });
    const error = new Exit(kill ? atom('killed') : reason, `ended by an exit signal of ${from.node}: ${text}`);
    void cell.stop(isOrderly(reason) ? 'normal' : 'crashed', error);
  }

  spawn(request: SpawnRequest, args: readonly Term[], node: string): SpawnAnswer | Atom {
    return this.#options.functions.spawn(request, args, node);
  }

  #cell(target: Target): Cell | undefined {
    const { system, pids } = this.#options;
    if (typeof target === 'string') return system.find(target);
    const ref = pids.actor(target);

    return ref === undefined ? undefined : system.find(ref);
  }

  #message(cell: Cell, message: Term, node: string): void {
    const { border, counters, data } = this.#options;
    const call = asGenCall(message);
    if (call !== undefined) {
      counters.callsIn++;
      this.#call(cell, call, node);
      return;
    }
    counters.castsIn++;
    const isCast =
      message instanceof Tuple && message.elements.length === 2 && isAtom(message.elements[0], '$gen_cast');
    const term = isCast ? message.elements[1] : message;
    if (isMessage(cell, term)) {
      const request = takeRequest(term);
      const read = border.message(cell, data.toValue(term) as Message, node);
      if (!(read instanceof Error)) cell.receive(read, { from: node, ...request });
    } else if (cell.behaviour.onTerm === undefined) {
      counters.deadLetters++;
      border.refuse(cell, node, 'it does not accept terms');
    } else {
      const envelope = new TermEnvelope({ kind: isCast ? 'cast' : 'info', term, node });
      cell.receive(envelope, { from: node, requestId: undefined });
    }
  }

  #call(cell: Cell, call: GenCall, node: string): void {
    const { border, counters, data } = this.#options;
    const { request } = call;
    if (isMessage(cell, request)) {
      const origin = { from: node, ...takeRequest(request) };
      const read = border.message(cell, data.toValue(request) as Message, node);
      if (read instanceof Error) {
        this.#send(cell, call, errorTerm(read));
        return;
      }
      const reply = this.#reply(cell, { call, type: read.type }, (value) => tuple(OK, data.toTerm(value)));
      cell.receive(read, origin, reply);
    } else if (cell.behaviour.onTerm === undefined) {
      counters.deadLetters++;
      border.refuse(cell, node, 'it does not accept terms');
      this.#send(cell, call, tuple(ERROR, atom('unknown_message'), `${cell.ref.path} does not accept terms`));
    } else {
      const envelope = new TermEnvelope({ kind: 'call', term: request, from: call.from, node });
      const reply = this.#reply(cell, { call, type: envelope.type }, (value) => value as Term);
      cell.receive(envelope, { from: node, requestId: undefined }, reply);
    }
  }

  #reply(cell: Cell, { call, type }: Asked, toTerm: (value: unknown) => Term): Reply {
    return {
      resolve: (value) => {
        try {
          this.#options.node.reply(call, toTerm(value), this.#options.waiting.pid);
        } catch (error) {
          this.#options.counters.notSendable++;
          this.#options.log.error('actor.reply_not_sendable', { actor: cell.ref.path, messageType: type, error });
          this.#send(cell, call, errorTerm(error as Error));
        }
      },
      reject: (error) => this.#send(cell, call, errorTerm(error)),
    };
  }

  #send(cell: Cell, call: GenCall, reply: Term): void {
    try {
      this.#options.node.reply(call, reply, this.#options.waiting.pid);
    } catch (error) {
      this.#options.log.error('actor.reply_not_sendable', { actor: cell.ref.path, error });
    }
  }
}

/** True for one of our own messages: a map with a `type` that the actor knows, or any type if it accepts no terms. */
function isMessage(cell: Cell, term: Term): term is { [key: string]: Term } {
  if (!isRecord(term) || !Object.hasOwn(term, 'type')) return false;
  const { type } = term;

  return typeof type === 'string' && (cell.behaviour.onTerm === undefined || cell.understands(type));
}

/** Returns `{error, Code, Detail}`, the form in which an error of a call travels. */
function errorTerm(error: Error): Term {
  if (error instanceof MailboxFull) return tuple(ERROR, atom('mailbox_full'), error.limit);
  const code = error instanceof ActorError ? error.code : 'CRASHED';
  if (code === 'NO_PROCESS' || code === 'UNKNOWN_MESSAGE' || code === 'BAD_MESSAGE')
    return tuple(ERROR, atom(code.toLowerCase()), error.message);

  const fault = error instanceof ActorError && code === 'CRASHED' ? error.cause : error;

  return tuple(ERROR, atom('crashed'), faultText(fault));
}

function isSame(a: Pid, b: Pid): boolean {
  return a.id === b.id && a.serial === b.serial;
}
