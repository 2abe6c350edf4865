import type { Log } from '@bloom/log';
import type { ActorContext, Behaviour, Down } from '../behaviour.js';
import type { Cell } from './cell.js';
import type { AnyOptions } from './cell-host.js';
import type { Message } from './envelope.js';
import type { AnyRef } from '../ref.js';
import { RequestLog } from '../observation/request.js';

// The cell carries any behaviour; types were checked at `spawn`.
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyContext = ActorContext<any>;

/** What one incarnation of an actor may do. */
export function createContext(cell: Cell): AnyContext {
  const { host, ref, timers, watching } = cell;
  const isCurrent = (): boolean => cell.isCurrent(context);
  const context: AnyContext = {
    self: ref,
    log: cell.log,
    get requestId() {
      return cell.requestId;
    },
    inRequest: (work) => work(),
    now: () => host.clock.now(),
    cast: (target, message) => host.observer.cast(cell, target, message as Message, cell.requestId),
    call: (target, message, timeoutMs) =>
      host.observer.call(cell, target, message as Message, cell.requestId, timeoutMs) as never,
    spawn: (behaviour, options = {}) =>
      host.spawnChild(cell, behaviour, options as AnyOptions, cell.requestId) as never,
    monitor: (target, toMessage) => {
      if (!isCurrent()) return () => {};
      const demonitor = host.watch(
        target,
        (down) => {
          watching.delete(cancel);
          if (!isCurrent()) return;
          cell.counters.received++;
          const at = host.observer.turn.stamp();
          const message = toMessage(down) as Message;
          cell.push({
            message,
            reply: undefined,
            timer: undefined,
            escalated: undefined,
            from: target.path,
            requestId: undefined,
            at,
          });
        },
        ref.path,
      );
      const cancel = (): void => {
        watching.delete(cancel);
        demonitor();
      };
      watching.add(cancel);

      return cancel;
    },
    setTimer: (name, ms, message) => {
      if (!isCurrent()) return;
      timers.set(name, ms, (timer) => {
        cell.counters.received++;
        const at = host.observer.turn.stamp();
        cell.push({
          message: message as Message,
          reply: undefined,
          timer,
          escalated: undefined,
          from: ref.path,
          requestId: undefined,
          at,
        });
      });
    },
    clearTimer: (name) => timers.clear(name),
    stop: () => {
      if (isCurrent()) cell.requestStop();
    },
    end: (target) => void host.stop(target),
  };

  return context;
}

/**
 * The same for one message of a request: what it sends carries the id, however late. One is made per message, so that it
 * holds next to nothing.
 */
export class RequestContext implements AnyContext {
  readonly #cell: Cell;
  readonly #context: AnyContext;
  readonly requestId: string;
  #log: RequestLog | undefined;

  constructor(cell: Cell, context: AnyContext, requestId: string) {
    this.#cell = cell;
    this.#context = context;
    this.requestId = requestId;
  }

  get self(): AnyContext['self'] {
    return this.#context.self;
  }

  get log(): Log {
    this.#log ??= new RequestLog(this.#cell.plainLog, () => this.requestId);

    return this.#log;
  }

  inRequest<T>(work: () => T): T {
    const cell = this.#cell;
    const before = cell.requestId;
    cell.requestId = this.requestId;
    try {
      return work();
    } finally {
      cell.requestId = before;
    }
  }

  now(): number {
    return this.#context.now();
  }

  cast(target: AnyRef | string, message: Message): boolean {
    return this.#cell.host.observer.cast(this.#cell, target, message, this.requestId);
  }

  call(target: AnyRef | string, message: Message, timeoutMs?: number): never {
    return this.#cell.host.observer.call(this.#cell, target, message, this.requestId, timeoutMs) as never;
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  spawn(behaviour: Behaviour<any, any>, options: object = {}): never {
    return this.#cell.host.spawnChild(this.#cell, behaviour, options as AnyOptions, this.requestId) as never;
  }

  monitor(target: AnyRef, toMessage: (down: Down) => Message): () => void {
    return this.#context.monitor(target, toMessage);
  }

  setTimer(name: string, ms: number, message: Message): void {
    this.#context.setTimer(name, ms, message);
  }

  clearTimer(name: string): void {
    this.#context.clearTimer(name);
  }

  stop(): void {
    this.#context.stop();
  }

  end(target: AnyRef): void {
    this.#context.end(target);
  }
}
