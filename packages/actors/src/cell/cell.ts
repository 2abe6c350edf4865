import {
  Later,
  type AnyBehaviour,
  type AnyOptions,
  type Down,
  type Fault,
  type FaultDecision,
  type StopReason,
} from '../behaviour.js';
import { inTime } from '@bloom/time';
import { callCrashed, noProcess, unknownMessage } from '../errors.js';
import { Activity } from '../observation/activity.js';
import { RequestLog } from '../observation/request.js';
import type { ActorRef } from '../ref.js';
import { Context, Incarnation } from './context.js';
import { TermEnvelope, type Envelope, type Message, type Origin, type Reply } from '../envelope.js';
import type { CellHost } from './host.js';
import { Inbox } from './inbox.js';
import { NactActor, type NactRoot, type Supervised } from './nact-actor.js';
import { Restarts } from './restarts.js';
import { Turns } from './turn.js';

/** How long an ending actor waits for its own unfinished handler and for its `onStop`. */
const STOP_GRACE_MS = 5_000;

export interface CellOptions {
  readonly host: CellHost;
  readonly ref: ActorRef;
  /** The root for a top-level actor. */
  readonly parent: Cell | NactRoot<Cell>;
  /** Name in nact's tree, unique among all children the parent has had: nact refuses `@`, `:` and `/` in names. */
  readonly nactName: string;
  readonly behaviour: AnyBehaviour;
  readonly options: AnyOptions;
}

/** What the rest of the system holds of an actor. */
export interface Ties {
  /** Registered names. */
  readonly names: Set<string>;
  /** Listeners for its end, each with its path. */
  readonly watchers: Map<(down: Down) => void, string>;
}

/** One living actor: handles messages, fails, restarts and ends. */
export class Cell implements Supervised {
  readonly ref: ActorRef;
  readonly behaviour: AnyBehaviour;
  readonly options: AnyOptions;
  readonly activity: Activity;
  readonly turns: Turns;
  readonly inbox: Inbox;
  ending: { reason: StopReason; error?: unknown } | undefined;

  readonly #host: CellHost;
  readonly #nact: NactActor<Cell>;
  readonly #log: RequestLog;
  #life: Incarnation;
  #current: Envelope | undefined;
  #stopRequested = false;
  #stopped: Promise<void> | undefined;
  /** Most actors never fail. */
  #restarts: Restarts | undefined;
  /** Most actors have no name, and many are watched by nobody. */
  #ties: Ties | undefined;

  constructor({ host, ref, parent, nactName, behaviour, options }: CellOptions) {
    const { observer } = host;
    this.#host = host;
    this.ref = ref;
    this.behaviour = behaviour;
    this.options = options;
    this.#nact = new NactActor<Cell>(parent instanceof Cell ? parent.#nact : parent.system, nactName, this);
    this.#log = new RequestLog(host.log.child({ actor: ref.path, ...options.logFields }), () => this.#life.requestId);
    this.activity = new Activity(ref.path, observer);
    this.turns = new Turns({
      host,
      wake: () => this.#nact.wake(),
      handle: (envelope) => this.#handle(envelope),
    });
    const { turns, activity } = this;
    const log = this.#log;
    this.inbox = new Inbox({ ref, policy: options.mailbox, turns, activity, observer, log });
    const requestStop = (): void => this.#requestStop();
    this.#life = new Incarnation({ host, ref, log, inbox: this.inbox, activity, requestStop });
  }

  get parent(): Cell | undefined {
    return this.#nact.parentCell;
  }

  get restarts(): Restarts {
    this.#restarts ??= new Restarts(this.options, this.#host.clock);

    return this.#restarts;
  }

  get names(): readonly string[] {
    return this.#ties === undefined ? [] : [...this.#ties.names];
  }

  get ties(): Ties {
    this.#ties ??= { names: new Set(), watchers: new Map() };

    return this.#ties;
  }

  /** Children that are alive. */
  get children(): Cell[] {
    return this.#nact.childCells.filter(({ ending }) => ending === undefined);
  }

  /** True if other nodes may send it messages. */
  get isForNodes(): boolean {
    return this.behaviour.shapes !== undefined || this.behaviour.onTerm !== undefined;
  }

  /** True while a permanent actor pauses between restarts. */
  get isPausing(): boolean {
    return this.#restarts?.pause !== undefined && this.ending === undefined;
  }

  /** Type of the message being handled. */
  get current(): string | undefined {
    return this.#current?.message.type;
  }

  get timers(): Incarnation['timers'] {
    return this.#life.timers;
  }

  /** Creates the state. Throws what `init` throws. */
  start(requestId?: string): void {
    const life = this.#life;
    life.requestId = requestId;
    try {
      life.state = this.behaviour.init(life.context);
    } finally {
      life.requestId = undefined;
    }
  }

  /** Returns the state that the behaviour shows. Throws what its `inspect` throws. */
  inspect(): { state: unknown } | undefined {
    return this.behaviour.inspect === undefined ? undefined : { state: this.behaviour.inspect(this.#life.state) };
  }

  /** True if its protocol has this message. */
  understands(type: string): boolean {
    return this.#handler(type) !== undefined;
  }

  receive(message: Message, origin: Origin, reply?: Reply): boolean {
    return this.inbox.receive(message, origin, reply);
  }

  // --- the current message

  drain(): void | Promise<void> {
    return this.turns.drain();
  }

  #handle(envelope: Envelope): Promise<void> | undefined {
    const { message, timer, requestId, isOmitted } = envelope;
    const life = this.#life;

    if (timer !== undefined && !life.timers.take(timer)) return undefined;
    this.#current = envelope;
    if (envelope.escalated !== undefined) throw envelope.escalated.error;

    const isTerm = message instanceof TermEnvelope;
    const handler = isTerm ? undefined : this.#handler(message.type);
    if (isTerm ? this.behaviour.onTerm === undefined : handler === undefined) {
      this.#current = undefined;
      this.#unknown(envelope);
      return undefined;
    }

    this.activity.begins(envelope);
    life.requestId = requestId;
    life.fanOut.begin(isOmitted);
    const context = requestId === undefined ? life.context : new Context(life, requestId);
    const result: unknown = isTerm
      ? this.behaviour.onTerm?.(life.state, message.term, context)
      : handler?.(life.state, message, context);
    life.requestId = undefined;
    if (result instanceof Promise) {
      return result.then((value: unknown) => {
        // Unless the actor was killed while the handler waited.
        if (this.#current === envelope) this.#done(envelope, value);
      });
    }
    this.#done(envelope, result);

    return undefined;
  }

  #handler(type: string): ((...args: unknown[]) => unknown) | undefined {
    const handlers = this.behaviour.handlers as Record<string, (...args: unknown[]) => unknown>;

    return Object.hasOwn(handlers, type) ? handlers[type] : undefined;
  }

  /** Throws the error of a kill, which fails the actor. */
  #done(envelope: Envelope, value: unknown): void {
    this.activity.handled(envelope, this.#life.fanOut.omitted);
    this.#putDown();
    if (this.#stopRequested) void this.stop();
    if (value instanceof Later) this.#answerLater(envelope, value);
    else envelope.reply?.resolve(value);
    const fault = this.#restarts?.fault;
    if (fault !== undefined) throw fault.error;
  }

  #putDown(): void {
    this.#current = undefined;
    // What the handler has left running belongs to its request, whichever message came last.
    this.#life.fanOut.begin(false);
    this.turns.handled();
  }

  #answerLater({ message, reply, requestId }: Envelope, { promise }: Later<unknown>): void {
    promise.then(
      (value) => reply?.resolve(value),
      (error: unknown) => {
        const log = this.#log.forRequest(requestId);
        log.warn('actor.late_reply_failed', { messageType: message.type, error });
        reply?.reject(callCrashed(this.ref, message.type, error));
      },
    );
  }

  #unknown({ message, reply }: Envelope): void {
    this.#log.warn('actor.unknown_message', { kind: this.behaviour.kind, messageType: message.type });
    reply?.reject(unknownMessage(this.ref, message.type));
  }

  // --- faults

  /** Fails the actor with this error as if the current message's handler had thrown it. */
  kill(error: unknown): void {
    // An actor that is about to fail or to restart has failed already.
    if (this.ending !== undefined || this.isPausing || this.#restarts?.fault !== undefined) return;
    if (this.turns.abort(error)) return;
    if (this.#current !== undefined) this.restarts.fault = { error };
    else this.#nact.fail(error);
  }

  crashed(error: unknown): 'stop' | 'reset' {
    const envelope = this.#current;
    const messageType = envelope?.message.type ?? '';
    this.restarts.fault = undefined;
    this.#life.requestId = undefined;
    this.activity.failed(error, envelope);
    this.#putDown();
    this.turns.statusChanged();
    envelope?.reply?.reject(callCrashed(this.ref, messageType, error));

    const decision = this.ending === undefined ? this.#decide(error, messageType) : 'stop';
    const log = this.#log.forRequest(envelope?.requestId);
    log.error('actor.fault', { kind: this.behaviour.kind, messageType, decision, error });
    if (decision === 'restart' && this.#mayRestart()) {
      this.restarts.fault = { error };
      this.#stopRequested = false;
      this.#life.end();
      this.turns.end();
      return 'reset';
    }

    // Stop before nact acts on the decision: the caller whose message failed may reuse the actor's name immediately.
    void this.stop('crashed', error);
    this.turns.end();
    // Escalate through the parent's mailbox: nact's `escalate` would fail the parent in the middle of a handler.
    if (decision === 'escalate') this.parent?.inbox.escalate(error);

    return 'stop';
  }

  #decide(error: unknown, messageType: string): FaultDecision {
    const { supervise = 'stop', permanent = false } = this.options;
    if (permanent) return 'restart';
    if (typeof supervise === 'string') return supervise;

    const fault: Fault = { ref: this.ref, error, messageType, restarts: this.activity.counters.restarts };
    try {
      return supervise(fault);
    } catch (cause) {
      this.#log.error('actor.supervisor_failed', { error: cause });
      return 'stop';
    }
  }

  #mayRestart(): boolean {
    const { max: maxRestarts, windowMs: restartWindowMs } = this.restarts;
    const inTime = this.restarts.take();
    if (!inTime && this.options.permanent !== true) {
      this.#log.error('actor.too_many_restarts', { maxRestarts, restartWindowMs });
      return false;
    }
    this.activity.counters.restarts++;
    if (!inTime) this.#pauseRestart();

    return true;
  }

  restart(): void {
    if (this.ending === undefined && !this.isPausing) this.#startIncarnation();
  }

  /** Starts a new incarnation. Returns false if its `init` threw. */
  #startIncarnation(): boolean {
    const { restarts } = this;
    const { fault } = restarts;
    restarts.fault = undefined;
    this.#life = new Incarnation(this.#life.parts);
    try {
      this.start();
      return true;
    } catch (error) {
      this.#log.error('actor.restart_failed', { error });
      this.#abandon();
      if (this.options.permanent === true) this.#pauseRestart();
      else void this.stop('crashed', fault?.error);
      return false;
    }
  }

  /** Messages wait during the pause. */
  #pauseRestart(): void {
    const { restarts } = this;
    const pauseMs = restarts.takeWithPause();
    this.#log.error('actor.restart_paused', { pauseMs, restarts: this.activity.counters.restarts });
    this.turns.suspend();
    restarts.pause = this.#host.clock.setTimeout(() => {
      restarts.pause = undefined;
      if (this.#startIncarnation()) this.turns.resume();
    }, pauseMs);
  }

  // --- the end

  /** Ends the actor and its children, and accepts no more messages. Resolves when it has ended. */
  stop(reason: StopReason = 'normal', error?: unknown): Promise<void> {
    if (this.#stopped === undefined) {
      this.ending = error === undefined ? { reason } : { reason, error };
      for (const { reply } of this.turns.close()) reply?.reject(noProcess(this.ref));
      this.#life.end();
      this.#host.clock.clearTimeout(this.#restarts?.pause);
      this.#stopped = this.#finish(this.ending);
    }

    return this.#stopped;
  }

  #requestStop(): void {
    this.#stopRequested = true;
    if (this.#current === undefined) void this.stop();
  }

  /** Undoes the constructor after `start` failed. */
  discard(): void {
    this.ending = { reason: 'crashed' };
    this.#stopped = Promise.resolve();
    this.turns.close();
    this.#abandon();
    this.#leave();
  }

  /** Releases what an incarnation owns after its `init` failed. */
  #abandon(): void {
    this.#life.end();
    for (const child of this.#nact.childCells) void child.stop();
  }

  async #finish(end: { reason: StopReason; error?: unknown }): Promise<void> {
    if (this.turns.running !== undefined) await this.#withGrace(this.turns.running, 'handler');
    await Promise.all(this.#nact.childCells.map((child) => child.stop()));
    try {
      const lastWords = this.behaviour.onStop?.(this.#life.state, end);
      if (lastWords instanceof Promise) await this.#withGrace(lastWords, 'onStop');
    } catch (error) {
      this.#log.error('actor.stop_failed', { error });
    }

    this.#leave();
    const down: Down = { ref: this.ref, ...end };
    for (const watcher of this.#ties?.watchers.keys() ?? []) watcher(down);
    this.#ties?.watchers.clear();
  }

  #leave(): void {
    this.#host.gone(this.ref);
    this.#nact.leave();
    // nact drops a turn that was already requested.
    this.turns.end();
  }

  /** Waits for the actor's own code to settle, up to a limit. */
  #withGrace(work: Promise<void>, what: string): Promise<void> {
    const late = (): void => this.#log.error('actor.stop_overdue', { what, graceMs: STOP_GRACE_MS });

    return inTime(work, { timeoutMs: STOP_GRACE_MS, late, clock: this.#host.clock });
  }
}
