import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { silentLog, type Log } from '@bloom/log';
import { counter, deferred, type CounterProtocol, type CounterState } from './testing/counter.js';
import { openActorSystem, type ActorRef, type ActorSystem, type Behaviour, type Down } from './index.js';

let clock: ManualClock;
let system: ActorSystem;

beforeEach(() => {
  clock = new ManualClock();
  system = openActorSystem({ log: silentLog, clock });
});
afterEach(() => system.close());

describe('messages', () => {
  test('casts are handled in order, and a call answers after them', async () => {
    const ref = system.spawn(counter());
    for (let i = 1; i <= 1_000; i++) expect(system.cast(ref, { type: 'add', by: i })).toBe(true);

    expect(await system.call(ref, { type: 'read' })).toBe(500_500);
  });

  test('an async handler holds up only its own mailbox', async () => {
    const [slow, other] = [system.spawn(counter()), system.spawn(counter())];
    const gate = deferred<void>();
    const answer = system.call(slow, { type: 'slow', until: gate.promise });
    const after = system.call(slow, { type: 'read' });
    let answered = false;
    void after.then(() => (answered = true));

    expect(await system.call(other, { type: 'read' })).toBe(0);
    expect(answered).toBe(false);
    gate.resolve();
    expect(await answer).toBe('done');
    expect(await after).toBe(0);
  });

  test('a later reply leaves the mailbox free', async () => {
    const ref = system.spawn(counter());
    const value = deferred<string>();
    const answer = system.call(ref, { type: 'eventually', value: value.promise });

    expect(await system.call(ref, { type: 'read' })).toBe(0);
    value.resolve('at last');
    expect(await answer).toBe('at last');
  });

  test('a later reply that fails is a failure of the call, not of the actor', async () => {
    const ref = system.spawn(counter());
    const value = deferred<string>();
    const answer = system.call(ref, { type: 'eventually', value: value.promise });
    await system.idle();
    value.reject(new Error('no luck'));

    await expect(answer).rejects.toMatchObject({ code: 'CRASHED', message: expect.stringContaining('no luck') });
    expect(system.isAlive(ref)).toBe(true);
  });

  test('a message of unknown type fails only its call', async () => {
    const ref = system.spawn(counter());
    system.cast(ref, { type: 'constructor' } as never);

    await expect(system.call(ref, { type: 'toString' } as never)).rejects.toMatchObject({ code: 'UNKNOWN_MESSAGE' });
    expect(system.isAlive(ref)).toBe(true);
  });

  test('another actor still answers during a flood', async () => {
    const [busy, other] = [system.spawn(counter()), system.spawn(counter())];
    for (let i = 0; i < 9_000; i++) system.cast(busy, { type: 'add', by: 1 });
    await system.call(other, { type: 'read' });

    expect(system.info(busy)?.queue).toBeGreaterThan(0);
  });
});

describe('failing calls', () => {
  test('a missing actor, a timeout and a crash have different codes', async () => {
    const ref = system.spawn(counter());
    const gate = deferred<void>();
    const never = system.call(ref, { type: 'slow', until: gate.promise }, 250);
    await clock.advanceAsync(250);
    await expect(never).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: '/counter-0 did not answer slow within 250 ms',
    });

    const crashing = system.spawn(counter());
    await expect(system.call(crashing, { type: 'fail', why: 'boom' })).rejects.toMatchObject({
      code: 'CRASHED',
      cause: expect.objectContaining({ message: 'boom' }),
    });
    await system.idle();
    await expect(system.call(crashing, { type: 'read' })).rejects.toMatchObject({ code: 'NO_PROCESS' });
    gate.resolve();
    await expect(system.call('nobody', { type: 'read' } as never)).rejects.toMatchObject({ code: 'NO_PROCESS' });
  });

  test('calls waiting in the mailbox of an ending actor fail with NO_PROCESS', async () => {
    const ref = system.spawn(counter());
    system.cast(ref, { type: 'quit' });
    const waiting = system.call(ref, { type: 'read' });

    await expect(waiting).rejects.toMatchObject({ code: 'NO_PROCESS' });
  });

  test('an answered call leaves no timer behind', async () => {
    const ref = system.spawn(counter());
    await system.call(ref, { type: 'read' });

    expect(clock.pending).toBe(0);
  });
});

describe('mailbox limits', () => {
  test('casts beyond the limit are dropped and counted, calls fail, and essential types pass', async () => {
    const ref = system.spawn(counter(), { mailbox: { limit: 10, essential: ['tick'] } });
    for (let i = 0; i < 15; i++) system.cast(ref, { type: 'add', by: 1 });

    expect(system.cast(ref, { type: 'add', by: 1 })).toBe(false);
    await expect(system.call(ref, { type: 'read' })).rejects.toMatchObject({ code: 'MAILBOX_FULL', limit: 10 });
    expect(system.cast(ref, { type: 'tick' })).toBe(true);

    expect(await system.idle().then(() => system.call(ref, { type: 'read' }))).toBe(1_010);
    expect(system.info(ref)).toMatchObject({ received: 19, handled: 12, overflowed: 7, failed: 0, queue: 0 });
  });
});

describe('endings', () => {
  test('stop waits for the current message, then ends children before their parent', async () => {
    const order: string[] = [];
    const named = (name: string): Behaviour<CounterProtocol, CounterState> => ({
      ...counter(),
      init: (context) => {
        if (name === 'parent') context.spawn(named('child'), { name: 'child' });
        return { total: 0, downs: [] };
      },
      onStop: () => void order.push(name),
    });
    const gate = deferred<void>();
    const ref = system.spawn(named('parent'));
    const answer = system.call(ref, { type: 'slow', until: gate.promise });
    await new Promise((resolve) => setImmediate(resolve));
    const stopped = system.stop(ref);
    expect(system.isAlive(ref)).toBe(false);
    gate.resolve();

    expect(await answer).toBe('done');
    await stopped;
    expect(order).toEqual(['child', 'parent']);
    expect(system.size).toBe(0);
  });

  test('an actor outlives its children, even those that were already ending', async () => {
    const ends: string[] = [];
    let release: () => void = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    const leaf: Behaviour<{ leave: (message: object) => void }, null> = {
      kind: 'leaf',
      init: () => null,
      handlers: { leave: (_state, _message, context) => context.stop() },
      onStop: async () => {
        await gate;
        ends.push('child');
      },
    };
    const parent: Behaviour<{ child: (message: object) => ActorRef<{ leave: (message: object) => void }> }, null> = {
      kind: 'parent',
      init: () => null,
      handlers: { child: (_state, _message, context) => context.spawn(leaf) },
      onStop: () => void ends.push('parent'),
    };
    const ref = system.spawn(parent);
    const child = await system.call(ref, { type: 'child' });
    await system.call(child, { type: 'leave' });
    const stopped = system.stop(ref);
    await new Promise((resolve) => setImmediate(resolve));
    release();
    await stopped;
    expect(ends).toEqual(['child', 'parent']);
  });

  test('a handler that never ends delays its actor only by the grace period', async () => {
    const ref = system.spawn(counter());
    void system.call(ref, { type: 'slow', until: new Promise<void>(() => {}) }).catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    const stopped = system.stop(ref);
    await clock.advanceAsync(5_000);
    await stopped;

    expect(system.size).toBe(0);
  });

  test('the name of an ending actor is free immediately', async () => {
    const first = system.spawn(counter(), { name: 'only' });
    expect(() => system.spawn(counter(), { name: 'only' })).toThrow('/only is taken by a living actor');
    const stopped = system.stop(first);
    const second = system.spawn(counter(), { name: 'only' });
    await stopped;

    expect(second.path).toBe(first.path);
    expect(first.key).not.toBe(second.key);
    expect(system.cast(first, { type: 'add', by: 1 })).toBe(false);
    expect(await system.call(second, { type: 'read' })).toBe(0);
    expect(system.deadLetters).toBe(1);
  });

  test('closing ends everything, and nothing can start afterwards', async () => {
    const parent = system.spawn(counter());
    await system.call(parent, { type: 'hatch', name: 'child', supervise: 'stop' });
    await system.close();

    expect(system.size).toBe(0);
    expect(() => system.spawn(counter())).toThrow('stopped');
  });

  test('a system that nobody uses any more is freed, although nobody has closed it', async () => {
    const open = async (): Promise<WeakRef<ActorSystem>> => {
      const unclosed = openActorSystem({ log: silentLog });
      expect(await unclosed.call(unclosed.spawn(counter()), { type: 'read' })).toBe(0);
      return new WeakRef(unclosed);
    };
    const unclosed = await open();
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(unclosed.deref()).toBeUndefined();
  });
});

describe('children', () => {
  test('children may be kept in folders, add log fields, and be ended by their parent', async () => {
    const bound: unknown[] = [];
    const log: Log = {
      ...silentLog,
      child: (fields) => {
        bound.push(fields);
        return log;
      },
    };
    const logged = openActorSystem({ log, clock });
    type ParentProtocol = { end: (message: { child: ActorRef<CounterProtocol> }) => void };
    const children: ActorRef<CounterProtocol>[] = [];
    const parent = logged.spawn<ParentProtocol, null>({
      kind: 'parent',
      init: (context) => {
        for (const folder of ['left', 'right']) {
          children.push(context.spawn(counter(), { folder, name: 'same', logFields: { side: folder } }));
        }
        return null;
      },
      handlers: { end: (_state, { child }, context) => context.end(child) },
    });
    const [left, right] = children as [ActorRef<CounterProtocol>, ActorRef<CounterProtocol>];
    logged.cast(parent, { type: 'end', child: left });
    await logged.idle();

    expect(left.path).toBe('/parent-0/left/same');
    expect(right.path).toBe('/parent-0/right/same');
    expect(logged.isAlive(left)).toBe(false);
    expect(logged.isAlive(right)).toBe(true);
    expect(bound).toContainEqual({ actor: '/parent-0/left/same', side: 'left' });
    await logged.close();
  });
});

describe('monitors', () => {
  test('an actor is notified of an end once, immediately if it is in the past', async () => {
    const [watcher, target] = [system.spawn(counter()), system.spawn(counter())];
    await system.call(watcher, { type: 'watch', target });
    await system.stop(target);
    await system.call(watcher, { type: 'watch', target });
    await system.idle();

    expect(await system.call(watcher, { type: 'downs' })).toEqual([
      { ref: target, reason: 'normal' },
      { ref: target, reason: 'noprocess' },
    ]);
  });

  test('a cancelled watch stays silent', async () => {
    const target = system.spawn(counter());
    const downs: Down[] = [];
    const cancel = system.monitor(target, (down) => downs.push(down));
    cancel();
    await system.stop(target);

    expect(downs).toEqual([]);
  });

  test('a dead watcher leaves no watch behind', async () => {
    const [watcher, target] = [system.spawn(counter()), system.spawn(counter())];
    await system.call(watcher, { type: 'watch', target });
    expect(system.info(target)?.watchers).toBe(1);
    await system.stop(watcher);

    expect(system.info(target)?.watchers).toBe(0);
  });
});

describe('timers', () => {
  test('timers follow the given clock, restart under the same name, and can be cleared', async () => {
    const ref = system.spawn(counter());
    await system.call(ref, { type: 'tickIn', ms: 100 });
    await clock.advanceAsync(60, () => system.idle());
    await system.call(ref, { type: 'tickIn', ms: 100 });
    await clock.advanceAsync(60, () => system.idle());
    expect(await system.call(ref, { type: 'read' })).toBe(0);
    await clock.advanceAsync(40, () => system.idle());
    expect(await system.call(ref, { type: 'read' })).toBe(1_000);

    await system.call(ref, { type: 'tickIn', ms: 100 });
    await system.call(ref, { type: 'clearTick' });
    expect(clock.pending).toBe(0);
  });

  test('a timer cleared after it fired but before its message was handled stays silent', async () => {
    const ref = system.spawn(counter());
    await system.call(ref, { type: 'tickIn', ms: 100 });
    const gate = deferred<void>();
    void system.call(ref, { type: 'slow', until: gate.promise });
    system.cast(ref, { type: 'clearTick' });
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advanceAsync(100);
    gate.resolve();
    await system.idle();

    expect(await system.call(ref, { type: 'read' })).toBe(0);
  });

  test('timers end with their actor', async () => {
    const ref = system.spawn(counter());
    await system.call(ref, { type: 'tickIn', ms: 100 });
    await system.stop(ref);

    expect(clock.pending).toBe(0);
  });
});

describe('names and listing', () => {
  test('a registered name reaches its actor until the actor ends', async () => {
    const ref = system.spawn(counter());
    system.register('tally', ref);
    system.cast<CounterProtocol>('tally', { type: 'add', by: 3 });

    expect(await system.call<CounterProtocol, 'read'>('tally', { type: 'read' })).toBe(3);
    expect(() => system.register('tally', system.spawn(counter()))).toThrow('the name tally is taken');
    await system.stop(ref);
    expect(system.whereis('tally')).toBeUndefined();
    system.register('tally', system.spawn(counter()));
    expect(system.whereis('tally')).toBeDefined();
  });

  test('the listing is bounded and shows tree, counters and timers', async () => {
    const parent = system.spawn(counter(), { name: 'a/b 100%' });
    const child = await system.call(parent, { type: 'hatch', name: 'child', supervise: 'stop' });
    await system.call(child, { type: 'tickIn', ms: 5 });

    expect(system.list({ limit: 10, match: (path) => path.endsWith('/child') })).toEqual([
      {
        ref: child,
        path: '/a%2Fb 100%25/child',
        kind: 'counter',
        parent: '/a%2Fb 100%25',
        children: 0,
        queue: 0,
        oldestMs: null,
        status: 'idle',
        statusAt: clock.wall(),
        current: null,
        p50Ms: 0.025,
        p99Ms: 0.0495,
        busyMs: 0,
        timers: ['tick'],
        names: [],
        watchers: 0,
        startedAt: clock.wall(),
        received: 1,
        handled: 1,
        failed: 0,
        overflowed: 0,
        restarts: 0,
        sent: 0,
      },
    ]);
    expect(system.list({ limit: 1 })).toHaveLength(1);
  });

  test('10,000 children start and end without leaving anything behind', async () => {
    const parent = system.spawn(counter());
    await Promise.all(
      Array.from({ length: 10_000 }, (_, i) =>
        system.call(parent, { type: 'hatch', name: `c${i}`, supervise: 'stop' }, 60_000),
      ),
    );
    expect(system.size).toBe(10_001);
    await system.stop(parent);

    expect(system.size).toBe(0);
    expect(clock.pending).toBe(0);
  });
});
