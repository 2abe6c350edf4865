import type { Log } from '@bloom/log';
import type { Clock } from '@bloom/time';
import type { AnyBehaviour, AnyContext, AnyOptions, Down } from '../behaviour.js';
import { RequestLog } from '../observation/request.js';
import type { AnyRef } from '../ref.js';
import type { Message } from './envelope.js';
import type { TimerState, Timers } from './timers.js';

/** The actor behind a context. */
export interface ContextOwner {
  readonly ref: AnyRef;
  /** Logger whose lines carry the id of the request being handled. */
  readonly log: Log;
  /** Logger without a request id. */
  readonly plainLog: Log;
  readonly timers: Timers;
  /** Ends of the watches that this incarnation has begun. */
  readonly watching: Set<() => void>;
  requestId: string | undefined;
  /** True while that incarnation lives. */
  isCurrent(incarnation: number): boolean;
  readonly clock: Clock;
  cast(target: AnyRef | string, message: Message, requestId: string | undefined): boolean;
  call(target: AnyRef | string, message: Message, requestId: string | undefined, timeoutMs?: number): Promise<unknown>;
  spawnChild(behaviour: AnyBehaviour, options: AnyOptions, requestId: string | undefined): AnyRef;
  watch(target: AnyRef, listener: (down: Down) => void): () => void;
  /** Puts a message of its own making into its mailbox. */
  arrive(message: Message, from: string, timer?: TimerState): void;
  requestStop(): void;
  end(target: AnyRef): void;
}

/**
 * What one incarnation of an actor may do. Work that an earlier incarnation started must not touch the present one, so
 * timers, watches and `stop` have no effect once their incarnation is over.
 *
 * With a request id it belongs to one message: everything sent through it carries that id, however late. One is made
 * per such message, so it holds next to nothing. Without, it carries the id of the message being handled.
 */
export class Context implements AnyContext {
  readonly #owner: ContextOwner;
  readonly #incarnation: number;
  readonly #requestId: string | undefined;
  #log: Log | undefined;

  constructor(owner: ContextOwner, incarnation: number, requestId?: string) {
    this.#owner = owner;
    this.#incarnation = incarnation;
    this.#requestId = requestId;
  }

  get self(): AnyRef {
    return this.#owner.ref;
  }

  get requestId(): string | undefined {
    return this.#requestId ?? this.#owner.requestId;
  }

  get log(): Log {
    const id = this.#requestId;
    this.#log ??= id === undefined ? this.#owner.log : new RequestLog(this.#owner.plainLog, () => id);

    return this.#log;
  }

  inRequest<T>(work: () => T): T {
    if (this.#requestId === undefined) return work();
    const owner = this.#owner;
    const before = owner.requestId;
    owner.requestId = this.#requestId;
    try {
      return work();
    } finally {
      owner.requestId = before;
    }
  }

  now(): number {
    return this.#owner.clock.now();
  }

  wall(): number {
    return this.#owner.clock.wall();
  }

  cast(target: AnyRef | string, message: Message): boolean {
    return this.#owner.cast(target, message, this.requestId);
  }

  call(target: AnyRef | string, message: Message, timeoutMs?: number): never {
    return this.#owner.call(target, message, this.requestId, timeoutMs) as never;
  }

  spawn(behaviour: AnyBehaviour, options: AnyOptions = {}): never {
    return this.#owner.spawnChild(behaviour, options, this.requestId) as never;
  }

  monitor(target: AnyRef, toMessage: (down: Down) => Message): () => void {
    const owner = this.#owner;
    if (!this.#isCurrent) return () => {};
    const demonitor = owner.watch(target, (down) => {
      owner.watching.delete(cancel);
      if (this.#isCurrent) owner.arrive(toMessage(down), target.path);
    });
    const cancel = (): void => {
      owner.watching.delete(cancel);
      demonitor();
    };
    owner.watching.add(cancel);

    return cancel;
  }

  setTimer(name: string, ms: number, message: Message): void {
    const owner = this.#owner;
    if (!this.#isCurrent) return;
    owner.timers.set(name, ms, (timer) => owner.arrive(message, owner.ref.path, timer));
  }

  clearTimer(name: string): void {
    this.#owner.timers.clear(name);
  }

  stop(): void {
    if (this.#isCurrent) this.#owner.requestStop();
  }

  end(target: AnyRef): void {
    this.#owner.end(target);
  }

  get #isCurrent(): boolean {
    return this.#owner.isCurrent(this.#incarnation);
  }
}
