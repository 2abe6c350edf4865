import type { Log } from '@bloom/log';
import { systemClock, type Clock } from '@bloom/time';
import type { AnyBehaviour, AnyOptions, Behaviour, Down, SpawnOptions } from './behaviour.js';
import { Cell, type CellHost } from './cell/cell.js';
import { OUTSIDE, type Message } from './cell/envelope.js';
import { CallTimeout, Killed, NameTaken, NoConnection, NoProcess, SystemStopped } from './errors.js';
import { detailsOf, infoOf, inspectedOf, messagesOf } from './observation/info.js';
import type {
  ActorDetails,
  ActorInfo,
  Hop,
  Inspected,
  Trace,
  TraceEnd,
  TraceEvent,
  TraceOptions,
  WaitingMessage,
} from './observation/inspection.js';
import { NactHost } from './cell/nact-host.js';
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
  /** Lines at most. */
  limit: number;
  match?: (path: string) => boolean;
}

/** Sends messages to actors. */
export interface Sender {
  /**
   * Sends and forgets. False when it was surely not taken: nobody there, or the mailbox is full; for another node: no
   * connection, one that is full, or a message that cannot travel.
   */
  cast<P extends Protocol>(target: ActorRef<P> | string, message: MessageOf<P>): boolean;
  /**
   * Sends and waits for the reply, 5 s unless told.
   * @throws NoProcess, CallTimeout, CallCrashed, MailboxFull, UnknownMessage; to another node also NoConnection,
   *   LinkFull, NotSendable, TooManyCalls
   */
  call<P extends Protocol, K extends keyof P & string>(
    target: ActorRef<P> | string,
    message: MessageOf<P, K>,
    timeoutMs?: number,
  ): Promise<ReplyOf<P, K>>;
}

export interface ActorSystem extends Sender {
  /** A top-level actor; what its `init` throws comes back from here. */
  spawn<P extends Protocol, S>(behaviour: Behaviour<P, S>, options?: SpawnOptions<P>): ActorRef<P>;
  /**
   * Sends in the name of a request: whatever is caused by these messages, on other nodes as well, carries its id.
   * `face` is what is told to have sent them, such as `http`.
   */
  forRequest(requestId: string, face?: string): Sender;
  /** Death watch: the listener hears once when the target ends, at once when it is gone already. Returns the way to end it. */
  monitor(target: AnyRef, listener: (down: Down) => void): () => void;
  /** @throws NameTaken when a living actor has the name; NoProcess when the actor has ended. */
  register(name: string, ref: AnyRef): void;
  unregister(name: string): void;
  whereis(name: string): AnyRef | undefined;
  /** Of an actor on another node: whether that node is connected. */
  isAlive(ref: AnyRef): boolean;
  /** Ends an actor and its children, lets its current message finish. Not to be awaited by the actor itself. */
  stop(ref: AnyRef): Promise<void>;
  list(options: ListOptions): ActorInfo[];
  info(ref: AnyRef): ActorInfo | undefined;
  details(ref: AnyRef): ActorDetails | undefined;
  /** The living actor of that path. */
  at(path: string): AnyRef | undefined;
  /** What waits in its mailbox, oldest first. */
  waiting(ref: AnyRef, limit: number): WaitingMessage[];
  /** The state of an actor, as its behaviour shows it; does not go through its mailbox. */
  inspect(ref: AnyRef): Inspected;
  /** Shows messages as they pass; what is not traced pays nothing. A listener that throws ends its trace. */
  trace(options: TraceOptions, listener: (event: TraceEvent) => void, onEnd?: (end: TraceEnd) => void): Trace;
  /** From now on the actor takes nothing out of its mailbox, for that long or until `resume`. False: it does not live. */
  suspend(ref: AnyRef, forMs?: number): boolean;
  resume(ref: AnyRef): boolean;
  /** Fails the actor as if the handler of its message had thrown: supervision acts. False: it does not live. */
  kill(ref: AnyRef, reason: string): boolean;
  /** What the last 10,000 messages of requests have to tell about that one, oldest first. */
  hops(requestId: string): Hop[];
  /** Adds a step of a request that is no message; `ranMs` when it has just ended. */
  note(requestId: string, where: string, what: string, ranMs?: number): void;
  readonly size: number;
  /** Messages that found nobody. */
  readonly deadLetters: number;
  /** Resolves when no actor has work in hand. For tests, which then never sleep. */
  idle(): Promise<void>;
  /** Ends everything, the youngest top-level actor first. Idempotent. */
  close(): Promise<void>;
}

export function createActorSystem(options: ActorSystemOptions): ActorSystem {
  return new LocalActorSystem(options);
}

/** Carries what is addressed to actors of other nodes. */
export interface Router {
  cast(target: RemoteRef, message: Message, requestId: string | undefined): boolean;
  call(target: RemoteRef, message: Message, timeoutMs: number, requestId: string | undefined): Promise<unknown>;
  /** Reports at most once. Returns the way to end it. */
  monitor(target: RemoteRef, report: (down: Down) => void): () => void;
  isAlive(target: RemoteRef): boolean;
  stop(target: RemoteRef): Promise<void>;
}

/** What a system does with refs of other nodes before it has been connected, and after. */
const nowhere: Router = {
  cast: () => false,
  call: (target) => Promise.reject(new NoConnection(target, target.node)),
  monitor: (target, report) => {
    queueMicrotask(() => report({ ref: target, reason: 'noconnection' }));
    return () => {};
  },
  isAlive: () => false,
  stop: () => Promise.resolve(),
};

export class LocalActorSystem implements ActorSystem, CellHost {
  readonly nact = new NactHost();
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  deadLetters = 0;
  router: Router = nowhere;

  readonly #cells = new Map<string, Cell>();
  readonly #top = new Map<string, Cell>();
  readonly #names = new Map<string, Cell>();
  readonly #suspensions: Suspensions;
  #serial = 0;
  #active = 0;
  #closed: Promise<void> | undefined;

  constructor({ log, clock = systemClock }: ActorSystemOptions) {
    this.log = log;
    this.clock = clock;
    this.#suspensions = new Suspensions(clock);
    this.observer = new Observer(clock, () => {
      for (const cell of this.#cells.values()) cell.tracer = this.observer.tracing.of(cell.ref.path);
    });
  }

  get size(): number {
    return this.#cells.size;
  }

  spawn<P extends Protocol, S>(behaviour: Behaviour<P, S>, options: SpawnOptions<P> = {}): ActorRef<P> {
    return this.#spawn(undefined, behaviour, options);
  }

  spawnChild(parent: Cell, behaviour: AnyBehaviour, options: AnyOptions, requestId: string | undefined): AnyRef {
    return this.#spawn(parent, behaviour, options, requestId);
  }

  #spawn(parent: Cell | undefined, behaviour: AnyBehaviour, options: AnyOptions, requestId?: string): AnyRef {
    if (this.#closed !== undefined) throw new SystemStopped();
    if (parent?.ending !== undefined) throw new NoProcess(parent.ref);

    const serial = this.#serial++;
    const own = pathSegment(options.name ?? `${behaviour.kind}-${serial}`);
    const name = options.folder === undefined ? own : `${pathSegment(options.folder)}/${own}`;
    const siblings = parent?.children ?? this.#top;
    const path = `${parent?.ref.path ?? ''}/${name}`;
    const sibling = siblings.get(name);
    if (sibling !== undefined && sibling.ending === undefined) throw new NameTaken(path);

    const ref: AnyRef = new LocalRef(path, `${path}#${serial}`);
    const cell = new Cell(this, ref, name, parent, behaviour, options);
    siblings.set(name, cell);
    this.#cells.set(ref.key, cell);
    try {
      cell.start(requestId);
    } catch (error) {
      siblings.delete(name);
      // Its `onStop` must not meet a state that was never made.
      cell.discard();
      throw error;
    }

    return ref;
  }

  forRequest(requestId: string, face = OUTSIDE): Sender {
    return {
      cast: (target, message) => this.send(target, message as Message, face, requestId),
      call: (target, message, timeoutMs) => this.ask(target, message as Message, face, requestId, timeoutMs),
    };
  }

  cast(target: AnyRef | string, message: Message): boolean {
    return this.send(target, message, OUTSIDE, undefined);
  }

  call(target: AnyRef | string, message: Message, timeoutMs?: number): Promise<never> {
    return this.ask(target, message, OUTSIDE, undefined, timeoutMs);
  }

  send(target: AnyRef | string, message: Message, from: string, requestId: string | undefined): boolean {
    if (target instanceof RemoteRef) return this.router.cast(target, message, requestId);
    const cell = this.find(target);
    if (cell === undefined) {
      this.deadLetters++;
      return false;
    }

    return cell.receive(message, from, requestId);
  }

  ask(
    target: AnyRef | string,
    message: Message,
    from: string,
    requestId: string | undefined,
    timeoutMs = DEFAULT_CALL_TIMEOUT_MS,
  ): Promise<never> {
    if (target instanceof RemoteRef) {
      return this.router.call(target, message, timeoutMs, requestId) as Promise<never>;
    }
    const cell = this.find(target);
    if (cell === undefined) {
      this.deadLetters++;
      return Promise.reject(new NoProcess(target));
    }

    return new Promise<never>((resolve, reject) => {
      const timer = this.clock.setTimeout(() => reject(new CallTimeout(target, message.type, timeoutMs)), timeoutMs);
      cell.receive(message, from, requestId, {
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
    return this.watch(target, listener, OUTSIDE);
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
    else cell.watchers.set(once, by);

    return () => {
      watching = false;
      cell?.watchers.delete(once);
    };
  }

  register(name: string, ref: AnyRef): void {
    const cell = this.find(ref);
    if (cell === undefined) throw new NoProcess(ref);
    const holder = this.#names.get(name);
    if (holder !== undefined && holder !== cell && holder.ending === undefined) throw new NameTaken(`the name ${name}`);
    this.#names.set(name, cell);
    cell.names.add(name);
  }

  unregister(name: string): void {
    this.#names.get(name)?.names.delete(name);
    this.#names.delete(name);
  }

  whereis(name: string): AnyRef | undefined {
    return this.find(name)?.ref;
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
      if (match === undefined || match(cell.ref.path)) lines.push(infoOf(cell));
    }

    return lines;
  }

  info(ref: AnyRef): ActorInfo | undefined {
    const cell = this.#cells.get(ref.key);

    return cell === undefined ? undefined : infoOf(cell);
  }

  details(ref: AnyRef): ActorDetails | undefined {
    const cell = this.#cells.get(ref.key);

    return cell === undefined ? undefined : detailsOf(cell, this.#suspensions.until(ref));
  }

  at(path: string): AnyRef | undefined {
    for (const { ref, ending } of this.#cells.values()) if (ref.path === path && ending === undefined) return ref;

    return undefined;
  }

  waiting(ref: AnyRef, limit: number): WaitingMessage[] {
    return messagesOf(this.#cells.get(ref.key), limit);
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
    cell?.kill(new Killed(ref, reason));

    return cell !== undefined;
  }

  hops(requestId: string): Hop[] {
    return this.observer.hops.of(requestId);
  }

  note(requestId: string, where: string, what: string, ranMs?: number): void {
    this.observer.note(requestId, where, what, ranMs ?? null);
  }

  async idle(): Promise<void> {
    // Promises between actors settle within a turn: three quiet turns in a row mean that nothing is on its way.
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

  gone(cell: Cell): void {
    this.#suspensions.clear(cell.ref);
    this.#cells.delete(cell.ref.key);
    if (this.#top.get(cell.name) === cell) this.#top.delete(cell.name);
    for (const name of cell.names) if (this.#names.get(name) === cell) this.#names.delete(name);
  }

  async #close(): Promise<void> {
    this.observer.tracing.stop();
    for (const cell of [...this.#top.values()].toReversed()) await cell.stop();
    this.nact.close();
  }

  /** The living actor of that ref or name. */
  find(target: AnyRef | string): Cell | undefined {
    const cell = typeof target === 'string' ? this.#names.get(target) : this.#cells.get(target.key);

    return cell?.ending === undefined ? cell : undefined;
  }
}
