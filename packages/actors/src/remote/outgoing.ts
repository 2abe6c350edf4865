import { DistributionError, type DistributionNode, type SendKind } from '@bloom/distribution';
import { Atom, atom, EtfError, ImproperList, isAtom, type Pid, type Ref, type Term, Tuple, tuple } from '@bloom/etf';
import type { Log } from '@bloom/log';
import type { Down } from '../behaviour.js';
import { OUTSIDE, type Message, type RequestOf } from '../envelope.js';
import {
  ActorError,
  callCrashed,
  callTimeout,
  MailboxFull,
  noConnection,
  noProcess,
  noShapes,
  notSendable,
  RemoteFault,
  unknownMessage,
} from '../errors.js';
import type { RemoteRef } from '../ref.js';
import type { LocalActorSystem, RemoteCallOptions, Router } from '../system.js';
import type { Border } from './border.js';
import type { RemoteCounters } from './counters.js';
import type { PlainData } from './plain-data.js';
import { downOf, reasonText } from './reasons.js';
import { withRequest } from './request-field.js';
import type { Waiter, Waiting } from './waiting.js';

const GEN_CALL = atom('$gen_call');
const GEN_CAST = atom('$gen_cast');
const ALIAS = [atom('alias')];
const SHUTDOWN = atom('shutdown');

interface Asked {
  readonly target: RemoteRef;
  readonly what: string;
  readonly timeoutMs: number;
}

interface Settle {
  resolve(value: Term): void;
  reject(error: unknown): void;
}

type Question = Omit<Waiter, 'node'> & { readonly begin: (ref: Ref) => void };

export interface OutgoingOptions {
  readonly system: LocalActorSystem;
  readonly node: DistributionNode;
  readonly waiting: Waiting;
  readonly data: PlainData;
  readonly border: Border;
  readonly counters: RemoteCounters;
  readonly log: Log;
}

/** Sends to actors and processes on other nodes. */
export class Outgoing implements Router {
  readonly #options: OutgoingOptions;

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  cast(target: RemoteRef, message: Message, request: RequestOf): boolean {
    const { system, counters, log } = this.#options;
    if (this.#isHere(target)) {
      return typeof target.to === 'string' && system.send(target.to, message, { ...request, from: OUTSIDE.from });
    }

    counters.castsOut++;
    try {
      return this.#send(target, tuple(GEN_CAST, this.#term(target, message, request)), 'one-way');
    } catch (error) {
      counters.notSendable++;
      log.error('actor.not_sendable', { target: target.path, messageType: message.type, error });
      return false;
    }
  }

  async call(target: RemoteRef, message: Message, options: RemoteCallOptions): Promise<unknown> {
    const { system, counters } = this.#options;
    const { timeoutMs } = options;
    if (this.#isHere(target)) {
      if (typeof target.to !== 'string') throw noProcess(target);
      return await system.ask(target.to, message, { ...options, from: OUTSIDE.from });
    }
    if (target.shapes === undefined) throw noShapes(target);
    let request: Term;
    try {
      request = this.#term(target, message, options);
    } catch (error) {
      counters.notSendable++;
      throw error;
    }

    const asked = { target, timeoutMs, what: message.type };

    return this.#result(target, message.type, await this.#request(asked, request));
  }

  /** Adds the request if the target is a Bloom node of any version. Other nodes would not expect it. */
  #term(target: RemoteRef, message: Message, request: RequestOf): Term {
    const { node, data } = this.#options;
    const kind = request.requestId === undefined ? 'foreign' : node.kindOf(target.node);

    return data.toTerm(kind === 'member' || kind === 'tool' ? withRequest(message, request) : message);
  }

  monitor(target: RemoteRef, report: (down: Down) => void): () => void {
    const { system, node, waiting } = this.#options;
    if (this.#isHere(target)) return system.monitor(system.find(String(target.to))?.ref ?? NO_ACTOR, report);

    // If the connection cannot take the request, it ends immediately: report only after this function has returned.
    let asking = true;
    const ref = waiting.open({
      node: target.node,
      down: (reason) => {
        const tell = (): void => report({ ref: target, ...downOf(reason, target.node) });
        if (asking) queueMicrotask(tell);
        else tell();
      },
    });
    node.monitorAs(ref, waiting.pid, watched(target));
    asking = false;

    return () => void waiting.close(ref);
  }

  isAlive(target: RemoteRef): boolean {
    const { system, node } = this.#options;
    if (this.#isHere(target)) return typeof target.to === 'string' && system.find(target.to) !== undefined;

    return node.isConnected(target.node);
  }

  /** Sends an exit signal with reason `shutdown`. Resolves when the actor or its node is gone. */
  async stop(target: RemoteRef): Promise<void> {
    const { node, waiting, log, system } = this.#options;
    const { to } = target;
    if (this.#isHere(target)) {
      const here = typeof to === 'string' ? system.find(to) : undefined;
      await here?.stop();
    } else if (typeof to === 'string') log.warn('actor.stop_by_name', { target: target.path });
    else {
      await new Promise<void>((resolve) => {
        this.monitor(target, () => resolve());
        node.exit(waiting.pid, to, SHUTDOWN);
      });
    }
  }

  /**
   * Makes a `gen_server:call`.
   * @throws ActorError NO_PROCESS, NO_CONNECTION, TIMEOUT, CRASHED, LINK_FULL, NOT_SENDABLE, TOO_MANY_CALLS
   */
  #request(asked: Asked, request: Term): Promise<Term> {
    const { node, waiting } = this.#options;
    const { target, what } = asked;

    return this.#ask(asked, ({ resolve, reject }) => ({
      answered: resolve,
      down: (reason) => reject(this.#downError(target, what, reason)),
      // One reference serves as monitor, alias and tag, as in gen.erl.
      begin: (ref) => {
        node.monitorAs(ref, waiting.pid, watched(target));
        const from = tuple(waiting.pid, new ImproperList(ALIAS, ref));
        if (!this.#send(target, tuple(GEN_CALL, from, request), 'query')) throw linkFull(target);
      },
    }));
  }

  /**
   * Sends any term. Returns false if it was not queued.
   * @throws ActorError NOT_SENDABLE
   */
  #send(target: RemoteRef, message: Term, kind: SendKind): boolean {
    const { node, waiting, counters } = this.#options;
    const to = typeof target.to === 'string' ? { node: target.node, name: target.to } : target.to;
    try {
      const result = node.send(to, message, { from: waiting.pid, kind });
      if (result === 'no_connection') counters.noConnection++;
      if (result === 'overflow') counters.overflowed++;
      return result === 'sent';
    } catch (error) {
      throw refused(error);
    }
  }

  /** Waits for one answer. Every outcome settles the promise once and leaves nothing open. */
  #ask({ target, what, timeoutMs }: Asked, how: (settle: Settle) => Question): Promise<Term> {
    const { node, waiting, counters, system } = this.#options;
    if (!node.isConnected(target.node)) {
      counters.noConnection++;
      return Promise.reject(noConnection(target, target.node));
    }

    counters.callsOut++;
    return new Promise<Term>((done, fail) => {
      let timer: unknown;
      const { begin, ...waiter } = how({
        resolve: (value) => {
          system.clock.clearTimeout(timer);
          done(value);
        },
        reject: (error) => {
          system.clock.clearTimeout(timer);
          fail(error);
        },
      });
      const ref = waiting.open({ node: target.node, ...waiter });
      const late = (): void => {
        if (!waiting.close(ref)) return;
        counters.timeouts++;
        fail(callTimeout(target, what, timeoutMs));
      };
      // After the event loop has stalled, timers run before sockets are read: the answer may already be there.
      timer = system.clock.setTimeout(() => setImmediate(late), timeoutMs);
      try {
        begin(ref);
      } catch (error) {
        system.clock.clearTimeout(timer);
        waiting.close(ref);
        const reported = refused(error);
        if (reported !== error) counters.notSendable++;
        fail(reported);
      }
    });
  }

  #isHere(target: RemoteRef): boolean {
    return target.node === this.#options.node.name;
  }

  /** Reads `{ok, Value}` or `{error, Code, Detail}`, the answers sent by `Incoming`. */
  #result(target: RemoteRef, what: string, reply: Term): unknown {
    const [word, a, b] = reply instanceof Tuple ? reply.elements : [];
    if (isAtom(word, 'ok')) return this.#options.border.answer(target, what, this.#options.data.toValue(a));
    const code = isAtom(word, 'error') && a instanceof Atom ? a.name : undefined;
    if (code === 'no_process') throw noProcess(target);
    if (code === 'unknown_message') throw unknownMessage(target, what);
    if (code === 'bad_message') throw new ActorError('BAD_MESSAGE', reasonText(b));
    if (code === 'mailbox_full') throw new MailboxFull(target, Number(b));
    throw callCrashed(target, what, new RemoteFault(target.node, reply, reasonText(code === undefined ? reply : b)));
  }

  #downError(target: RemoteRef, what: string, reason: Term): Error {
    const down = downOf(reason, target.node);
    if (down.reason === 'noconnection' || isNodedown(reason)) {
      this.#options.counters.noConnection++;
      return noConnection(target, target.node);
    }
    if (down.reason === 'crashed') return callCrashed(target, what, down.error);
    return noProcess(target);
  }
}

/** A ref that belongs to no actor. */
const NO_ACTOR = { path: '', key: '' };

function watched({ node, to }: RemoteRef): Pid | { name: string; node: string } {
  return typeof to === 'string' ? { name: to, node } : to;
}

function isNodedown(reason: Term): boolean {
  return reason instanceof Tuple && isAtom(reason.elements[0], 'nodedown');
}

/** Converts an error of the wire into one of this package. */
function refused(error: unknown): unknown {
  const tooBig = error instanceof DistributionError && error.code === 'FRAME_TOO_BIG';
  if (!tooBig && !(error instanceof EtfError)) return error;
  return notSendable(error.message, error);
}

function linkFull(target: RemoteRef): ActorError {
  const message = `the connection to ${target.node} cannot take more requests now, such as one to ${target.path}`;

  return new ActorError('LINK_FULL', message);
}
