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

/** Starts a child below a child of a top-level actor; `ends` receives the name of each that ends. */
function threeGenerations(ends: string[]): Behaviour<CounterProtocol, CounterState> {
  const names = ['grandparent', 'parent', 'child'];
  const generation = (level: number): Behaviour<CounterProtocol, CounterState> => ({
    ...counter(),
    init: (context) => {
      if (level < 2) context.spawn(generation(level + 1), { name: names[level + 1] as string });
      return { total: 0, downs: [] };
    },
    onStop: () => void ends.push(names[level] as string),
  });

  return generation(0);
}

describe('actor tree', () => {
  test('a stop reaches all generations, youngest first', async () => {
    const ends: string[] = [];
    await system.stop(system.spawn(threeGenerations(ends)));

    expect(ends).toEqual(['child', 'parent', 'grandparent']);
    expect(system.size).toBe(0);
  });

  test('a crash ends all generations, youngest first', async () => {
    const ends: string[] = [];
    const ref = system.spawn(threeGenerations(ends));
    system.cast(ref, { type: 'fail', why: 'boom' });
    await system.idle();

    expect(ends).toEqual(['child', 'parent', 'grandparent']);
    expect(system.size).toBe(0);
  });

  test('a restart ends the descendants, and the new incarnation may spawn children of the same names', async () => {
    const ends: string[] = [];
    const ref = system.spawn(threeGenerations(ends), { name: 'top', supervise: 'restart' });
    const before = system.at('/top/parent');
    system.cast(ref, { type: 'fail', why: 'boom' });
    await system.idle();

    expect(ends).toEqual(['child', 'parent']);
    expect(system.at('/top/parent')).toBeDefined();
    expect(system.at('/top/parent')?.key).not.toBe(before?.key);
    expect(system.details(ref)?.childPaths).toEqual(['/top/parent']);
    expect(system.size).toBe(3);
  });

  test('a successor may have children of the same names while its predecessor is still ending', async () => {
    const gate = deferred<void>();
    const first = system.spawn(counter(), { name: 'room' });
    const old = await system.call(first, { type: 'hatch', name: 'ann', supervise: 'stop' });
    void system.call(first, { type: 'slow', until: gate.promise });
    await system.idle();
    const stopped = system.stop(first);
    const second = system.spawn(counter(), { name: 'room' });
    const young = await system.call(second, { type: 'hatch', name: 'ann', supervise: 'stop' });

    expect(young.path).toBe(old.path);
    gate.resolve();
    await stopped;
    expect(system.isAlive(old)).toBe(false);
    expect(system.isAlive(young)).toBe(true);
  });

  test('actor names may contain what nact refuses in names', async () => {
    const parent = system.spawn(counter(), { name: 'node@host:1' });
    const child = await system.call(parent, { type: 'hatch', name: 'track:é/1', supervise: 'stop' });

    expect(child.path).toBe('/node@host:1/track:é%2F1');
    expect(await system.call(child, { type: 'read' })).toBe(0);
  });

  test('closing ends the youngest top-level actor first', async () => {
    const ends: string[] = [];
    const named = (name: string): Behaviour<CounterProtocol, CounterState> => ({
      ...counter(),
      onStop: () => void ends.push(name),
    });
    const first = system.spawn(named('first'), { name: 'same' });
    system.spawn(named('second'));
    await system.stop(first);
    system.spawn(named('third'), { name: 'same' });
    await system.close();

    expect(ends).toEqual(['first', 'third', 'second']);
  });
});

describe('recovery after a fault', () => {
  test('the caller whose message failed finds the name free immediately', async () => {
    const ref = system.spawn(counter(), { name: 'only' });
    await expect(system.call(ref, { type: 'fail', why: 'boom' })).rejects.toMatchObject({ code: 'CRASHED' });

    expect(system.isAlive(ref)).toBe(false);
    expect(system.isAlive(system.spawn(counter(), { name: 'only' }))).toBe(true);
  });

  test('an actor whose restart fails ends with the error of its handler', async () => {
    const events: string[] = [];
    const log: Log = { ...silentLog, error: (event) => events.push(event), child: () => log };
    const logged = openActorSystem({ log, clock });
    let starts = 0;
    const once: Behaviour<CounterProtocol, CounterState> = {
      ...counter(),
      init: () => {
        if (++starts > 1) throw new Error('cannot begin again');
        return { total: 0, downs: [] };
      },
    };
    const downs: Down[] = [];
    const ref = logged.spawn(once, { supervise: 'restart' });
    logged.monitor(ref, (down) => downs.push(down));
    logged.cast(ref, { type: 'fail', why: 'boom' });
    await logged.idle();

    expect(downs).toEqual([{ ref, reason: 'crashed', error: expect.objectContaining({ message: 'boom' }) }]);
    expect(events).toEqual(['actor.fault', 'actor.restart_failed']);
    await logged.close();
  });

  test('a permanent actor keeps no child of a failed `init`, so that the next `init` may spawn it', async () => {
    let starts = 0;
    const slowToBegin: Behaviour<CounterProtocol, CounterState> = {
      ...counter(),
      init: (context) => {
        context.spawn(counter(), { name: 'child' });
        context.setTimer('tick', 60_000, { type: 'tick' });
        if (++starts === 2) throw new Error('not yet');
        return { total: 0, downs: [] };
      },
    };
    const ref = system.spawn(slowToBegin, { name: 'service', permanent: true });
    system.cast(ref, { type: 'fail', why: 'boom' });
    await system.idle();
    expect(starts).toBe(2);
    expect(system.info(ref)).toMatchObject({ children: 0, timers: [] });
    await clock.advanceAsync(1_000, () => system.idle());

    expect(starts).toBe(3);
    expect(system.info(ref)).toMatchObject({ children: 1, timers: ['tick'] });
  });

  test('an actor that is stopped before its restart does not start again', async () => {
    let starts = 0;
    const counted: Behaviour<CounterProtocol, CounterState> = {
      ...counter(),
      init: () => {
        starts++;
        return { total: 0, downs: [] };
      },
    };
    const ref = system.spawn(counted, { supervise: 'restart' });
    await system.call(ref, { type: 'fail', why: 'boom' }).catch(() => system.stop(ref));
    await system.idle();

    expect(system.isAlive(ref)).toBe(false);
    expect(system.size).toBe(0);
    expect(starts).toBe(1);
  });

  test('an idle actor that is killed restarts after its descendants have ended', async () => {
    const ends: string[] = [];
    const ref = system.spawn(threeGenerations(ends), { supervise: 'restart' });
    expect(system.kill(ref, 'to see')).toBe(true);
    await system.idle();

    expect(ends).toEqual(['child', 'parent']);
    expect(system.info(ref)).toMatchObject({ restarts: 1, failed: 1, children: 1 });
    expect(await system.call(ref, { type: 'read' })).toBe(0);
  });

  test('an actor killed just before a restart restarts only once', async () => {
    const life = { starts: 0, ends: [] };
    const ref = system.spawn(counter(life), { supervise: 'restart' });
    await system.call(ref, { type: 'fail', why: 'boom' }).catch(() => system.kill(ref, 'to see'));
    await system.idle();

    expect(life.starts).toBe(2);
    expect(system.info(ref)).toMatchObject({ restarts: 1, failed: 1 });
  });

  test('an actor that is killed with messages waiting handles them in its next incarnation', async () => {
    const ref = system.spawn(counter(), { supervise: 'restart' });
    system.cast(ref, { type: 'add', by: 1 });
    system.kill(ref, 'to see');
    system.cast(ref, { type: 'add', by: 2 });

    expect(await system.call(ref, { type: 'read' })).toBe(3);
    expect(system.info(ref)).toMatchObject({ restarts: 1 });
  });

  test('an actor that is killed before its turn still handles one message at a time', async () => {
    const gate = deferred<void>();
    const ref = system.spawn(counter(), { supervise: 'restart' });
    const slow = system.call(ref, { type: 'slow', until: gate.promise });
    const read = system.call(ref, { type: 'read' });
    let hasRead = false;
    void read.then(() => (hasRead = true));
    system.kill(ref, 'to see');
    await system.idle();

    expect(system.info(ref)).toMatchObject({ current: 'slow', queue: 1 });
    expect(hasRead).toBe(false);
    gate.resolve();
    expect(await slow).toBe('done');
    expect(await read).toBe(0);
  });

  test('an async handler whose own actor was killed fails when it finishes', async () => {
    type Protocol = { die: (message: { me: ActorRef<Protocol> }) => string };
    const behaviour: Behaviour<Protocol, null> = {
      kind: 'mortal',
      init: () => null,
      handlers: {
        die: async (_state, { me }) => {
          system.kill(me, 'to see');
          await Promise.resolve();
          return 'done';
        },
      },
    };
    const ref = system.spawn(behaviour);
    await system.call(ref, { type: 'die', me: ref });
    await system.idle();

    expect(system.isAlive(ref)).toBe(false);
  });
});
