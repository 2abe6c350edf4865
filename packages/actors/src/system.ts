import type { Log } from '@bloom/log';
import { systemClock, type Clock } from '@bloom/time';
import type { Behaviour, Down, SpawnOptions } from './behaviour.js';
import { Cell } from './cell/cell.js';
import { OUTSIDE, type Message, type Origin, type RequestOf } from './envelope.js';
import type { AskOptions, CellHost, NewActor } from './cell/host.js';
import { detailsOf, infoOf, inspectedOf, messagesOf } from './cell/info.js';
import { NactRoot } from './cell/nact-actor.js';
import { ActorError, callTimeout, nameTaken, noConnection, noProcess, noShapes } from './errors.js';
import type {
  ActorDetails,
  ActorInfo,
  Hop,
  Inspected,
  Step,
  Trace,
  TraceEnd,
  TraceEvent,
  TraceOptions,
  WaitingMessage,
} from './observation/inspection.js';
import { Observer } from './observation/observer.js';
import type { MessageOf, Protocol, ReplyOf } from './protocol.js';
import { LocalRef, pathSegment, RemoteRef, type ActorRef, type AnyRef } from './ref.js';
import { Suspensions } from './observation/suspensions.js';

const DEFAULT_CALL_TIMEOUT_MS = 5_000;

export interface ActorSystemOptions {
  log: Log;
  clock?: Clock;
}

export interface ListOptions {
  /** Maximum number of lines. */
  limit: number;
  match?: (path: string) => boolean;
}

/** Sends messages to actors. */
export interface Sender {
  /**
   * Sends without waiting. Returns false if the message was certainly not accepted: the actor does not exist or its
   * mailbox is full; for another node, the connection is missing or full, or the message cannot travel.
   */
  cast<P extends Protocol>(target: ActorRef<P> | string, message: MessageOf<P>): boolean;
  /**
   * Sends and waits for the reply. Default time limit 5 s.
   * @throws ActorError NO_PROCESS, TIMEOUT, CRASHED, MAILBOX_FULL, UNKNOWN_MESSAGE; to another node also NO_CONNECTION,
   *   LINK_FULL, NOT_SENDABLE, TOO_MANY_CALLS
   */
  call<P extends Protocol, K extends keyof P & string>(
    target: ActorRef<P> | string,
    message: MessageOf<P, K>,
    timeoutMs?: number,
  ): Promise<ReplyOf<P, K>>;
}

export interface ActorSystem extends Sender {
  /** Starts a top-level actor. Throws what its `init` throws. */
  spawn<P extends Protocol, S>(behaviour: Behaviour<P, S>, options?: SpawnOptions<P>): ActorRef<P>;
  /**
   * Sends on behalf of a request: everything that these messages cause, including on other nodes, carries its id.
   * `face`, such as `http`, is shown as their sender.
   */
  forRequest(requestId: string, face?: string): Sender;
  /**
   * Calls the listener once when the target ends, or immediately if it has. Returns the function that ends the watch.
   */
  monitor(target: AnyRef, listener: (down: Down) => void): () => void;
  /**
   * @throws ActorError NAME_TAKEN when a living actor has the name, NO_PROCESS when the actor has ended, NO_SHAPES when
   *   it declares no messages from other nodes
   */
  register(name: string, ref: AnyRef): void;
  unregister(name: string): void;
  whereis(name: string): AnyRef | undefined;
  /** Returns the registered names whose actor has crashed, or is permanent and pausing between restarts. */
  failedServices(): string[];
  /** True for a living actor. An actor on another node counts as alive while its node is connected. */
  isAlive(ref: AnyRef): boolean;
  /** Ends an actor and its children after its current message. The actor itself must not await it. */
  stop(ref: AnyRef): Promise<void>;
  list(options: ListOptions): ActorInfo[];
  /** Number of messages in the fullest mailbox. */
  longestQueue(): number;
  info(ref: AnyRef): ActorInfo | undefined;
  details(ref: AnyRef): ActorDetails | undefined;
  /** Returns the living actor at this path. */
  at(path: string): AnyRef | undefined;
  /** Returns the messages in its mailbox, oldest first. */
  waiting(ref: AnyRef, limit: number): WaitingMessage[];
  /** Returns the state that an actor's behaviour shows, bypassing its mailbox. */
  inspect(ref: AnyRef): Inspected;
  /** Reports messages as they pass, at no cost to actors that are not traced. A listener that throws ends its trace. */
  trace(options: TraceOptions, listener: (event: TraceEvent) => void, onEnd?: (end: TraceEnd) => void): Trace;
  /** Stops an actor from handling messages for `forMs`, or until `resume`. Returns false if the actor is gone. */
  suspend(ref: AnyRef, forMs?: number): boolean;
  resume(ref: AnyRef): boolean;
  /** Fails the actor as if its handler had thrown, so that supervision acts. Returns false if the actor is gone. */
  kill(ref: AnyRef, reason: string): boolean;
  /** Returns this request's steps among the last 10,000 of all requests, oldest first. */
  hops(requestId: string): Hop[];
  /** Records a step of a request other than a message. */
  note(requestId: string, step: Step): void;
  readonly size: number;
  /** Messages to actors that did not exist. */
  readonly deadLetters: number;
  /** Resolves when no actor has work left, so that tests never sleep. */
  idle(): Promise<void>;
  /** Ends every actor, youngest top-level one first. Idempotent. */
  close(): Promise<void>;
}

/** Opens a system without actors. It runs nothing until the first `spawn`, and `close` ends what was spawned. */
export function openActorSystem(options: ActorSystemOptions): ActorSystem {
  return new LocalActorSystem(options);
}

export interface RemoteCallOptions extends RequestOf {
  readonly timeoutMs: number;
}

/** Delivers messages to actors on other nodes. */
export interface Router {
  cast(target: RemoteRef, message: Message, request: RequestOf): boolean;
  call(target: RemoteRef, message: Message, options: RemoteCallOptions): Promise<unknown>;
  /** Reports at most once. Returns the function that ends the watch. */
  monitor(target: RemoteRef, report: (down: Down) => void): () => void;
  isAlive(target: RemoteRef): boolean;
  stop(target: RemoteRef): Promise<void>;
}

/** The router of a system without other nodes. */
const nowhere: Router = {
  cast: () => false,
  call: (target) => Promise.reject(noConnection(target, target.node)),
  monitor: (target, report) => {
    queueMicrotask(() => report({ ref: target, reason: 'noconnection' }));
    return () => {};
  },
  isAlive: () => false,
  stop: () => Promise.resolve(),
};

export class LocalActorSystem implements ActorSystem, CellHost {
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  deadLetters = 0;
  router: Router = nowhere;

  readonly #cells = new Map<string, Cell>();
  readonly #nact = new NactRoot<Cell>();
  /** Keyed by the parent's key and the actor's name. An actor that is ending makes room for another of its name. */
  readonly #siblings = new Map<string, Cell>();
  readonly #names = new Map<string, Cell>();
  /** Registered names of actors that have crashed. */
  readonly #crashed = new Set<string>();
  readonly #suspensions: Suspensions;
  #serial = 0;
  #active = 0;
  #closed: Promise<void> | undefined;

  constructor({ log, clock = systemClock }: ActorSystemOptions) {
    this.log = log;
    this.clock = clock;
    this.#suspensions = new Suspensions(clock);
    this.observer = new Observer(clock, () => {
      for (const cell of this.#cells.values()) cell.activity.tracer = this.observer.tracing.of(cell.ref.path);
    });
  }

  get size(): number {
    return this.#cells.size;
  }

  spawn<P extends Protocol, S>(behaviour: Behaviour<P, S>, options: SpawnOptions<P> = {}): ActorRef<P> {
    return this.#spawn(undefined, { behaviour, options });
  }

  spawnChild(parent: AnyRef, child: NewActor, requestId: string | undefined): AnyRef {
    const cell = this.find(parent);
    if (cell === undefined && this.#closed === undefined) throw noProcess(parent);

    return this.#spawn(cell, child, requestId);
  }

  #spawn(parent: Cell | undefined, { behaviour, options }: NewActor, requestId?: string): AnyRef {
    if (this.#closed !== undefined)
      throw new ActorError('SYSTEM_STOPPED', 'the actor system has stopped and cannot start actors');

    const serial = this.#serial++;
    const own = pathSegment(options.name ?? `${behaviour.kind}-${serial}`);
    const name = options.folder === undefined ? own : `${pathSegment(options.folder)}/${own}`;
    const path = `${parent?.ref.path ?? ''}/${name}`;
    const ref: AnyRef = new LocalRef(path, `${path}#${serial}`);
    const sibling = siblingKey(ref, parent);
    const holder = this.#siblings.get(sibling);
    if (holder !== undefined && holder.ending === undefined) throw nameTaken(path);

    const nact = { parent: parent ?? this.#nact, nactName: String(serial) };
    const cell = new Cell({ host: this, ref, ...nact, behaviour, options });
    this.#siblings.set(sibling, cell);
    this.#cells.set(ref.key, cell);
    try {
      cell.start(requestId);
    } catch (error) {
      // `onStop` must not run on a state that was never created.
      cell.discard();
      throw error;
    }

    return ref;
  }

  forRequest(requestId: string, face = OUTSIDE.from): Sender {
    const origin: Origin = { from: face, requestId };

    return {
      cast: (target, message) => this.send(target, message as Message, origin),
      call: (target, message, timeoutMs) => this.ask(target, message as Message, { from: face, requestId, timeoutMs }),
    };
  }

  cast(target: AnyRef | string, message: Message): boolean {
    return this.send(target, message, OUTSIDE);
  }

  call(target: AnyRef | string, message: Message, timeoutMs?: number): Promise<never> {
    // Spreading the origin instead makes a whole call and its answer 1.5 times as expensive.
    return this.ask(target, message, { from: OUTSIDE.from, requestId: undefined, timeoutMs });
  }

  send(target: AnyRef | string, message: Message, origin: Origin): boolean {
    if (target instanceof RemoteRef) return this.router.cast(target, message, origin);
    const cell = this.find(target);
    if (cell === undefined) {
      this.deadLetters++;
      return false;
    }

    return cell.inbox.receive(message, origin);
  }

  ask(target: AnyRef | string, message: Message, options: AskOptions): Promise<never> {
    const { timeoutMs = DEFAULT_CALL_TIMEOUT_MS } = options;
    if (target instanceof RemoteRef) {
      const { requestId, isOmitted } = options;
      return this.router.call(target, message, { timeoutMs, requestId, isOmitted }) as Promise<never>;
    }
    const cell = this.find(target);
    if (cell === undefined) {
      this.deadLetters++;
      return Promise.reject(noProcess(target));
    }

    return new Promise<never>((resolve, reject) => {
      const timer = this.clock.setTimeout(() => reject(callTimeout(target, message.type, timeoutMs)), timeoutMs);
      cell.inbox.receive(message, options, {
        resolve: (value) => {
          this.clock.clearTimeout(timer);
          resolve(value as never);
        },
        reject: (error) => {
          this.clock.clearTimeout(timer);
          reject(error);
        },
      });
    });
  }

  monitor(target: AnyRef, listener: (down: Down) => void): () => void {
    return this.watch(target, listener, OUTSIDE.from);
  }

  watch(target: AnyRef, listener: (down: Down) => void, by: string): () => void {
    let watching = true;
    const once = (down: Down): void => {
      if (!watching) return;
      watching = false;
      try {
        listener(down);
      } catch (error) {
        this.log.error('actor.monitor_failed', { actor: target.path, error });
      }
    };
    if (target instanceof RemoteRef) {
      const demonitor = this.router.monitor(target, once);

      return () => {
        watching = false;
        demonitor();
      };
    }
    const cell = this.#cells.get(target.key);
    if (cell === undefined) queueMicrotask(() => once({ ref: target, reason: 'noprocess' }));
    else cell.ties.watchers.set(once, by);

    return () => {
      watching = false;
      cell?.ties.watchers.delete(once);
    };
  }

  register(name: string, ref: AnyRef): void {
    const cell = this.find(ref);
    if (cell === undefined) throw noProcess(ref);
    if (!cell.isForNodes) throw noShapes(ref);
    const holder = this.#names.get(name);
    if (holder !== undefined && holder !== cell && holder.ending === undefined) throw nameTaken(`the name ${name}`);
    this.#names.set(name, cell);
    this.#crashed.delete(name);
    cell.ties.names.add(name);
  }

  unregister(name: string): void {
    this.#names.get(name)?.ties.names.delete(name);
    this.#names.delete(name);
    this.#crashed.delete(name);
  }

  whereis(name: string): AnyRef | undefined {
    return this.find(name)?.ref;
  }

  failedServices(): string[] {
    const pausing = [...this.#names].filter(([, cell]) => cell.isPausing).map(([name]) => name);

    return [...this.#crashed, ...pausing].toSorted();
  }

  isAlive(ref: AnyRef): boolean {
    return ref instanceof RemoteRef ? this.router.isAlive(ref) : this.find(ref) !== undefined;
  }

  async stop(ref: AnyRef): Promise<void> {
    await (ref instanceof RemoteRef ? this.router.stop(ref) : this.#cells.get(ref.key)?.stop());
  }

  list({ limit, match }: ListOptions): ActorInfo[] {
    const lines: ActorInfo[] = [];
    for (const cell of this.#cells.values()) {
      if (lines.length >= limit) break;
      if (match === undefined || match(cell.ref.path)) lines.push(infoOf(cell, this.observer));
    }

    return lines;
  }

  longestQueue(): number {
    let longest = 0;
    for (const { turns } of this.#cells.values()) longest = Math.max(longest, turns.mailbox.size);

    return longest;
  }

  info(ref: AnyRef): ActorInfo | undefined {
    const cell = this.#cells.get(ref.key);

    return cell === undefined ? undefined : infoOf(cell, this.observer);
  }

  details(ref: AnyRef): ActorDetails | undefined {
    const cell = this.#cells.get(ref.key);
    if (cell === undefined) return undefined;

    return detailsOf(cell, { observer: this.observer, suspendedUntil: this.#suspensions.until(ref) });
  }

  at(path: string): AnyRef | undefined {
    for (const { ref, ending } of this.#cells.values()) if (ref.path === path && ending === undefined) return ref;

    return undefined;
  }

  waiting(ref: AnyRef, limit: number): WaitingMessage[] {
    const cell = this.#cells.get(ref.key);

    return cell === undefined ? [] : messagesOf(cell, { observer: this.observer, limit });
  }

  inspect(ref: AnyRef): Inspected {
    return inspectedOf(this.find(ref));
  }

  trace(options: TraceOptions, listener: (event: TraceEvent) => void, onEnd?: (end: TraceEnd) => void): Trace {
    return this.observer.tracing.start(options, listener, onEnd);
  }

  suspend(ref: AnyRef, forMs?: number): boolean {
    const cell = this.find(ref);
    if (cell === undefined) return false;
    cell.turns.suspend();
    this.#suspensions.set(ref, forMs, () => cell.turns.resume());

    return true;
  }

  resume(ref: AnyRef): boolean {
    const cell = this.find(ref);
    cell?.turns.resume();
    this.#suspensions.clear(ref);

    return cell !== undefined;
  }

  kill(ref: AnyRef, reason: string): boolean {
    const cell = this.find(ref);
    cell?.kill(new ActorError('KILLED', `${ref.path} was killed by an operator: ${reason}`));

    return cell !== undefined;
  }

  hops(requestId: string): Hop[] {
    return this.observer.hops.of(requestId);
  }

  note(requestId: string, step: Step): void {
    this.observer.note(requestId, step);
  }

  async idle(): Promise<void> {
    // Promises between actors settle within a turn: after three quiet turns in a row, no work is left.
    for (let quiet = 0; quiet < 3; quiet = this.#active === 0 ? quiet + 1 : 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();

    return this.#closed;
  }

  active(change: 1 | -1): void {
    this.#active += change;
  }

  gone(ref: AnyRef): void {
    this.#suspensions.clear(ref);
    const cell = this.#cells.get(ref.key);
    if (cell === undefined) return;
    this.#cells.delete(ref.key);
    const sibling = siblingKey(ref, cell.parent);
    if (this.#siblings.get(sibling) === cell) this.#siblings.delete(sibling);
    for (const name of cell.names) {
      if (this.#names.get(name) !== cell) continue;
      this.#names.delete(name);
      if (cell.ending?.reason === 'crashed') this.#crashed.add(name);
    }
  }

  async #close(): Promise<void> {
    this.observer.tracing.stop();
    for (const cell of this.#nact.childCells.toReversed()) await cell.stop();
    this.#nact.close();
  }

  /** Returns the living actor for this ref or name. */
  find(target: AnyRef | string): Cell | undefined {
    const cell = typeof target === 'string' ? this.#names.get(target) : this.#cells.get(target.key);

    return cell?.ending === undefined ? cell : undefined;
  }
}

function siblingKey({ path }: AnyRef, parent: Cell | undefined): string {
  return parent === undefined ? path : `${parent.ref.key}${path.slice(parent.ref.path.length)}`;
}
