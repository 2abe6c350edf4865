import { later, type ActorRef, type Behaviour, type Down, type FaultDecision } from '../index.js';
import { takes, unchecked, type Shapes } from '../shape.js';
import type { Protocol } from '../protocol.js';

export type CounterProtocol = {
  add: (message: { by: number }) => void;
  read: (message: object) => number;
  fail: (message: { why: string }) => void;
  slow: (message: { until: Promise<void> }) => string;
  eventually: (message: { value: Promise<string> }) => string;
  quit: (message: object) => void;
  tickIn: (message: { ms: number }) => void;
  clearTick: (message: object) => void;
  tick: (message: object) => void;
  hatch: (message: { name: string; supervise: FaultDecision }) => ActorRef<CounterProtocol>;
  watch: (message: { target: ActorRef<CounterProtocol> }) => void;
  down: (message: { down: Down }) => void;
  downs: (message: object) => Down[];
};

export interface CounterState {
  total: number;
  downs: Down[];
}

export interface Life {
  starts: number;
  ends: string[];
}

export function counter(life: Life = { starts: 0, ends: [] }): Behaviour<CounterProtocol, CounterState> {
  return {
    kind: 'counter',
    shapes: looseShapes<CounterProtocol>('add', 'read', 'fail'),
    init: () => {
      life.starts++;
      return { total: 0, downs: [] };
    },
    handlers: {
      add: (state, { by }) => {
        state.total += by;
      },
      read: (state) => state.total,
      fail: (_state, { why }) => {
        throw new Error(why);
      },
      slow: async (_state, { until }) => {
        await until;
        return 'done';
      },
      eventually: (_state, { value }) => later(value),
      quit: (_state, _message, context) => context.stop(),
      tickIn: (_state, { ms }, context) => context.setTimer('tick', ms, { type: 'tick' }),
      clearTick: (_state, _message, context) => context.clearTimer('tick'),
      tick: (state) => {
        state.total += 1_000;
      },
      hatch: (_state, { name, supervise }, context) => context.spawn(counter(), { name, supervise }),
      watch: (_state, { target }, context) => {
        context.monitor(target, (down) => ({ type: 'down', down }));
      },
      down: (state, { down }) => {
        state.downs.push(down);
      },
      downs: (state) => state.downs,
    },
    onStop: (_state, { reason }) => {
      life.ends.push(reason);
    },
  };
}

export function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: Error) => void } {
  let resolve: (value: T) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });

  return { promise, resolve, reject };
}

/** Shapes of a protocol for tests that do not depend on the shape of messages: any fields, any answer. */
export function looseShapes<P extends Protocol>(...types: readonly (keyof P & string)[]): Shapes<P> {
  const any = { message: unchecked(), answer: takes({}, unchecked()).answer };

  return Object.fromEntries(types.map((type) => [type, any])) as unknown as Shapes<P>;
}
