import type { Log } from '@bloom/log';
import type { Behaviour, Down, SpawnOptions } from './behaviour.js';
import { Cell, type AnyBehaviour, type AnyOptions, type CellHost, type Counters, type Message } from './cell.js';
import { systemClock, type Clock } from './clock.js';
import { CallTimeout, NameTaken, NoConnection, NoProcess, SystemStopped } from './errors.js';
import { NactHost } from './nact-host.js';
import type { MessageOf, Protocol, ReplyOf } from './protocol.js';
import { LocalRef, pathSegment, RemoteRef, type ActorRef, type AnyRef } from './ref.js';

const DEFAULT_CALL_TIMEOUT_MS = 5_000;

export interface ActorSystemOptions {
  log: Log;
  clock?: Clock;
}

/** One line of the listing. */
export interface ActorInfo extends Counters {
  ref: AnyRef;
  path: string;
  kind: string;
  parent: string | null;
  children: number;
  /** Messages waiting now. */
  queue: number;
  status: 'idle' | 'busy' | 'ending';
  timers: readonly string[];
  /** Registered names. */
  names: readonly string[];
  watchers: number;
  /** Milliseconds since the epoch. */
  startedAt: number;
}

export interface ListOptions {
  /** Lines at most. */
  limit: number;
  match?: (path: string) => boolean;
}

export interface ActorSystem {
  /** A top-level actor; what its `init` throws comes back from here. */
  spawn<P extends Protocol, S>(behaviour: Behaviour<P, S>, options?: SpawnOptions<P>): ActorRef<P>;
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
  cast(target: RemoteRef, message: Message): boolean;
  call(target: RemoteRef, message: Message, timeoutMs: number): Promise<unknown>;
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
  deadLetters = 0;
  router: Router = nowhere;

  readonly #cells = new Map<string, Cell>();
  readonly #top = new Map<string, Cell>();
  readonly #names = new Map<string, Cell>();
  #serial = 0;
  #active = 0;
  #closed: Promise<void> | undefined;

  constructor({ log, clock = systemClock }: ActorSystemOptions) {
    this.log = log;
    this.clock = clock;
  }

  get size(): number {
    return this.#cells.size;
  }

  spawn<P extends Protocol, S>(behaviour: Behaviour<P, S>, options: SpawnOptions<P> = {}): ActorRef<P> {
    return this.#spawn(undefined, behaviour, options);
  }

  spawnChild(parent: Cell, behaviour: AnyBehaviour, options: AnyOptions): AnyRef {
    return this.#spawn(parent, behaviour, options);
  }

  #spawn(parent: Cell | undefined, behaviour: AnyBehaviour, options: AnyOptions): AnyRef {
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
      cell.start();
    } catch (error) {
      siblings.delete(name);
      // Its `onStop` must not meet a state that was never made.
      cell.discard();
      throw error;
    }

    return ref;
  }

  cast(target: AnyRef | string, message: Message): boolean {
    if (target instanceof RemoteRef) return this.router.cast(target, message);
    const cell = this.find(target);
    if (cell === undefined) {
      this.deadLetters++;
      return false;
    }

    return cell.receive(message);
  }

  call(target: AnyRef | string, message: Message, timeoutMs = DEFAULT_CALL_TIMEOUT_MS): Promise<never> {
    if (target instanceof RemoteRef) return this.router.call(target, message, timeoutMs) as Promise<never>;
    const cell = this.find(target);
    if (cell === undefined) {
      this.deadLetters++;
      return Promise.reject(new NoProcess(target));
    }

    return new Promise<never>((resolve, reject) => {
      const timer = this.clock.setTimeout(() => reject(new CallTimeout(target, message.type, timeoutMs)), timeoutMs);
      cell.receive(message, {
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
    else cell.watchers.add(once);

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
      if (match === undefined || match(cell.ref.path)) lines.push(this.#info(cell));
    }

    return lines;
  }

  info(ref: AnyRef): ActorInfo | undefined {
    const cell = this.#cells.get(ref.key);

    return cell === undefined ? undefined : this.#info(cell);
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
    this.#cells.delete(cell.ref.key);
    if (this.#top.get(cell.name) === cell) this.#top.delete(cell.name);
    for (const name of cell.names) if (this.#names.get(name) === cell) this.#names.delete(name);
  }

  async #close(): Promise<void> {
    for (const cell of [...this.#top.values()].toReversed()) await cell.stop();
    this.nact.close();
  }

  /** The living actor of that ref or name. */
  find(target: AnyRef | string): Cell | undefined {
    const cell = typeof target === 'string' ? this.#names.get(target) : this.#cells.get(target.key);

    return cell?.ending === undefined ? cell : undefined;
  }

  #info(cell: Cell): ActorInfo {
    const status = cell.ending !== undefined ? 'ending' : cell.busy ? 'busy' : 'idle';

    return {
      ref: cell.ref,
      path: cell.ref.path,
      kind: cell.behaviour.kind,
      parent: cell.parent?.ref.path ?? null,
      children: cell.children.size,
      queue: cell.queue,
      status,
      timers: cell.timers,
      names: [...cell.names],
      watchers: cell.watchers.size,
      startedAt: cell.startedAt,
      ...cell.counters,
    };
  }
}
