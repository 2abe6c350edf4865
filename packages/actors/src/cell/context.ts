import type { Log } from '@bloom/log';
import type { AnyBehaviour, AnyContext, AnyOptions, Down } from '../behaviour.js';
import type { Activity } from '../observation/activity.js';
import { FanOut } from '../observation/fan-out.js';
import type { RequestLog } from '../observation/request.js';
import type { ActorRef, AnyRef } from '../ref.js';
import type { Message, Origin } from '../envelope.js';
import type { CellHost } from './host.js';
import type { Inbox } from './inbox.js';
import { Timers } from './timers.js';

/** The parts of an actor that its code acts through. They outlast a restart. */
export interface ActorParts {
  readonly host: CellHost;
  readonly ref: ActorRef;
  /** Logger whose lines carry the id of the request being handled. */
  readonly log: RequestLog;
  readonly inbox: Inbox;
  readonly activity: Activity;
  /** Ends the actor after the current message. */
  requestStop(): void;
}

/** One life of an actor, from `init` to its restart or end. What it owns ends with it. */
export class Incarnation {
  readonly parts: ActorParts;
  /** The context of `init`, and of messages outside any request. */
  readonly context: Context;
  /** Origin of what the actor sends outside any request. */
  readonly origin: Origin;
  /** What the current handler sends for its request. */
  readonly fanOut = new FanOut();
  state: unknown;
  /** Id of the request that the actor's code is currently running for. */
  requestId: string | undefined;
  #over = false;
  #timers: Timers | undefined;
  #watches: Set<() => void> | undefined;

  constructor(parts: ActorParts) {
    this.parts = parts;
    this.context = new Context(this);
    this.origin = { from: parts.ref.path, requestId: undefined };
  }

  get isOver(): boolean {
    return this.#over;
  }

  get timers(): Timers {
    this.#timers ??= new Timers(this.parts.host.clock);

    return this.#timers;
  }

  /** Functions that end the watches started by this incarnation. */
  get watches(): Set<() => void> {
    this.#watches ??= new Set();

    return this.#watches;
  }

  end(): void {
    this.#over = true;
    this.#timers?.clearAll();
    for (const demonitor of this.#watches ?? []) demonitor();
    this.#watches?.clear();
  }
}

/**
 * What one incarnation of an actor may do. Work that an earlier incarnation started must not touch the current one, so
 * timers, watches and `stop` have no effect once their incarnation is over.
 *
 * A context with a request id belongs to one message, and everything sent through it carries that id, however late. One
 * is created per such message, so it holds next to nothing. A context without an id passes on the current message's.
 */
export class Context implements AnyContext {
  readonly #life: Incarnation;
  readonly #requestId: string | undefined;
  #log: Log | undefined;

  constructor(life: Incarnation, requestId?: string) {
    this.#life = life;
    this.#requestId = requestId;
  }

  get self(): AnyRef {
    return this.#life.parts.ref;
  }

  get requestId(): string | undefined {
    return this.#requestId ?? this.#life.requestId;
  }

  get log(): Log {
    const { log } = this.#life.parts;
    this.#log ??= this.#requestId === undefined ? log : log.forRequest(this.#requestId);

    return this.#log;
  }

  inRequest<T>(work: () => T): T {
    if (this.#requestId === undefined) return work();
    const life = this.#life;
    const before = life.requestId;
    life.requestId = this.#requestId;
    try {
      return work();
    } finally {
      life.requestId = before;
    }
  }

  now(): number {
    return this.#life.parts.host.clock.now();
  }

  wall(): number {
    return this.#life.parts.host.clock.wall();
  }

  cast(target: AnyRef | string, message: Message): boolean {
    const { parts, origin, fanOut } = this.#life;
    const requestId = this.#requestId ?? this.#life.requestId;
    parts.activity.sent(target, message, requestId);
    if (requestId === undefined) return parts.host.send(target, message, origin);
    const isOmitted = fanOut.omits(message.type);

    return parts.host.send(target, message, { from: origin.from, requestId, isOmitted });
  }

  call(target: AnyRef | string, message: Message, timeoutMs?: number): never {
    const { parts, fanOut } = this.#life;
    const { requestId } = this;
    const { isOmitted } = fanOut;
    parts.activity.sent(target, message, requestId);

    return parts.host.ask(target, message, { from: parts.ref.path, requestId, isOmitted, timeoutMs }) as never;
  }

  spawn(behaviour: AnyBehaviour, options: AnyOptions = {}): never {
    const { host, ref } = this.#life.parts;

    return host.spawnChild(ref, { behaviour, options }, this.requestId) as never;
  }

  monitor(target: AnyRef, toMessage: (down: Down) => Message): () => void {
    const life = this.#life;
    if (life.isOver) return () => {};
    const { host, ref, inbox } = life.parts;
    const report = (down: Down): void => {
      life.watches.delete(cancel);
      if (!life.isOver) inbox.arrive(toMessage(down), target.path);
    };
    const demonitor = host.watch(target, report, ref.path);
    const cancel = (): void => {
      life.watches.delete(cancel);
      demonitor();
    };
    life.watches.add(cancel);

    return cancel;
  }

  setTimer(name: string, ms: number, message: Message): void {
    const { isOver, timers, parts } = this.#life;
    if (isOver) return;
    timers.set(name, ms, (timer) => parts.inbox.arrive(message, parts.ref.path, timer));
  }

  clearTimer(name: string): void {
    this.#life.timers.clear(name);
  }

  stop(): void {
    if (!this.#life.isOver) this.#life.parts.requestStop();
  }

  end(target: AnyRef): void {
    void this.#life.parts.host.stop(target);
  }
}
