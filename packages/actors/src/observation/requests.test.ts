import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ManualClock } from '@bloom/time/testing';
import { createLogger, type Logger, type LogRecord } from '@bloom/log';
import { openActorSystem, later, type ActorRef, type ActorSystem, type Behaviour, newRequestId } from '../index.js';
import { puppet, type PuppetProtocol } from '../testing/puppet.js';

let clock: ManualClock;
let log: Logger;
let system: ActorSystem;
let first: ActorRef<PuppetProtocol>;
let second: ActorRef<PuppetProtocol>;

beforeEach(() => {
  clock = new ManualClock();
  log = createLogger({ sink: () => undefined });
  system = openActorSystem({ log, clock });
  first = system.spawn(puppet(), { name: 'first' });
  second = system.spawn(puppet(), { name: 'second' });
});

afterEach(() => system.close());

const seenBy = (ref: ActorRef<PuppetProtocol>) => system.call(ref, { type: 'seen' });

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function requestsLogged(event: string): unknown[] {
  return log.recent
    .last()
    .filter((record: LogRecord) => record.event === event)
    .map(({ fields }) => fields['request_id']);
}

describe('a request id', () => {
  test('begins with a letter or digit, so that no program takes it as an option', () => {
    expect(newRequestId()).toMatch(/^[\da-f]{18}-[\da-z]{8}$/);
  });

  test('passes the request id on with what is sent while its message is handled, and with nothing else', async () => {
    system.cast(first, { type: 'pass', to: second, what: 'before' });
    expect(await system.forRequest('r1').call(first, { type: 'pass', to: second, what: 'during' })).toBe('r1');
    system.cast(first, { type: 'pass', to: second, what: 'after' });
    await system.idle();
    expect(await seenBy(second)).toEqual([
      'init in undefined',
      'before in undefined',
      'during in r1',
      'after in undefined',
    ]);
    expect(requestsLogged('noted')).toEqual([undefined, 'r1', undefined]);
  });

  test("keeps the message's request id after an await, whatever ran in between", async () => {
    const gate = deferred();
    system.forRequest('r1').cast(first, { type: 'passLater', to: second, what: 'late', after: gate.promise });
    system.forRequest('r2').cast(first, { type: 'pass', to: second, what: 'next' });
    system.forRequest('r3').cast(second, { type: 'note', what: 'own' });
    await system.idle();
    gate.resolve();
    await system.idle();
    expect(await seenBy(second)).toEqual(['init in undefined', 'own in r3', 'late in r1', 'next in r2']);
  });

  test('stays with work that outlives its handler while other messages are handled', async () => {
    type Slow = { begin: (message: { after: Promise<void> }) => void; other: (message: object) => void };
    const slow: Behaviour<Slow, null> = {
      kind: 'slow',
      init: () => null,
      handlers: {
        begin: (_state, { after }, context) =>
          later(
            after.then(() => {
              context.cast(second, { type: 'note', what: 'done' });
              context.log.info('slow.done');
            }),
          ),
        other: (_state, _message, context) => void context.cast(second, { type: 'note', what: 'other' }),
      },
    };
    const ref = system.spawn(slow);
    const gate = deferred();
    system.forRequest('r1').cast(ref, { type: 'begin', after: gate.promise });
    system.forRequest('r2').cast(ref, { type: 'other' });
    await system.idle();
    gate.resolve();
    await system.idle();
    expect(await seenBy(second)).toEqual(['init in undefined', 'other in r2', 'done in r1']);
    expect(requestsLogged('slow.done')).toEqual(['r1']);
  });

  test('gives the context of `init` the request id while a handler runs, and after an await through `inRequest`', async () => {
    type Keeper = { go: (message: object) => void; goLater: (message: { after: Promise<void> }) => void };
    let tellOutside = (): void => {};
    const keeper: Behaviour<Keeper, { tell: () => void }> = {
      kind: 'keeper',
      init: (context) => {
        tellOutside = () => void context.cast(second, { type: 'note', what: 'kept' });
        return { tell: tellOutside };
      },
      handlers: {
        go: ({ tell }) => tell(),
        goLater: async ({ tell }, { after }, context) => {
          await after;
          context.inRequest(tell);
        },
      },
    };
    const ref = system.spawn(keeper);
    const gate = deferred();
    await system.forRequest('r1').call(ref, { type: 'go' });
    system.forRequest('r2').cast(ref, { type: 'goLater', after: gate.promise });
    await system.idle();
    // An outside call while the handler waits has nothing to do with the request.
    tellOutside();
    gate.resolve();
    await system.idle();
    await system.call(ref, { type: 'go' });
    await system.idle();
    expect((await seenBy(second)).slice(1)).toEqual([
      'kept in r1',
      'kept in undefined',
      'kept in r2',
      'kept in undefined',
    ]);
  });

  test('starts an actor under the creating request; its timers and ends belong to no request', async () => {
    const child = await system.forRequest('r1').call(first, { type: 'hatch', name: 'child' });
    await system.forRequest('r2').call(second, { type: 'watch', target: child });
    await system.forRequest('r3').call(child, { type: 'tickIn', ms: 10 });
    await clock.advanceAsync(10, () => system.idle());
    expect(await seenBy(child)).toEqual(['init in r1', 'tick in undefined']);
    await system.stop(child);
    await system.idle();
    expect((await seenBy(second)).at(-1)).toBe('/first/child normal in undefined');
  });

  test('includes the request id in the log line about a fault', async () => {
    await expect(system.forRequest('r1').call(first, { type: 'fail', why: 'no' })).rejects.toThrow('no');
    expect(requestsLogged('actor.fault')).toEqual(['r1']);
  });
});

describe('the path of a request', () => {
  test('reports a request hop by hop, in order, and separately from others', async () => {
    system.note('r1', { where: 'http', what: 'DELETE /room/x' });
    await clock.advanceAsync(5);
    await system.forRequest('r1', 'http').call(first, { type: 'pass', to: second, what: 'x' });
    await system.forRequest('r2').call(first, { type: 'pass', to: second, what: 'y' });
    await expect(system.forRequest('r1').call(first, { type: 'fail', why: 'no' })).rejects.toThrow('no');
    await system.idle();
    await clock.advanceAsync(3);
    system.note('r1', { where: 'http', what: '204', ranMs: 2 });
    expect(system.hops('r1')).toEqual([
      expect.objectContaining({ where: 'http', what: 'DELETE /room/x', from: null, waitedMs: null, ranMs: null }),
      expect.objectContaining({ where: '/first', what: 'pass', from: 'http', waitedMs: 0, ranMs: 0, failed: false }),
      expect.objectContaining({ where: '/second', what: 'note', from: '/first' }),
      expect.objectContaining({ where: '/first', what: 'fail', from: 'outside', failed: true }),
      expect.objectContaining({ where: 'http', what: '204', ranMs: 2 }),
    ]);
    const [asked, passed, , , answered] = system.hops('r1').map(({ at }) => at);
    expect((passed ?? 0) - (asked ?? 0)).toBe(5);
    expect((answered ?? 0) - (asked ?? 0)).toBe(6);
    expect(system.hops('r2')).toHaveLength(2);
    expect(system.hops('r3')).toEqual([]);
  });

  test('includes how long each message waited and ran', async () => {
    const gate = deferred();
    system.forRequest('r1').cast(first, { type: 'passLater', to: second, what: 'x', after: gate.promise });
    system.forRequest('r2').cast(first, { type: 'note', what: 'y' });
    await system.idle();
    await clock.advanceAsync(40);
    gate.resolve();
    await system.idle();
    expect(system.hops('r1')[0]).toMatchObject({ what: 'passLater', waitedMs: 0, ranMs: 40 });
    expect(system.hops('r2')[0]).toMatchObject({ what: 'note', waitedMs: 40, ranMs: 0 });
  });

  test('records the first few of many like messages, with what they cause, and counts the others', async () => {
    const everybody = Array.from({ length: 20 }, () => system.spawn(puppet()));
    type Crier = { cry: (message: object) => void };
    const crier: Behaviour<Crier, null> = {
      kind: 'crier',
      init: () => null,
      handlers: {
        cry: (_state, _message, context) => {
          for (const to of everybody) context.cast(to, { type: 'pass', to: second, what: 'news' });
          context.cast(first, { type: 'note', what: 'done' });
        },
      },
    };
    await system.forRequest('r1').call(system.spawn(crier, { name: 'crier' }), { type: 'cry' });
    await system.idle();
    const steps = system.hops('r1').map(({ where, what, omitted }) => [where.replace(/-\d+$/, ''), what, omitted]);
    const count = (...step: unknown[]) => steps.filter((each) => each.join() === step.join()).length;
    expect(count('/crier', 'cry', 12)).toBe(1);
    expect(count('/puppet', 'pass', 0)).toBe(8);
    expect(count('/second', 'note', 0)).toBe(8);
    expect(count('/first', 'note', 0)).toBe(1);
    expect(requestsLogged('noted')).toEqual(Array.from({ length: 21 }, () => 'r1'));
  });

  test('records no calls that are made because of messages left out', async () => {
    type Asker = { ask: (message: object) => Promise<void> };
    const asker: Behaviour<Asker, null> = {
      kind: 'asker',
      init: () => null,
      handlers: {
        ask: async (_state, _message, context) => void (await context.call(second, { type: 'note', what: 'asked' })),
      },
    };
    const everybody = Array.from({ length: 20 }, () => system.spawn(asker));
    type Crier = { cry: (message: object) => void };
    const crier: Behaviour<Crier, null> = {
      kind: 'crier',
      init: () => null,
      handlers: {
        cry: (_state, _message, context) => {
          for (const to of everybody) context.cast(to, { type: 'ask' });
        },
      },
    };
    await system.forRequest('r1').call(system.spawn(crier), { type: 'cry' });
    await system.idle();
    expect(system.hops('r1').filter(({ where }) => where === '/second')).toHaveLength(8);
  });

  test('forgets the oldest hops beyond 10,000', () => {
    for (let i = 0; i < 10_001; i++)
      system.note(i === 0 ? 'old' : i < 3 ? 'less old' : 'new', { where: 'http', what: 'x' });
    expect(system.hops('old')).toEqual([]);
    expect(system.hops('less old')).toHaveLength(2);
    expect(system.hops('new')).toHaveLength(9_998);
  });
});
