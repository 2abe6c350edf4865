import type { Log } from '@bloom/log';
import {
  Later,
  type AnyBehaviour,
  type AnyOptions,
  type Down,
  type Fault,
  type FaultDecision,
  type StopReason,
} from '../behaviour.js';
import { inTime, isPowerOfTwo, type Clock } from '@bloom/time';
import { callCrashed, MailboxFull, noProcess, unknownMessage } from '../errors.js';
import type { Counters, LastError } from '../observation/inspection.js';
import { RequestLog } from '../observation/request.js';
import type { Tracer } from '../observation/tracing.js';
import type { ActorRef, AnyRef } from '../ref.js';
import { Context, type ContextOwner } from './context.js';
import { AT_ONCE, OUTSIDE, TermEnvelope, type Envelope, type Message, type Reply } from './envelope.js';
import { Restarts } from './restarts.js';
import { Timers, type TimerState } from './timers.js';
import { Turns, type TurnHost, type TurnOwner } from './turn.js';

const DEFAULT_LIMIT = 10_000;
/** How long an ending actor waits for its own unfinished handler and for its `onStop`. */
const STOP_GRACE_MS = 5_000;

/** What a cell needs of its system. */
export interface CellHost extends TurnHost {
  readonly clock: Clock;
  readonly log: Log;
  /** `by`: path of the watcher. */
  watch(target: AnyRef, listener: (down: Down) => void, by: string): () => void;
  spawnChild(parent: Cell, behaviour: AnyBehaviour, options: AnyOptions, requestId: string | undefined): AnyRef;
  send(target: AnyRef | string, message: Message, from: string, requestId: string | undefined): boolean;
  ask(
    target: AnyRef | string,
    message: Message,
    from: string,
    requestId: string | undefined,
    timeoutMs?: number,
  ): Promise<unknown>;
  stop(target: AnyRef): Promise<void>;
  gone(cell: Cell): void;
}

/** One living actor: its state, its supervision, its children and its watchers. */
export class Cell implements ContextOwner, TurnOwner {
  readonly children = new Map<string, Cell>();
  /** Children that are ending; their names are free again. */
  readonly #leaving = new Set<Cell>();
  /** Registered names of this actor. */
  readonly names = new Set<string>();
  /** Listeners notified of the end, and the path of each. */
  readonly watchers = new Map<(down: Down) => void, string>();
  readonly watching = new Set<() => void>();
  readonly counters: Counters = { received: 0, handled: 0, failed: 0, overflowed: 0, restarts: 0, sent: 0 };
  readonly turns: Turns;
  readonly timers: Timers;
  readonly restarts: Restarts;
  readonly limit: number;
  readonly startedAt: number;
  readonly clock: Clock;
  readonly plainLog: Log;
  readonly log: Log;
  ending: { reason: StopReason; error?: unknown } | undefined;
  lastError: LastError | undefined;
  /** Set while a trace includes this actor. */
  tracer: Tracer | undefined;
  /** Id of the request on whose behalf code of this actor runs at this moment. */
  requestId: string | undefined;

  #state: unknown;
  #incarnation = 0;
  #context: Context;
  #current: Envelope | undefined;
  /** When the handling of the message in hand began; set only for one that is traced or belongs to a request. */
  #observedAt: number | undefined;
  #traced = false;
  #killed: { error: unknown } | undefined;
  #stopRequested = false;
  /** Timer of the pause after too many restarts. */
  #pause: unknown;
  #stopped: Promise<void> | undefined;

  constructor(
    readonly host: CellHost,
    readonly ref: ActorRef,
    readonly name: string,
    readonly parent: Cell | undefined,
    readonly behaviour: AnyBehaviour,
    readonly options: AnyOptions,
  ) {
    this.clock = host.clock;
    this.startedAt = host.clock.wall();
    this.limit = options.mailbox?.limit ?? DEFAULT_LIMIT;
    this.timers = new Timers(host.clock);
    this.restarts = new Restarts(options, host.clock);
    this.plainLog = host.log.child({ actor: ref.path, ...options.logFields });
    this.log = new RequestLog(this.plainLog, () => this.requestId);
    this.tracer = host.observer.tracing.of(ref.path);
    this.#context = new Context(this, this.#incarnation);
    this.turns = new Turns(host, this);
  }

  get isLiving(): boolean {
    return this.ending === undefined;
  }

  /** True when other nodes may send it messages. */
  get isForNodes(): boolean {
    return this.behaviour.shapes !== undefined || this.behaviour.onTerm !== undefined;
  }

  /** True while a permanent actor pauses between restarts. */
  get isPausing(): boolean {
    return this.#pause !== undefined && this.ending === undefined;
  }

  /** Type of the message in hand. */
  get current(): string | undefined {
    return this.#current?.message.type;
  }

  /** Makes the state. Throws what `init` throws. */
  start(requestId?: string): void {
    this.requestId = requestId;
    try {
      this.#state = this.behaviour.init(this.#context);
    } finally {
      this.requestId = undefined;
    }
  }

  isCurrent(incarnation: number): boolean {
    return this.#incarnation === incarnation && this.ending === undefined;
  }

  /** Returns the state as the behaviour shows it. Throws what its `inspect` throws. */
  inspect(): { state: unknown } | undefined {
    return this.behaviour.inspect === undefined ? undefined : { state: this.behaviour.inspect(this.#state) };
  }

  /** True when its protocol has such a message. */
  understands(type: string): boolean {
    return this.#handler(type) !== undefined;
  }

  // --- what it sends

  cast(target: AnyRef | string, message: Message, requestId: string | undefined): boolean {
    this.#count(target, message, requestId);

    return this.host.send(target, message, this.ref.path, requestId);
  }

  call(target: AnyRef | string, message: Message, requestId: string | undefined, timeoutMs?: number): Promise<unknown> {
    this.#count(target, message, requestId);

    return this.host.ask(target, message, this.ref.path, requestId, timeoutMs);
  }

  #count(target: AnyRef | string, message: Message, requestId: string | undefined): void {
    this.counters.sent++;
    if (this.tracer?.wants(message.type) !== true) return;
    this.host.observer.sent(this.tracer, this.ref.path, target, message, requestId);
  }

  spawnChild(behaviour: AnyBehaviour, options: AnyOptions, requestId: string | undefined): AnyRef {
    return this.host.spawnChild(this, behaviour, options, requestId);
  }

  watch(target: AnyRef, listener: (down: Down) => void): () => void {
    return this.host.watch(target, listener, this.ref.path);
  }

  end(target: AnyRef): void {
    void this.host.stop(target);
  }

  // --- what it receives

  receive(message: Message, from: string, requestId: string | undefined, reply?: Reply): boolean {
    this.counters.received++;
    if (this.turns.mailbox.size >= this.limit && !this.#isEssential(message.type)) {
      this.#overflow(message, reply);
      return false;
    }
    const at = this.#stamp(requestId);
    this.#push({ message, reply, timer: undefined, escalated: undefined, from, requestId, at });

    return true;
  }

  arrive(message: Message, from: string, timer?: TimerState): void {
    this.counters.received++;
    const at = this.host.observer.turn.stamp();
    this.#push({ message, reply: undefined, timer, escalated: undefined, from, requestId: undefined, at });
  }

  /** A child failed and its policy escalates the fault: this actor fails with the same error. */
  escalate(error: unknown): void {
    const [message, at] = [{ type: 'escalated' }, this.host.observer.turn.stamp()];
    const escalated = { error };
    this.#push({ message, reply: undefined, timer: undefined, escalated, from: OUTSIDE, requestId: undefined, at });
  }

  /** Arrival time: not read for a message that an idle actor takes immediately, and exact for one of a request. */
  #stamp(requestId: string | undefined): number {
    const { observer } = this.host;
    if (requestId !== undefined) return observer.clock.now();

    return this.turns.occupied ? observer.turn.stamp() : AT_ONCE;
  }

  #push(envelope: Envelope): void {
    if (this.ending === undefined) this.turns.push(envelope);
  }

  #overflow(message: Message, reply: Reply | undefined): void {
    const count = ++this.counters.overflowed;
    // At 1, 2, 4, 8, ...: a flood of messages must not flood the log.
    if (isPowerOfTwo(count)) {
      this.log.warn('actor.mailbox_full', { messageType: message.type, limit: this.limit, overflowed: count });
    }
    reply?.reject(new MailboxFull(this.ref, this.limit));
    this.options.mailbox?.onRefused?.(message as never);
  }

  #isEssential(type: string): boolean {
    const essential = this.options.mailbox?.essential;

    return essential === 'all' || essential?.includes(type) === true;
  }

  // --- the message in hand

  handle(envelope: Envelope): Promise<void> | undefined {
    const { message, timer, requestId } = envelope;

    if (timer !== undefined && !this.timers.take(timer)) return undefined;
    this.#current = envelope;
    if (envelope.escalated !== undefined) throw envelope.escalated.error;

    const isTerm = message instanceof TermEnvelope;
    const handler = isTerm ? undefined : this.#handler(message.type);
    if (isTerm ? this.behaviour.onTerm === undefined : handler === undefined) {
      this.#current = undefined;
      this.#unknown(envelope);
      return undefined;
    }

    this.#traced = this.tracer?.wants(message.type) === true;
    if (requestId !== undefined || this.#traced) this.#observedAt = this.host.observer.clock.now();
    this.requestId = requestId;
    const context = requestId === undefined ? this.#context : new Context(this, this.#incarnation, requestId);
    const result: unknown = isTerm
      ? this.behaviour.onTerm?.(this.#state, message.term, context)
      : handler?.(this.#state, message, context);
    this.requestId = undefined;
    if (result instanceof Promise) {
      return result.then((value: unknown) => {
        // Unless the actor was killed meanwhile.
        if (this.#current === envelope) this.#done(envelope, value);
      });
    }
    this.#done(envelope, result);
    if (this.#killed !== undefined) this.#failAsKilled(this.#killed);

    return undefined;
  }

  #failAsKilled({ error }: { error: unknown }): never {
    this.#killed = undefined;
    throw error;
  }

  #handler(type: string): ((...args: unknown[]) => unknown) | undefined {
    const handlers = this.behaviour.handlers as Record<string, (...args: unknown[]) => unknown>;

    return Object.hasOwn(handlers, type) ? handlers[type] : undefined;
  }

  #done(envelope: Envelope, value: unknown): void {
    this.counters.handled++;
    this.#putDown(envelope, false);
    if (this.#stopRequested) void this.stop();
    if (value instanceof Later) this.#answerLater(envelope, value);
    else envelope.reply?.resolve(value);
  }

  #putDown(envelope: Envelope | undefined, failed: boolean): void {
    if (this.#observedAt !== undefined && envelope !== undefined) {
      const traced = this.#traced ? this.tracer : undefined;
      this.host.observer.handled(this.ref.path, envelope, { startedAt: this.#observedAt, failed, traced });
    }
    this.#observedAt = undefined;
    this.#current = undefined;
    this.turns.handled();
  }

  #answerLater({ message, reply, requestId }: Envelope, { promise }: Later<unknown>): void {
    promise.then(
      (value) => reply?.resolve(value),
      (error: unknown) => {
        const log = new RequestLog(this.plainLog, () => requestId);
        log.warn('actor.late_reply_failed', { messageType: message.type, error });
        reply?.reject(callCrashed(this.ref, message.type, error));
      },
    );
  }

  #unknown({ message, reply }: Envelope): void {
    this.log.warn('actor.unknown_message', { kind: this.behaviour.kind, messageType: message.type });
    reply?.reject(unknownMessage(this.ref, message.type));
  }

  // --- faults

  /** Fails the actor with that error as if the handler of the message in hand had thrown it. */
  kill(error: unknown): void {
    if (this.ending !== undefined || this.isPausing || this.turns.abort(error)) return;
    if (this.#current !== undefined) this.#killed = { error };
    else this.crashed(error);
  }

  crashed(error: unknown): 'stop' | 'resume' {
    const envelope = this.#current;
    const log = new RequestLog(this.plainLog, () => envelope?.requestId);
    this.requestId = undefined;
    this.#putDown(envelope, true);
    this.counters.failed++;
    this.turns.statusChanged();
    const messageType = envelope?.message.type ?? '';
    this.lastError = this.host.observer.errorOf(error, messageType);
    envelope?.reply?.reject(callCrashed(this.ref, messageType, error));

    const decision = this.ending === undefined ? this.#decide(error, messageType) : 'stop';
    log.error('actor.fault', { kind: this.behaviour.kind, messageType, decision, error });
    if (decision === 'restart' && this.#restart()) {
      this.turns.end();
      return 'resume';
    }

    void this.stop('crashed', error);
    this.turns.end();
    if (decision === 'escalate') this.parent?.escalate(error);

    return 'stop';
  }

  #decide(error: unknown, messageType: string): FaultDecision {
    const { supervise = 'stop', permanent = false } = this.options;
    if (permanent) return 'restart';
    if (typeof supervise === 'string') return supervise;

    const fault: Fault = { ref: this.ref, error, messageType, restarts: this.counters.restarts };
    try {
      return supervise(fault);
    } catch (cause) {
      this.log.error('actor.supervisor_failed', { error: cause });
      return 'stop';
    }
  }

  #restart(): boolean {
    const { max: maxRestarts, windowMs: restartWindowMs } = this.restarts;
    const { permanent = false } = this.options;
    const inTime = this.restarts.take();
    if (!inTime && !permanent) {
      this.log.error('actor.too_many_restarts', { maxRestarts, restartWindowMs });
      return false;
    }

    this.counters.restarts++;
    this.#stopRequested = false;
    this.#releaseOwned();
    for (const child of this.children.values()) void child.stop();
    if (inTime && this.#startAnew()) return true;
    if (permanent) this.#startAfterPause();

    return permanent;
  }

  #startAnew(): boolean {
    this.#context = new Context(this, ++this.#incarnation);
    try {
      this.start();
      return true;
    } catch (error) {
      this.log.error('actor.restart_failed', { error });
      return false;
    }
  }

  /** Messages wait meanwhile. */
  #startAfterPause(): void {
    const pauseMs = this.restarts.takeWithPause();
    this.log.error('actor.restart_paused', { pauseMs, restarts: this.counters.restarts });
    this.turns.suspend();
    this.#pause = this.clock.setTimeout(() => {
      this.#pause = undefined;
      if (this.ending !== undefined) return;
      if (this.#startAnew()) this.turns.resume();
      else this.#startAfterPause();
    }, pauseMs);
  }

  // --- the end

  /** Ends the actor and its children; resolves when it is gone. No message is accepted from now on. */
  stop(reason: StopReason = 'normal', error?: unknown): Promise<void> {
    if (this.#stopped === undefined) {
      this.ending = error === undefined ? { reason } : { reason, error };
      this.turns.statusChanged();
      this.parent?.letGo(this);
      for (const { reply } of this.turns.mailbox.drain()) reply?.reject(noProcess(this.ref));
      this.#stopped = this.#finish(this.ending);
    }

    return this.#stopped;
  }

  /** A child begins to end. */
  letGo(child: Cell): void {
    this.children.delete(child.name);
    this.#leaving.add(child);
  }

  /** A child has ended. */
  forget(child: Cell): void {
    this.#leaving.delete(child);
  }

  /** Stops after the message in hand. */
  requestStop(): void {
    this.#stopRequested = true;
    if (this.#current === undefined) void this.stop();
  }

  /** Undoes the constructor when `start` failed. */
  discard(): void {
    this.ending = { reason: 'crashed' };
    this.#stopped = Promise.resolve();
    this.#releaseOwned();
    for (const child of this.children.values()) void child.stop();
    this.turns.stop();
    this.host.gone(this);
  }

  async #finish(end: { reason: StopReason; error?: unknown }): Promise<void> {
    this.#releaseOwned();
    if (this.turns.running !== undefined) await this.#withGrace(this.turns.running, 'handler');
    await Promise.all([...this.children.values(), ...this.#leaving].map((child) => child.stop()));
    try {
      const lastWords = this.behaviour.onStop?.(this.#state, end);
      if (lastWords instanceof Promise) await this.#withGrace(lastWords, 'onStop');
    } catch (error) {
      this.log.error('actor.stop_failed', { error });
    }

    this.#releaseOwned();
    this.turns.stop();
    this.host.gone(this);
    this.parent?.forget(this);
    const down: Down = { ref: this.ref, ...end };
    for (const watcher of this.watchers.keys()) watcher(down);
    this.watchers.clear();
  }

  /** Waits for that part of the actor's own code, but not for ever. */
  #withGrace(work: Promise<void>, what: string): Promise<void> {
    const late = (): void => this.log.error('actor.stop_overdue', { what, graceMs: STOP_GRACE_MS });

    return inTime(work, { timeoutMs: STOP_GRACE_MS, late, clock: this.clock });
  }

  #releaseOwned(): void {
    this.clock.clearTimeout(this.#pause);
    this.#pause = undefined;
    this.timers.clearAll();
    for (const demonitor of this.watching) demonitor();
    this.watching.clear();
  }
}
