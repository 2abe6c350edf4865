import type { ActorContext } from './behaviour.js';
import type { Cell } from './cell.js';
import type { AnyOptions } from './cell-host.js';
import type { Message } from './envelope.js';
import { RequestLog } from './request.js';

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

/** The same for one message of a request: what it sends carries the id, however late. */
export function requestContext(cell: Cell, context: AnyContext, requestId: string): AnyContext {
  const { host } = cell;

  return {
    ...context,
    requestId,
    log: new RequestLog(cell.plainLog, () => requestId),
    inRequest: (work) => {
      const before = cell.requestId;
      cell.requestId = requestId;
      try {
        return work();
      } finally {
        cell.requestId = before;
      }
    },
    cast: (target, message) => host.observer.cast(cell, target, message as Message, requestId),
    call: (target, message, timeoutMs) =>
      host.observer.call(cell, target, message as Message, requestId, timeoutMs) as never,
    spawn: (behaviour, options = {}) => host.spawnChild(cell, behaviour, options as AnyOptions, requestId) as never,
  };
}
