import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { silentLog, type Log } from '@bloom/log';
import {
  counter,
  deferred,
  type CounterProtocol,
  type CounterState,
  type Life,
  looseShapes,
} from './testing/counter.js';
import { openActorSystem, type ActorRef, type ActorSystem, type Behaviour, type Down } from './index.js';

type Fragile = { fail: (message: object) => void };

let clock: ManualClock;
let system: ActorSystem;

beforeEach(() => {
  clock = new ManualClock();
  system = openActorSystem({ log: silentLog, clock });
});
afterEach(() => system.close());

describe('faults', () => {
  test('ends the actor by default, gives its watchers the reason, and keeps the process alive', async () => {
    const life: Life = { starts: 0, ends: [] };
    const ref = system.spawn(counter(life));
    const downs: Down[] = [];
    system.monitor(ref, (down) => downs.push(down));
    system.cast(ref, { type: 'fail', why: 'boom' });
    await system.idle();

    expect(downs).toEqual([{ ref, reason: 'crashed', error: expect.objectContaining({ message: 'boom' }) }]);
    expect(life).toEqual({ starts: 1, ends: ['crashed'] });
    expect(system.isAlive(ref)).toBe(false);
  });

  test('treats an async handler that rejects like one that throws', async () => {
    const ref = system.spawn(counter());
    const gate = deferred<void>();
    const answer = system.call(ref, { type: 'slow', until: gate.promise });
    await new Promise((resolve) => setImmediate(resolve));
    gate.reject(new Error('lost'));

    await expect(answer).rejects.toMatchObject({ code: 'CRASHED' });
    await system.idle();
    expect(system.isAlive(ref)).toBe(false);
  });

  test('restarts an actor under the same ref with its mailbox and without its timers', async () => {
    const life: Life = { starts: 0, ends: [] };
    const ref = system.spawn(counter(life), { supervise: 'restart' });
    system.cast(ref, { type: 'add', by: 5 });
    system.cast(ref, { type: 'tickIn', ms: 100 });
    system.cast(ref, { type: 'fail', why: 'boom' });
    system.cast(ref, { type: 'add', by: 7 });

    expect(await system.call(ref, { type: 'read' })).toBe(7);
    await clock.advanceAsync(100, () => system.idle());
    expect(await system.call(ref, { type: 'read' })).toBe(7);
    expect(life).toEqual({ starts: 2, ends: [] });
    expect(system.info(ref)).toMatchObject({ restarts: 1, failed: 1, timers: [] });
  });

  test('ends the actor after too many restarts within the window', async () => {
    const ref = system.spawn(counter(), { supervise: 'restart', maxRestarts: 2, restartWindowMs: 1_000 });
    const fail = (): Promise<void> => {
      system.cast(ref, { type: 'fail', why: 'again' });
      return system.idle();
    };
    await fail();
    await fail();
    await clock.advanceAsync(1_000);
    await fail();
    await fail();
    expect(system.isAlive(ref)).toBe(true);
    await fail();
    expect(system.isAlive(ref)).toBe(false);
  });

  describe('permanent actors', () => {
    const spawnService = (): ActorRef<CounterProtocol> => {
      const ref = system.spawn(counter(), { permanent: true, maxRestarts: 1, restartWindowMs: 60_000 });
      system.register('service', ref);
      return ref;
    };
    const fail = (): Promise<void> => {
      system.cast<CounterProtocol>('service', { type: 'fail', why: 'again' });
      return system.idle();
    };

    test('pauses instead of ending, twice as long each time, and is reported', async () => {
      spawnService();
      await fail();
      expect(system.failedServices()).toEqual([]);
      await fail();
      expect(system.failedServices()).toEqual(['service']);
      await clock.advanceAsync(999, () => system.idle());
      expect(system.failedServices()).toEqual(['service']);
      await clock.advanceAsync(1, () => system.idle());
      expect(system.failedServices()).toEqual([]);
      await fail();
      await clock.advanceAsync(1_999, () => system.idle());
      expect(system.failedServices()).toEqual(['service']);
      await clock.advanceAsync(1, () => system.idle());
      expect(system.failedServices()).toEqual([]);
    });

    test('handles after the pause what arrived during it', async () => {
      spawnService();
      await fail();
      await fail();
      const answer = system.call<CounterProtocol, 'read'>('service', { type: 'read' });
      system.cast<CounterProtocol>('service', { type: 'add', by: 3 });
      await clock.advanceAsync(1_000, () => system.idle());
      expect(await answer).toBe(0);
      expect(await system.call<CounterProtocol, 'read'>('service', { type: 'read' })).toBe(3);
    });

    test('tries again when its first state cannot be created', async () => {
      let broken = false;
      const behaviour: Behaviour<Fragile, null> = {
        kind: 'fragile',
        shapes: looseShapes<Fragile>('fail'),
        init: () => {
          if (broken) throw new Error('not yet');
          return null;
        },
        handlers: {
          fail: () => {
            throw new Error('broken');
          },
        },
      };
      system.register('fragile', system.spawn(behaviour, { permanent: true }));
      broken = true;
      system.cast<Fragile>('fragile', { type: 'fail' });
      await system.idle();
      await clock.advanceAsync(1_000, () => system.idle());
      expect(system.failedServices()).toEqual(['fragile']);
      broken = false;
      await clock.advanceAsync(2_000, () => system.idle());
      expect(system.failedServices()).toEqual([]);
    });

    test('ends when it is stopped during a pause, and is no longer reported', async () => {
      const ref = spawnService();
      await fail();
      await fail();
      await system.stop(ref);
      expect(system.failedServices()).toEqual([]);
      expect(clock.pending).toBe(0);
    });
  });

  test('a name whose actor crashed is reported until another actor takes it', async () => {
    system.register('service', system.spawn(counter()));
    system.cast<CounterProtocol>('service', { type: 'fail', why: 'for good' });
    await system.idle();
    expect(system.failedServices()).toEqual(['service']);
    system.register('service', system.spawn(counter()));
    expect(system.failedServices()).toEqual([]);
  });

  test('an escalated fault becomes the fault of the parent', async () => {
    const life: Life = { starts: 0, ends: [] };
    const parent = system.spawn(counter(life), { supervise: 'restart' });
    const child = await system.call(parent, { type: 'hatch', name: 'child', supervise: 'escalate' });
    system.cast(child, { type: 'fail', why: 'too much' });
    await system.idle();

    expect(system.isAlive(child)).toBe(false);
    expect(life.starts).toBe(2);
    expect(system.isAlive(parent)).toBe(true);
  });

  test('a fault of one child does not affect its siblings or its parent', async () => {
    const parent = system.spawn(counter());
    const ann = await system.call(parent, { type: 'hatch', name: 'ann', supervise: 'stop' });
    const bob = await system.call(parent, { type: 'hatch', name: 'bob', supervise: 'stop' });
    system.cast(ann, { type: 'fail', why: 'boom' });
    await system.idle();

    expect(system.isAlive(parent)).toBe(true);
    expect(system.isAlive(ann)).toBe(false);
    expect(system.isAlive(bob)).toBe(true);
    expect(await system.call(bob, { type: 'read' })).toBe(0);
  });

  test('a supervise function that throws counts as stop', async () => {
    const ref = system.spawn(counter(), {
      supervise: () => {
        throw new Error('no idea');
      },
    });
    system.cast(ref, { type: 'fail', why: 'boom' });
    await system.idle();

    expect(system.isAlive(ref)).toBe(false);
  });

  test('an init that throws fails the spawn and leaves nothing behind', async () => {
    const broken: Behaviour<CounterProtocol, CounterState> = {
      ...counter(),
      init: (context) => {
        context.setTimer('tick', 10, { type: 'tick' });
        throw new Error('cannot begin');
      },
    };

    expect(() => system.spawn(broken, { name: 'broken' })).toThrow('cannot begin');
    expect(system.size).toBe(0);
    expect(clock.pending).toBe(0);
    expect(system.isAlive(system.spawn(counter(), { name: 'broken' }))).toBe(true);
  });

  test('faults are logged with the message type but without the message', async () => {
    const lines: { event: string; fields: Record<string, unknown> | undefined }[] = [];
    const log: Log = { ...silentLog, error: (event, fields) => lines.push({ event, fields }), child: () => log };
    const logged = openActorSystem({ log, clock });
    logged.cast(logged.spawn(counter()), { type: 'fail', why: 'boom' });
    await logged.idle();
    await logged.close();

    expect(lines).toEqual([
      {
        event: 'actor.fault',
        fields: expect.objectContaining({ kind: 'counter', messageType: 'fail', decision: 'stop' }),
      },
    ]);
  });
});
