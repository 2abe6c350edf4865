import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { silentLog } from '@bloom/log';
import {
  openActorSystem,
  type ActorRef,
  type ActorSystem,
  type TraceEnd,
  type TraceEvent,
  type TraceOptions,
} from '../index.js';
import { puppet, type PuppetProtocol } from '../testing/puppet.js';

let clock: ManualClock;
let system: ActorSystem;
let ref: ActorRef<PuppetProtocol>;
let other: ActorRef<PuppetProtocol>;
let events: TraceEvent[];
let ends: TraceEnd[];

beforeEach(() => {
  clock = new ManualClock();
  system = openActorSystem({ log: silentLog, clock });
  ref = system.spawn(puppet(), { name: 'one' });
  other = system.spawn(puppet(), { name: 'other' });
  events = [];
  ends = [];
});

afterEach(() => system.close());

function trace(options: Partial<TraceOptions> = {}) {
  return system.trace(
    { match: (path) => path === '/one', limit: 1_000, withinMs: 10_000, ...options },
    (event) => events.push(event),
    (end) => ends.push(end),
  );
}

const short = () => events.map(({ direction, other: who, type, requestId }) => [direction, who, type, requestId]);

describe('a trace', () => {
  test('shows incoming, outgoing and timer messages with duration, sender and request', async () => {
    const running = trace();
    const message = { type: 'pass', to: other, what: 'x' } as const;
    await system.forRequest('r1', 'http').call(ref, message);
    await system.call(other, { type: 'pass', to: ref, what: 'back' });
    await system.call(ref, { type: 'tickIn', ms: 5 });
    await clock.advanceAsync(5, () => system.idle());
    await expect(system.call(ref, { type: 'fail', why: 'no' })).rejects.toThrow('no');
    running.stop();
    expect(short()).toEqual([
      ['out', '/other', 'note', 'r1'],
      ['in', 'http', 'pass', 'r1'],
      ['in', '/other', 'note', null],
      ['in', 'outside', 'tickIn', null],
      ['timer', '/one', 'tick', null],
      ['in', 'outside', 'fail', null],
    ]);
    expect(events[1]).toMatchObject({ at: clock.wall() - 5, actor: '/one', ranMs: 0, failed: false });
    expect(events[1]?.message).toBe(message);
    expect(events.at(-1)).toMatchObject({ failed: true });
    expect(ends).toEqual([{ reason: 'stopped', events: 6, dropped: 0, costMs: 0 }]);
  });

  test('ends at its limit or when its time is up, and leaves nothing behind', async () => {
    trace({ limit: 3 });
    for (let i = 0; i < 10; i++) system.cast(ref, { type: 'note', what: `${i}` });
    await system.idle();
    expect(events).toHaveLength(3);
    expect(ends).toEqual([{ reason: 'limit', events: 3, dropped: 0, costMs: 0 }]);
    const timed = trace({ withinMs: 2_000 });
    await clock.advanceAsync(2_000, () => system.idle());
    await system.call(ref, { type: 'note', what: 'too late' });
    expect(ends.at(-1)).toMatchObject({ reason: 'time', events: 0 });
    timed.stop();
    expect(ends).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  test('only counts events beyond its rate', async () => {
    const running = trace({ maxPerSecond: 100 });
    for (let i = 0; i < 500; i++) system.cast(ref, { type: 'note', what: `${i}` });
    await system.idle();
    expect(running.events).toBe(10);
    expect(running.dropped).toBe(490);
    await clock.advanceAsync(100, () => system.idle());
    for (let i = 0; i < 50; i++) system.cast(ref, { type: 'note', what: `${i}` });
    await system.idle();
    expect(running.events).toBe(20);
    expect(running.dropped).toBe(530);
    running.stop();
    expect(ends).toEqual([{ reason: 'stopped', events: 20, dropped: 530, costMs: 0 }]);
  });

  test('keeps unused rate only for a short burst', async () => {
    const running = trace({ maxPerSecond: 100, withinMs: 600_000 });
    await clock.advanceAsync(60_000, () => system.idle());
    for (let i = 0; i < 500; i++) system.cast(ref, { type: 'note', what: `${i}` });
    await system.idle();
    expect(running.events).toBe(10);
    expect(running.dropped).toBe(490);
    running.stop();
  });

  test('can be limited to one message type, and includes actors that start later', async () => {
    trace({ match: (path) => path.startsWith('/one'), type: 'note' });
    const child = await system.call(ref, { type: 'hatch', name: 'child' });
    await system.call(child, { type: 'note', what: 'x' });
    await system.call(child, { type: 'seen' });
    expect(events.map(({ actor, type }) => [actor, type])).toEqual([['/one/child', 'note']]);
  });

  test('does not disturb another trace of the same actor, and ends when its listener throws', async () => {
    const slow = trace({ maxPerSecond: 10, type: 'note' });
    const broken = system.trace({ match: () => true, limit: 10, withinMs: 1_000 }, () => {
      throw new Error('no');
    });
    trace();
    for (let i = 0; i < 3; i++) system.cast(ref, { type: 'note', what: `${i}` });
    await system.idle();
    expect(broken.events).toBe(1);
    expect(slow.events).toBe(1);
    expect(slow.dropped).toBe(2);
    expect(events).toHaveLength(4);
    expect(system.info(ref)).toMatchObject({ handled: 3, failed: 0 });
  });

  test('shows the next message when it begins while one is handled', async () => {
    let resolve = (): void => {};
    const after = new Promise<void>((done) => {
      resolve = done;
    });
    const work = system.call(ref, { type: 'passLater', to: other, what: 'x', after });
    await system.idle();
    trace();
    resolve();
    await work;
    await system.call(ref, { type: 'seen' });
    expect(short()).toEqual([
      ['out', '/other', 'note', null],
      ['in', 'outside', 'seen', null],
    ]);
  });
});
