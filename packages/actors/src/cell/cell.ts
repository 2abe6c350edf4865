import type { Log } from '@bloom/log';
import { Later, type Down, type Fault, type FaultDecision, type StopReason } from '../behaviour.js';
import type { AnyBehaviour, AnyOptions, CellHost } from './cell-host.js';
import { createContext, RequestContext, type AnyContext } from './context.js';
import { Durations } from '../observation/durations.js';
import { AT_ONCE, OUTSIDE, TermEnvelope, type Envelope, type Message, type Reply } from './envelope.js';
import { CallCrashed, MailboxFull, NoProcess, UnknownMessage } from '../errors.js';
import type { Counters, LastError } from '../observation/inspection.js';
import { Mailbox } from './mailbox.js';
import type { NactActor } from './nact-host.js';
import type { ActorRef } from '../ref.js';
import { RequestLog } from '../observation/request.js';
import { Restarts } from './restarts.js';
import { Timers } from './timers.js';
import type { Tracer } from '../observation/tracing.js';

/** Messages handled per turn of the event loop, so that a flooded actor lets the others run. */
const BATCH = 256;
/** Messages per reading of the clock while they are quick; slow ones are measured one by one. */
const MEASURED_TOGETHER = 16;
const SLOW_MS = 0.1;
/** Turns that are not measured after one that is, while messages are quick. */
const UNMEASURED = 7;
const DEFAULT_LIMIT = 10_000;
/** How long an ending actor waits for its own unfinished handler and for its last words. */
const STOP_GRACE_MS = 5_000;

/** One living actor: its mailbox, its state, its timers, its children and who watches it. */
export class Cell {
  readonly children = new Map<string, Cell>();
  /** Registered names of this actor. */
  readonly names = new Set<string>();
  /** Who is told of the end, and the path of each. */
  readonly watchers = new Map<(down: Down) => void, string>();
  readonly counters: Counters = { received: 0, handled: 0, failed: 0, overflowed: 0, restarts: 0, sent: 0 };
  readonly durations = new Durations();
  readonly mailbox = new Mailbox<Envelope>();
  readonly timers: Timers;
  readonly watching = new Set<() => void>();
  readonly restarts: Restarts;
  readonly limit: number;
  readonly startedAt: number;
  /** Without the id of a request. */
  readonly plainLog: Log;
  readonly log: Log;
  ending: { reason: StopReason; error?: unknown } | undefined;
  /** Reading of the fine clock when the status changed. */
  statusAt: number;
  lastError: LastError | undefined;
  /** Set while somebody traces this actor. */
  tracer: Tracer | undefined;
  /** Takes nothing out of its mailbox. */
  suspended = false;
  /** Id of the request in whose name code of this actor runs at this moment. */
  requestId: string | undefined;

  readonly #nact: NactActor;
  #state: unknown;
  #context: AnyContext;
  #scheduled = false;
  #active = false;
  #running: Promise<void> | undefined;
  #abort: ((error: unknown) => void) | undefined;
  #current: Envelope | undefined;
  /** When the handling of the message in hand began; set only for one that somebody looks at. */
  #observedAt: number | undefined;
  #traced = false;
  #slow = true;
  /** Turns to come that are not measured. */
  #unmeasured = 0;
  #killed: { error: unknown } | undefined;
  #stopRequested = false;
  #stopped: Promise<void> | undefined;

  constructor(
    readonly host: CellHost,
    readonly ref: ActorRef,
    readonly name: string,
    readonly parent: Cell | undefined,
    readonly behaviour: AnyBehaviour,
    readonly options: AnyOptions,
  ) {
    this.startedAt = host.clock.now();
    this.statusAt = host.observer.turn.stamp();
    this.limit = options.mailbox?.limit ?? DEFAULT_LIMIT;
    this.timers = new Timers(host.clock);
    this.restarts = new Restarts(options, host.clock);
    this.plainLog = host.log.child({ actor: ref.path, ...options.logFields });
    this.log = new RequestLog(this.plainLog, () => this.requestId);
    this.tracer = host.observer.tracing.of(ref.path);
    this.#context = createContext(this);
    this.#nact = host.nact.spawn({ drain: () => this.#drain(), onCrash: (error) => this.#crashed(error) });
  }

  get busy(): boolean {
    return this.#current !== undefined;
  }

  /** Whether the handler of the message in hand waits for something. */
  get waits(): boolean {
    return this.#abort !== undefined && !this.suspended;
  }

  /** Type of the message in hand. */
  get current(): string | undefined {
    return this.#current?.message.type;
  }

  /** Makes the state; throws what `init` throws. */
  start(requestId?: string): void {
    this.requestId = requestId;
    try {
      this.#state = this.behaviour.init(this.#context);
    } finally {
      this.requestId = undefined;
    }
  }

  /** Whether that is the context of the present incarnation: what an earlier one set going must not reach into this. */
  isCurrent(context: AnyContext): boolean {
    return this.#context === context && this.ending === undefined;
  }

  /** The state as the behaviour shows it; throws what its `inspect` throws. */
  inspect(): { state: unknown } | undefined {
    return this.behaviour.inspect === undefined ? undefined : { state: this.behaviour.inspect(this.#state) };
  }

  /** Whether its protocol has such a message. */
  understands(type: string): boolean {
    return this.#handler(type) !== undefined;
  }

  receive(message: Message, from: string, requestId: string | undefined, reply?: Reply): boolean {
    this.counters.received++;
    if (this.mailbox.size >= this.limit && !this.#isEssential(message.type)) {
      this.#overflow(message, reply);
      return false;
    }
    const at = this.#stamp(requestId);
    this.push({ message, reply, timer: undefined, escalated: undefined, from, requestId, at });

    return true;
  }

  /** When a message came: not read for one that an idle actor takes at once, and exact for one of a request. */
  #stamp(requestId: string | undefined): number {
    const { observer } = this.host;
    if (requestId !== undefined) return observer.fine.now();

    return this.#scheduled || this.suspended ? observer.turn.stamp() : AT_ONCE;
  }

  push(envelope: Envelope): void {
    if (this.ending !== undefined) return;
    this.mailbox.push(envelope);
    this.#schedule();
  }

  /** Ends the actor and its children; resolves when it is gone. Takes no message from now on. */
  stop(reason: StopReason = 'normal', error?: unknown): Promise<void> {
    if (this.#stopped === undefined) {
      this.ending = error === undefined ? { reason } : { reason, error };
      this.statusAt = this.host.observer.turn.stamp();
      this.parent?.children.delete(this.name);
      for (const { reply } of this.mailbox.drain()) reply?.reject(new NoProcess(this.ref));
      this.#stopped = this.#finish(this.ending);
    }

    return this.#stopped;
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
    this.#nact.stop();
    this.host.gone(this);
  }

  suspend(): void {
    if (this.suspended) return;
    this.suspended = true;
    this.statusAt = this.host.observer.turn.stamp();
  }

  resume(): void {
    if (!this.suspended) return;
    this.suspended = false;
    this.statusAt = this.host.observer.turn.stamp();
    if (this.mailbox.size > 0 && this.ending === undefined) this.#schedule();
  }

  /** Fails the actor with that error as if the handler of the message in hand had thrown it. */
  kill(error: unknown): void {
    if (this.ending !== undefined) return;
    if (this.#abort !== undefined) this.#abort(error);
    else if (this.#current !== undefined) this.#killed = { error };
    else this.#crashed(error);
  }

  #schedule(): void {
    if (this.#scheduled || this.suspended) return;
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
    if (this.mailbox.size > 0 && this.ending === undefined) this.#schedule();
  }

  #drain(): void | Promise<void> {
    const { turn } = this.host.observer;
    const measured = this.#unmeasured === 0;
    turn.begin();
    let mark = measured ? turn.read() : 0;
    let quick = 0;
    try {
      for (let n = 0; n < BATCH && this.ending === undefined && !this.suspended; n++) {
        const envelope = this.mailbox.shift();
        if (envelope === undefined) break;

        const wait = this.#handle(envelope);
        if (wait !== undefined) return this.#waitFor(wait);
        quick++;
        if (measured && (this.#slow || quick === MEASURED_TOGETHER)) {
          const now = turn.read();
          this.#measured(now - mark, quick);
          mark = now;
          quick = 0;
        }
      }
      if (measured && quick > 0) {
        const now = turn.read();
        this.#measured(now - mark, quick);
        mark = now;
      }
    } finally {
      turn.end();
    }
    if (measured) {
      this.#unmeasured = this.#slow ? 0 : UNMEASURED;
      if (!this.suspended) this.statusAt = mark;
    } else this.#unmeasured--;
    this.#turnEnded();
  }

  /** Quick turns are sampled: each stands for those that were not measured. */
  #measured(ms: number, messages: number): void {
    const each = ms / messages;
    this.durations.record(each, messages * (this.#slow ? 1 : UNMEASURED + 1));
    this.#slow = each > SLOW_MS;
  }

  /** Waiting is not working: a handler that waits for the clock must not keep `idle` from returning. */
  #waitFor(wait: Promise<void>): Promise<void> {
    const since = this.host.observer.turn.read();
    if (!this.suspended) this.statusAt = since;
    this.#countActive(false);
    const killable = new Promise<void>((resolve, reject) => {
      this.#abort = reject;
      wait.then(resolve, reject);
    });
    const done = killable.then(() => {
      const now = this.host.observer.fine.now();
      this.durations.record(now - since);
      if (!this.suspended) this.statusAt = now;
      this.#turnEnded();
    });
    // The ending waits for this handler, whatever becomes of it; its fault goes to nact.
    this.#running = done.catch(() => {});

    return done;
  }

  #handle(envelope: Envelope): Promise<void> | undefined {
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
    if (requestId !== undefined || this.#traced) this.#observedAt = this.host.observer.fine.now();
    this.requestId = requestId;
    const context = requestId === undefined ? this.#context : new RequestContext(this, this.#context, requestId);
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

  /** The message in hand is done with. */
  #putDown(envelope: Envelope | undefined, failed: boolean): void {
    if (this.#observedAt !== undefined && envelope !== undefined) {
      const traced = this.#traced ? this.tracer : undefined;
      this.host.observer.handled(this.ref.path, envelope, { startedAt: this.#observedAt, failed, traced });
    }
    this.#observedAt = undefined;
    this.#current = undefined;
    this.#running = undefined;
    this.#abort = undefined;
  }

  #answerLater({ message, reply, requestId }: Envelope, { promise }: Later<unknown>): void {
    promise.then(
      (value) => reply?.resolve(value),
      (error: unknown) => {
        const log = new RequestLog(this.plainLog, () => requestId);
        log.warn('actor.late_reply_failed', { messageType: message.type, error });
        reply?.reject(new CallCrashed(this.ref, message.type, error));
      },
    );
  }

  #unknown({ message, reply }: Envelope): void {
    this.log.warn('actor.unknown_message', { kind: this.behaviour.kind, messageType: message.type });
    reply?.reject(new UnknownMessage(this.ref, message.type));
  }

  #overflow(message: Message, reply: Reply | undefined): void {
    const count = ++this.counters.overflowed;
    // At 1, 2, 4, 8, ...: a flood must not flood the log as well.
    if ((count & (count - 1)) === 0) {
      this.log.warn('actor.mailbox_full', { messageType: message.type, limit: this.limit, overflowed: count });
    }
    reply?.reject(new MailboxFull(this.ref, this.limit));
  }

  #isEssential(type: string): boolean {
    const essential = this.options.mailbox?.essential;

    return essential === 'all' || essential?.includes(type) === true;
  }

  /** Runs inside nact's fault handling; must not throw. */
  #crashed(error: unknown): 'stop' | 'resume' {
    const envelope = this.#current;
    const log = new RequestLog(this.plainLog, () => envelope?.requestId);
    this.requestId = undefined;
    this.#putDown(envelope, true);
    this.counters.failed++;
    this.statusAt = this.host.observer.turn.stamp();
    const messageType = envelope?.message.type ?? '';
    this.lastError = this.host.observer.errorOf(error, messageType);
    envelope?.reply?.reject(new CallCrashed(this.ref, messageType, error));

    const decision = this.ending === undefined ? this.#decide(error, messageType) : 'stop';
    log.error('actor.fault', { kind: this.behaviour.kind, messageType, decision, error });
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
    const [message, at] = [{ type: 'escalated' }, this.host.observer.turn.stamp()];
    const escalated = { error };
    this.push({ message, reply: undefined, timer: undefined, escalated, from: OUTSIDE, requestId: undefined, at });
  }

  #decide(error: unknown, messageType: string): FaultDecision {
    const { supervise = 'stop' } = this.options;
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
    if (!this.restarts.take()) {
      const { max: maxRestarts, windowMs: restartWindowMs } = this.restarts;
      this.log.error('actor.too_many_restarts', { maxRestarts, restartWindowMs });
      return false;
    }

    this.counters.restarts++;
    this.#stopRequested = false;
    this.#releaseOwned();
    for (const child of this.children.values()) void child.stop();
    this.#context = createContext(this);
    try {
      this.start();
      return true;
    } catch (error) {
      this.log.error('actor.restart_failed', { error });
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
      this.log.error('actor.stop_failed', { error });
    }

    this.#releaseOwned();
    this.#nact.stop();
    // A wake that nact will not deliver any more.
    this.#turnEnded();
    this.host.gone(this);
    const down: Down = { ref: this.ref, ...end };
    for (const watcher of this.watchers.keys()) watcher(down);
    this.watchers.clear();
  }

  async #withGrace(work: Promise<void>, what: string): Promise<void> {
    let timer: unknown;
    const grace = new Promise<void>((resolve) => {
      timer = this.host.clock.setTimeout(() => {
        this.log.error('actor.stop_overdue', { what, graceMs: STOP_GRACE_MS });
        resolve();
      }, STOP_GRACE_MS);
    });

    await Promise.race([work, grace]).finally(() => this.host.clock.clearTimeout(timer));
  }

  #releaseOwned(): void {
    this.timers.clearAll();
    for (const demonitor of this.watching) demonitor();
    this.watching.clear();
  }
}
