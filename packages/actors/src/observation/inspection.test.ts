import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { silentLog } from '@bloom/log';
import { openActorSystem, type ActorRef, type ActorSystem } from '../index.js';
import { Durations } from './durations.js';
import { puppet, type PuppetProtocol } from '../testing/puppet.js';

let clock: ManualClock;
let system: ActorSystem;
let ref: ActorRef<PuppetProtocol>;

beforeEach(() => {
  clock = new ManualClock();
  system = openActorSystem({ log: silentLog, clock });
  ref = system.spawn(puppet(), { name: 'one', supervise: 'restart', mailbox: { limit: 50, essential: ['tick'] } });
});

afterEach(() => system.close());

function waiting(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe('inspection of an actor', () => {
  test('shows the current message, when its handling began, and what waits behind it', async () => {
    const idleSince = clock.wall();
    await clock.advanceAsync(1_000);
    expect(system.info(ref)).toMatchObject({ status: 'idle', statusAt: idleSince, current: null, oldestMs: null });

    const gate = waiting();
    system.cast(ref, { type: 'passLater', to: ref, what: 'x', after: gate.promise });
    await system.idle();
    await clock.advanceAsync(200);
    system.cast(ref, { type: 'note', what: 'a' });
    await clock.advanceAsync(100);
    system.cast(ref, { type: 'note', what: 'b' });
    system.cast(ref, { type: 'tickIn', ms: 1 });
    await clock.advanceAsync(400);
    expect(system.details(ref)).toMatchObject({
      status: 'busy',
      statusAt: idleSince + 1_000,
      current: 'passLater',
      busyMs: 700,
      queue: 3,
      oldestMs: 500,
      waiting: { note: 2, tickIn: 1 },
      mailbox: { limit: 50, essential: ['tick'] },
    });

    gate.resolve();
    await system.idle();
    expect(system.info(ref)).toMatchObject({
      status: 'idle',
      statusAt: clock.wall(),
      busyMs: 700,
      sent: 1,
      handled: 5,
    });
    expect(system.info(ref)?.p99Ms).toBeGreaterThan(250);
    expect(system.info(ref)?.p50Ms).toBeLessThan(0.1);
  });

  test('shows the last error, the restarts and the timers', async () => {
    await system.call(ref, { type: 'tickIn', ms: 60 });
    expect(system.details(ref)).toMatchObject({
      timersDue: [{ name: 'tick', dueAt: clock.wall() + 60 }],
      lastError: null,
      supervision: { strategy: 'restart', maxRestarts: 3, windowMs: 60_000, recent: 0 },
    });
    await clock.advanceAsync(7);
    await expect(system.call(ref, { type: 'fail', why: 'EAGAIN: write queue full' })).rejects.toThrow('EAGAIN');
    await system.idle();
    const details = system.details(ref);
    expect(details).toMatchObject({
      restarts: 1,
      failed: 1,
      timersDue: [],
      supervision: { recent: 1 },
      lastError: { at: clock.wall(), messageType: 'fail', message: 'EAGAIN: write queue full' },
    });
    expect(details?.lastError?.place).toMatch(/^at .*testing\/puppet/);
  });

  test('lists watchers and children', async () => {
    const watcher = system.spawn(puppet(), { name: 'watcher' });
    await system.call(watcher, { type: 'watch', target: ref });
    const end = system.monitor(ref, () => {});
    await system.call(ref, { type: 'hatch', name: 'child' });
    expect(system.details(ref)).toMatchObject({
      watchers: 2,
      watchedBy: ['/watcher', 'outside'],
      childPaths: ['/one/child'],
    });
    end();
    expect(system.details(ref)?.watchedBy).toEqual(['/watcher']);
    expect(system.at('/one/child')?.path).toBe('/one/child');
    expect(system.at('/one/nobody')).toBeUndefined();
  });

  test('shows the state only as its behaviour presents it', async () => {
    expect(system.inspect(ref)).toEqual({ missing: 'not offered' });
    const open = system.spawn(puppet({ inspect: ({ seen }) => ({ seen: seen.length }) }));
    await system.call(open, { type: 'note', what: 'x' });
    expect(system.inspect(open)).toEqual({ state: { seen: 2 } });
    const broken = system.spawn(
      puppet({
        inspect: () => {
          throw new Error('not now');
        },
      }),
    );
    expect(system.inspect(broken)).toEqual({ failed: 'not now' });
    await system.stop(open);
    expect(system.inspect(open)).toEqual({ missing: 'no such actor' });
    expect(system.details(open)).toBeUndefined();
  });
});

describe('a suspended actor', () => {
  test('takes nothing out of its mailbox until it is resumed, and then handles everything in order', async () => {
    expect(system.suspend(ref)).toBe(true);
    for (const what of ['a', 'b']) system.cast(ref, { type: 'note', what });
    const late = system.call(ref, { type: 'seen' }, 100);
    await system.idle();
    await clock.advanceAsync(30);
    expect(system.info(ref)).toMatchObject({ status: 'suspended', queue: 3, oldestMs: 30, handled: 0 });
    const refused = expect(late).rejects.toMatchObject({ code: 'TIMEOUT' });
    await clock.advanceAsync(100);
    await refused;
    expect(system.resume(ref)).toBe(true);
    await system.idle();
    expect(system.info(ref)).toMatchObject({ status: 'idle', queue: 0 });
    expect((await system.call(ref, { type: 'seen' })).slice(1)).toEqual(['a in undefined', 'b in undefined']);
  });

  test('overflows by its own policy and keeps essential messages', async () => {
    system.suspend(ref);
    for (let i = 0; i < 60; i++) system.cast(ref, { type: 'note', what: `${i}` });
    expect(system.cast(ref, { type: 'tick' })).toBe(true);
    expect(system.info(ref)).toMatchObject({ queue: 51, overflowed: 10 });
  });

  test('resumes by itself when the time is up, and the last order decides when', async () => {
    system.suspend(ref, 1_000);
    await clock.advanceAsync(500);
    system.suspend(ref, 1_000);
    expect(system.details(ref)?.suspendedUntil).toBe(clock.wall() + 1_000);
    system.cast(ref, { type: 'note', what: 'a' });
    await clock.advanceAsync(999, () => system.idle());
    expect(system.info(ref)).toMatchObject({ status: 'suspended', queue: 1 });
    await clock.advanceAsync(1, () => system.idle());
    expect(system.info(ref)).toMatchObject({ status: 'idle', queue: 0 });
    expect(system.details(ref)?.suspendedUntil).toBeNull();
    system.suspend(ref, 1_000);
    system.resume(ref);
    expect(clock.pending).toBe(0);
  });

  test('can be stopped like any other, and finishes its current message', async () => {
    const gate = waiting();
    const work = system.call(ref, { type: 'passLater', to: ref, what: 'x', after: gate.promise });
    await system.idle();
    system.suspend(ref, 5_000);
    gate.resolve();
    await work;
    expect(system.info(ref)).toMatchObject({ status: 'suspended', handled: 1, queue: 1 });
    await system.stop(ref);
    expect(system.suspend(ref)).toBe(false);
    expect(clock.pending).toBe(0);
  });
});

describe('a killed actor', () => {
  test('fails as if its handler had thrown: supervision acts, and its mailbox is kept', async () => {
    system.suspend(ref);
    system.cast(ref, { type: 'note', what: 'kept' });
    expect(system.kill(ref, 'to see')).toBe(true);
    expect(system.details(ref)).toMatchObject({ restarts: 1, lastError: { messageType: '' } });
    expect(system.details(ref)?.lastError?.message).toContain('to see');
    system.resume(ref);
    await system.idle();
    expect(await system.call(ref, { type: 'seen' })).toEqual(['init in undefined', 'kept in undefined']);
  });

  test('ends unless its supervisor restarts it, and its watchers get the reason', async () => {
    const mortal = system.spawn(puppet(), { name: 'mortal' });
    const downs: unknown[] = [];
    system.monitor(mortal, ({ reason, error }) => downs.push([reason, (error as { code: string }).code]));
    expect(system.kill(mortal, 'to see')).toBe(true);
    await system.idle();
    expect(downs).toEqual([['crashed', 'KILLED']]);
    expect(system.kill(mortal, 'again')).toBe(false);
  });

  test('abandons a waiting handler and ignores its outcome', async () => {
    const gate = waiting();
    const other = system.spawn(puppet());
    const stuck = system.call(ref, { type: 'passLater', to: other, what: 'x', after: gate.promise });
    const refused = expect(stuck).rejects.toMatchObject({ code: 'CRASHED' });
    await system.idle();
    system.kill(ref, 'stuck');
    await refused;
    await system.call(ref, { type: 'note', what: 'alive' });
    gate.resolve();
    await system.idle();
    expect(system.info(ref)).toMatchObject({ restarts: 1, failed: 1, handled: 1, status: 'idle' });
    expect(await system.call(ref, { type: 'seen' })).toEqual(['init in undefined', 'alive in undefined']);
  });

  test('fails after the current message when it kills itself', async () => {
    const suicide = puppet();
    const handlers = { ...suicide.handlers, note: () => void system.kill(own, 'myself') };
    const own = system.spawn({ ...suicide, handlers });
    await system.call(own, { type: 'note', what: 'x' });
    await system.idle();
    expect(system.isAlive(own)).toBe(false);
  });
});

describe('durations', () => {
  test('interpolates quantiles within their bucket', () => {
    const durations = new Durations();
    expect(durations.quantile(0.5)).toBeNull();
    durations.record(0.02, 98);
    durations.record(40, 2);
    expect(durations.quantile(0.5)).toBeLessThanOrEqual(0.05);
    expect(durations.quantile(0.99)).toBeGreaterThan(25);
    expect(durations.quantile(0.99)).toBeLessThanOrEqual(50);
    durations.record(60_000, 1_000);
    expect(durations.quantile(0.99)).toBe(5_000);
    expect(durations.count).toBe(1_100);
    expect(durations.totalMs).toBeCloseTo(0.02 * 98 + 80 + 60_000_000);
    expect(durations.buckets.reduce((sum, n) => sum + n)).toBe(1_100);
  });
});
