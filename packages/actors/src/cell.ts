import type { Log } from '@bloom/log';
import {
  Later,
  type ActorContext,
  type Behaviour,
  type Down,
  type Fault,
  type FaultDecision,
  type SpawnOptions,
  type StopReason,
  type TermMessage,
} from './behaviour.js';
import type { Clock } from './clock.js';
import { CallCrashed, MailboxFull, NoProcess, UnknownMessage } from './errors.js';
import { Mailbox } from './mailbox.js';
import type { NactActor, NactHost } from './nact-host.js';
import type { ActorRef, AnyRef } from './ref.js';

/** Messages handled per turn of the event loop, so that a flooded actor lets the others run. */
const BATCH = 256;
const DEFAULT_LIMIT = 10_000;
const DEFAULT_MAX_RESTARTS = 3;
const DEFAULT_RESTART_WINDOW_MS = 60_000;
/** How long an ending actor waits for its own unfinished handler and for its last words. */
const STOP_GRACE_MS = 5_000;

export interface Message {
  readonly type: string;
}

/** What came from Erlang, in its envelope. A class, so that no message of another node can pass for one. */
export class TermEnvelope implements Message {
  readonly type: string;
  constructor(readonly term: TermMessage) {
    this.type = `$${term.kind}`;
  }
}

/** Where the answer of a call goes; settles once. */
export interface Reply {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

interface Envelope {
  message: Message;
  reply: Reply | undefined;
  /** Set for a timer's message: it counts only while that very start of the timer is current. */
  timer: TimerState | undefined;
  /** Set when a child escalated: handling it is failing with this error. */
  escalated: { error: unknown } | undefined;
}

interface TimerState {
  name: string;
  handle: unknown;
}

export interface Counters {
  received: number;
  handled: number;
  failed: number;
  /** Messages refused because the mailbox was full. */
  overflowed: number;
  restarts: number;
}

/** What a cell needs of its system. */
export interface CellHost {
  readonly nact: NactHost;
  readonly clock: Clock;
  readonly log: Log;
  /** Counts cells with work in hand, for `idle`. */
  active(change: 1 | -1): void;
  monitor(target: AnyRef, listener: (down: Down) => void): () => void;
  spawnChild(parent: Cell, behaviour: AnyBehaviour, options: AnyOptions): AnyRef;
  cast(target: AnyRef | string, message: Message): boolean;
  call(target: AnyRef | string, message: Message, timeoutMs?: number): Promise<unknown>;
  stop(target: AnyRef): Promise<void>;
  gone(cell: Cell): void;
}

// The cell carries any behaviour; types were checked at `spawn`.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyBehaviour = Behaviour<any, any>;
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyOptions = SpawnOptions<any>;
// oxlint-disable-next-line typescript/no-explicit-any
type AnyContext = ActorContext<any>;

/** One living actor: its mailbox, its state, its timers, its children and who watches it. */
export class Cell {
  readonly children = new Map<string, Cell>();
  /** Registered names of this actor. */
  readonly names = new Set<string>();
  readonly watchers = new Set<(down: Down) => void>();
  readonly counters: Counters = { received: 0, handled: 0, failed: 0, overflowed: 0, restarts: 0 };
  readonly startedAt: number;
  ending: { reason: StopReason; error?: unknown } | undefined;

  readonly #mailbox = new Mailbox<Envelope>();
  readonly #timers = new Map<string, TimerState>();
  readonly #watching = new Set<() => void>();
  readonly #nact: NactActor;
  readonly #limit: number;
  readonly #log: Log;
  #state: unknown;
  #context: AnyContext;
  #scheduled = false;
  #active = false;
  #running: Promise<void> | undefined;
  #current: Envelope | undefined;
  #stopRequested = false;
  #stopped: Promise<void> | undefined;
  #restartTimes: number[] = [];

  constructor(
    readonly host: CellHost,
    readonly ref: ActorRef,
    readonly name: string,
    readonly parent: Cell | undefined,
    readonly behaviour: AnyBehaviour,
    readonly options: AnyOptions,
  ) {
    this.startedAt = host.clock.now();
    this.#limit = options.mailbox?.limit ?? DEFAULT_LIMIT;
    this.#log = host.log.child({ actor: ref.path, ...options.logFields });
    this.#context = this.#createContext();
    this.#nact = host.nact.spawn({ drain: () => this.#drain(), onCrash: (error) => this.#crashed(error) });
  }

  get queue(): number {
    return this.#mailbox.size;
  }

  get busy(): boolean {
    return this.#current !== undefined;
  }

  get timers(): string[] {
    return [...this.#timers.keys()];
  }

  /** Makes the state; throws what `init` throws. */
  start(): void {
    this.#state = this.behaviour.init(this.#context);
  }

  /** Whether its protocol has such a message. */
  understands(type: string): boolean {
    return this.#handler(type) !== undefined;
  }

  receive(message: Message, reply?: Reply): boolean {
    this.counters.received++;
    if (this.#mailbox.size >= this.#limit && !this.#isEssential(message.type)) {
      this.#overflow(message, reply);
      return false;
    }
    this.#push({ message, reply, timer: undefined, escalated: undefined });

    return true;
  }

  /** Ends the actor and its children; resolves when it is gone. Takes no message from now on. */
  stop(reason: StopReason = 'normal', error?: unknown): Promise<void> {
    if (this.#stopped === undefined) {
      this.ending = error === undefined ? { reason } : { reason, error };
      this.parent?.children.delete(this.name);
      for (const { reply } of this.#mailbox.drain()) reply?.reject(new NoProcess(this.ref));
      this.#stopped = this.#finish(this.ending);
    }

    return this.#stopped;
  }

  /** Undoes the constructor when `start` failed. */
  discard(): void {
    this.ending = { reason: 'crashed' };
    this.#stopped = Promise.resolve();
    this.#releaseOwned();
    for (const child of this.children.values()) void child.stop();
    this.#nact.stop();
    this.host.gone(this);
  }

  #push(envelope: Envelope): void {
    if (this.ending !== undefined) return;
    this.#mailbox.push(envelope);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#countActive(true);
    this.#nact.wake();
  }

  #countActive(active: boolean): void {
    if (active === this.#active) return;
    this.#active = active;
    this.host.active(active ? 1 : -1);
  }

  #turnEnded(): void {
    if (!this.#scheduled) return;
    this.#scheduled = false;
    this.#countActive(false);
    if (this.#mailbox.size > 0 && this.ending === undefined) this.#schedule();
  }

  #drain(): void | Promise<void> {
    for (let n = 0; n < BATCH && this.ending === undefined; n++) {
      const envelope = this.#mailbox.shift();
      if (envelope === undefined) break;

      const wait = this.#handle(envelope);
      if (wait === undefined) continue;

      // Waiting is not working: a handler that waits for the clock must not keep `idle` from returning.
      this.#countActive(false);
      const done = wait.then(() => this.#turnEnded());
      // The ending waits for this handler, whatever becomes of it; its fault goes to nact below.
      this.#running = done.catch(() => {});

      return done;
    }
    this.#turnEnded();
  }

  #handle(envelope: Envelope): Promise<void> | undefined {
    const { message, timer } = envelope;

    if (timer !== undefined) {
      if (this.#timers.get(timer.name) !== timer) return undefined;
      this.#timers.delete(timer.name);
    }
    this.#current = envelope;
    if (envelope.escalated !== undefined) throw envelope.escalated.error;

    const isTerm = message instanceof TermEnvelope;
    const handler = isTerm ? undefined : this.#handler(message.type);
    if (isTerm ? this.behaviour.onTerm === undefined : handler === undefined) {
      this.#current = undefined;
      this.#unknown(envelope);
      return undefined;
    }

    const result: unknown = isTerm
      ? this.behaviour.onTerm?.(this.#state, message.term, this.#context)
      : handler?.(this.#state, message, this.#context);
    if (result instanceof Promise) return result.then((value: unknown) => this.#done(envelope, value));
    this.#done(envelope, result);

    return undefined;
  }

  #handler(type: string): ((...args: unknown[]) => unknown) | undefined {
    const handlers = this.behaviour.handlers as Record<string, (...args: unknown[]) => unknown>;

    return Object.hasOwn(handlers, type) ? handlers[type] : undefined;
  }

  #done(envelope: Envelope, value: unknown): void {
    this.counters.handled++;
    this.#current = undefined;
    this.#running = undefined;
    if (this.#stopRequested) void this.stop();
    if (value instanceof Later) this.#answerLater(envelope, value);
    else envelope.reply?.resolve(value);
  }

  #answerLater({ message, reply }: Envelope, { promise }: Later<unknown>): void {
    promise.then(
      (value) => reply?.resolve(value),
      (error: unknown) => {
        this.#log.warn('actor.late_reply_failed', { messageType: message.type, error });
        reply?.reject(new CallCrashed(this.ref, message.type, error));
      },
    );
  }

  #unknown({ message, reply }: Envelope): void {
    this.#log.warn('actor.unknown_message', { kind: this.behaviour.kind, messageType: message.type });
    reply?.reject(new UnknownMessage(this.ref, message.type));
  }

  #overflow(message: Message, reply: Reply | undefined): void {
    const count = ++this.counters.overflowed;
    // At 1, 2, 4, 8, ...: a flood must not flood the log as well.
    if ((count & (count - 1)) === 0) {
      this.#log.warn('actor.mailbox_full', { messageType: message.type, limit: this.#limit, overflowed: count });
    }
    reply?.reject(new MailboxFull(this.ref, this.#limit));
  }

  #isEssential(type: string): boolean {
    const essential = this.options.mailbox?.essential;

    return essential === 'all' || essential?.includes(type) === true;
  }

  /** Runs inside nact's fault handling; must not throw. */
  #crashed(error: unknown): 'stop' | 'resume' {
    const envelope = this.#current;
    this.#current = undefined;
    this.#running = undefined;
    this.counters.failed++;
    const messageType = envelope?.message.type ?? '';
    envelope?.reply?.reject(new CallCrashed(this.ref, messageType, error));

    const decision = this.ending === undefined ? this.#decide(error, messageType) : 'stop';
    this.#log.error('actor.fault', { kind: this.behaviour.kind, messageType, decision, error });
    if (decision === 'restart' && this.#restart()) {
      this.#turnEnded();
      return 'resume';
    }

    void this.stop('crashed', error);
    this.#turnEnded();
    if (decision === 'escalate') this.parent?.escalate(error);

    return 'stop';
  }

  /** A child failed and its policy hands the fault up: this actor fails with the same error. */
  escalate(error: unknown): void {
    if (this.ending !== undefined) return;
    this.#push({ message: { type: 'escalated' }, reply: undefined, timer: undefined, escalated: { error } });
  }

  #decide(error: unknown, messageType: string): FaultDecision {
    const { supervise = 'stop' } = this.options;
    if (typeof supervise === 'string') return supervise;

    const fault: Fault = { ref: this.ref, error, messageType, restarts: this.counters.restarts };
    try {
      return supervise(fault);
    } catch (cause) {
      this.#log.error('actor.supervisor_failed', { error: cause });
      return 'stop';
    }
  }

  #restart(): boolean {
    const { maxRestarts = DEFAULT_MAX_RESTARTS, restartWindowMs = DEFAULT_RESTART_WINDOW_MS } = this.options;
    const now = this.host.clock.now();
    this.#restartTimes = this.#restartTimes.filter((at) => now - at < restartWindowMs);
    if (this.#restartTimes.length >= maxRestarts) {
      this.#log.error('actor.too_many_restarts', { maxRestarts, restartWindowMs });
      return false;
    }

    this.#restartTimes.push(now);
    this.counters.restarts++;
    this.#stopRequested = false;
    this.#releaseOwned();
    for (const child of this.children.values()) void child.stop();
    this.#context = this.#createContext();
    try {
      this.start();
      return true;
    } catch (error) {
      this.#log.error('actor.restart_failed', { error });
      return false;
    }
  }

  async #finish(end: { reason: StopReason; error?: unknown }): Promise<void> {
    this.#releaseOwned();
    if (this.#running !== undefined) await this.#withGrace(this.#running, 'handler');
    await Promise.all([...this.children.values()].map((child) => child.stop()));
    try {
      const lastWords = this.behaviour.onStop?.(this.#state, end);
      if (lastWords instanceof Promise) await this.#withGrace(lastWords, 'onStop');
    } catch (error) {
      this.#log.error('actor.stop_failed', { error });
    }

    this.#releaseOwned();
    this.#nact.stop();
    // A wake that nact will not deliver any more.
    this.#turnEnded();
    this.host.gone(this);
    const down: Down = { ref: this.ref, ...end };
    for (const watcher of this.watchers) watcher(down);
    this.watchers.clear();
  }

  async #withGrace(work: Promise<void>, what: string): Promise<void> {
    let timer: unknown;
    const grace = new Promise<void>((resolve) => {
      timer = this.host.clock.setTimeout(() => {
        this.#log.error('actor.stop_overdue', { what, graceMs: STOP_GRACE_MS });
        resolve();
      }, STOP_GRACE_MS);
    });

    await Promise.race([work, grace]).finally(() => this.host.clock.clearTimeout(timer));
  }

  #releaseOwned(): void {
    for (const { handle } of this.#timers.values()) this.host.clock.clearTimeout(handle);
    this.#timers.clear();
    for (const demonitor of this.#watching) demonitor();
    this.#watching.clear();
  }

  #createContext(): AnyContext {
    const { host } = this;
    // What an earlier incarnation set going must not reach into this one.
    const isCurrent = (): boolean => this.#context === context && this.ending === undefined;
    const context: AnyContext = {
      self: this.ref,
      log: this.#log,
      now: () => host.clock.now(),
      cast: (target, message) => host.cast(target, message as Message),
      call: (target, message, timeoutMs) => host.call(target, message as Message, timeoutMs) as never,
      spawn: (behaviour, options = {}) => host.spawnChild(this, behaviour, options as AnyOptions) as never,
      monitor: (target, toMessage) => {
        if (!isCurrent()) return () => {};
        const demonitor = host.monitor(target, (down) => {
          this.#watching.delete(cancel);
          if (!isCurrent()) return;
          this.counters.received++;
          this.#push({ message: toMessage(down) as Message, reply: undefined, timer: undefined, escalated: undefined });
        });
        const cancel = (): void => {
          this.#watching.delete(cancel);
          demonitor();
        };
        this.#watching.add(cancel);

        return cancel;
      },
      setTimer: (name, ms, message) => {
        if (!isCurrent()) return;
        this.#clearTimer(name);
        const timer: TimerState = { name, handle: undefined };
        timer.handle = host.clock.setTimeout(() => {
          this.counters.received++;
          this.#push({ message: message as Message, reply: undefined, timer, escalated: undefined });
        }, ms);
        this.#timers.set(name, timer);
      },
      clearTimer: (name) => this.#clearTimer(name),
      stop: () => {
        if (!isCurrent()) return;
        this.#stopRequested = true;
        if (this.#current === undefined) void this.stop();
      },
      end: (target) => void host.stop(target),
    };

    return context;
  }

  #clearTimer(name: string): void {
    const timer = this.#timers.get(name);
    if (timer === undefined) return;
    this.host.clock.clearTimeout(timer.handle);
    this.#timers.delete(name);
  }
}
