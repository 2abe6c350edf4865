import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { atom, ImproperList, type Pid, type Term, tuple } from '@bloom/etf';
import { silentLog } from '@bloom/log';
import fc from 'fast-check';
import { fuzzRuns, until } from '@bloom/time/testing';
import {
  actor,
  openActorSystem,
  later,
  takes,
  unchecked,
  type Shapes,
  type ActorRef,
  type AnyRef,
  type Behaviour,
  type Down,
} from '../index.js';
import type { RemoteFault } from '../errors.js';
import type { RemoteRef } from '../ref.js';
import { looseShapes } from '../testing/counter.js';
import { cut, startMapper, startNode, type TestMapper, type TestNode } from '../testing/nodes.js';

const RUNS = fuzzRuns(1_000);

type EchoProtocol = {
  echo: (message: { value: unknown }) => unknown;
  note: (message: { value: unknown }) => void;
  notes: (message: object) => readonly unknown[];
  fail: (message: { why: string }) => void;
  never: (message: object) => void;
  block: (message: { ms: number }) => void;
  /** Keeps the actor busy until the test calls `release`. */
  hold: (message: object) => void;
  unsendable: (message: object) => unknown;
  self: (message: object) => ActorRef<EchoProtocol>;
  /** Asks the given actor and returns its answer. */
  ask: (message: { whom: ActorRef<EchoProtocol>; value: unknown }) => unknown;
  watch: (message: { whom: AnyRef }) => void;
  down: (message: { down: Down }) => void;
  downs: (message: object) => string[];
  end: (message: object) => void;
};

interface EchoState {
  notes: unknown[];
  downs: Down[];
}

let release: () => void;
const held = new Promise<void>((resolve) => {
  release = resolve;
});

const ECHO: Shapes<EchoProtocol> = {
  ...looseShapes<EchoProtocol>(
    ...([
      'echo',
      'note',
      'notes',
      'fail',
      'never',
      'block',
      'hold',
      'unsendable',
      'watch',
      'down',
      'downs',
      'end',
    ] as const),
  ),
  self: takes(
    {},
    actor(() => ECHO),
  ),
  ask: takes({ whom: actor(() => ECHO), value: unchecked<unknown>() }, unchecked<unknown>()),
};

const echo: Behaviour<EchoProtocol, EchoState> = {
  kind: 'echo',
  shapes: ECHO,
  endable: true,
  init: () => ({ notes: [], downs: [] }),
  handlers: {
    echo: (_state, { value }) => value,
    note: (state, { value }) => void state.notes.push(value),
    notes: (state) => state.notes,
    fail: (_state, { why }) => {
      throw new Error(why);
    },
    never: () => later(new Promise<void>(() => {})),
    block: (_state, { ms }) => new Promise((resolve) => setTimeout(resolve, ms)),
    hold: () => held,
    unsendable: () => new Date(),
    self: (_state, _message, context) => context.self,
    ask: (_state, { whom, value }, context) => later(context.call(whom, { type: 'echo', value })),
    watch: (_state, { whom }, context) => void context.monitor(whom, (down) => ({ type: 'down', down })),
    down: (state, { down }) => void state.downs.push(down),
    downs: (state) => state.downs.map(({ reason }) => reason),
    end: (_state, _message, context) => context.stop(),
  },
};

type StuckProtocol = { answerAndBlock: (message: { ms: number }) => string };

const STUCK = looseShapes<StuckProtocol>('answerAndBlock');

/** Answers, then blocks the thread so that the answer cannot be read. */
const stuck: Behaviour<StuckProtocol, null> = {
  kind: 'stuck',
  shapes: STUCK,
  init: () => null,
  handlers: {
    answerAndBlock: (_state, { ms }) => {
      const block = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
      // By then the answer has left, but nothing was read.
      queueMicrotask(() => process.nextTick(() => process.nextTick(block)));
      return 'answer';
    },
  },
};

describe('actors of several nodes', () => {
  let mapper: TestMapper;
  let a: TestNode;
  let b: TestNode;
  let c: TestNode;
  let there: ActorRef<EchoProtocol>;
  let echoB: ActorRef<EchoProtocol>;

  beforeAll(async () => {
    mapper = await startMapper();
    [a, b, c] = (await Promise.all(['a', 'b', 'c'].map((name) => startNode(name, mapper)))) as [
      TestNode,
      TestNode,
      TestNode,
    ];
    a.node.seed([b.name]);
    c.node.seed([b.name]);
    await until(() => [a, b, c].every(({ node }) => node.nodes().length === 2));
    echoB = b.system.spawn(echo, { name: 'echo' });
    b.system.register('echo', echoB);
    there = a.remote.remote(b.name, 'echo', ECHO);
  });
  afterAll(async () => {
    for (const node of [a, b, c]) await node?.stop();
    await mapper?.close();
  });

  const noted = (): Promise<readonly unknown[]> => b.system.call(echoB, { type: 'notes' });

  async function spawnOnB(name: string): Promise<ActorRef<EchoProtocol>> {
    b.system.register(name, b.system.spawn(echo, { mailbox: { limit: 2 } }));
    return await a.system.call(a.remote.remote(b.name, name, ECHO), { type: 'self' });
  }

  test('a call reaches a registered actor and returns its answer', async () => {
    const value = { text: 'ä', bytes: Buffer.from([0, 255]), list: [1, 2.5, null, true], big: 2n ** 70n };
    const back = (await a.system.call(there, { type: 'echo', value })) as typeof value;
    expect(back).toMatchObject({ text: 'ä', list: [1, 2.5, null, true], big: 2n ** 70n });
    expect(Buffer.compare(back.bytes, value.bytes)).toBe(0);
    expect(a.remote.gauges.calls).toBe(0);
  });

  test('an answer that arrived while this node was blocked counts', async () => {
    b.system.register('stuck', b.system.spawn(stuck));
    const ref = a.remote.remote(b.name, 'stuck', STUCK);
    expect(await a.system.call(ref, { type: 'answerAndBlock', ms: 300 }, 200)).toBe('answer');
  });

  test('casts arrive in the order in which they were sent', async () => {
    for (let i = 0; i < 500; i++) expect(a.system.cast(there, { type: 'note', value: i })).toBe(true);
    expect(await a.system.call(there, { type: 'notes' })).toEqual(Array.from({ length: 500 }, (_, i) => i));
  });

  test('a remote name also reaches an actor on the same node', async () => {
    const own = b.remote.remote(b.name, 'echo', ECHO);
    expect(await b.system.call(own, { type: 'echo', value: 1 })).toBe(1);
    expect(b.system.cast(own, { type: 'note', value: 'own' })).toBe(true);
    expect((await noted()).at(-1)).toBe('own');
    await expect(b.system.call(b.remote.remote(b.name, 'x', ECHO), { type: 'self' })).rejects.toMatchObject({
      code: 'NO_PROCESS',
    });
  });

  describe('failures of calls to other nodes', () => {
    test('fails with NO_PROCESS for an unknown name', async () => {
      const nobody = a.remote.remote(b.name, 'nobody', ECHO);
      await expect(a.system.call(nobody, { type: 'notes' })).rejects.toMatchObject({ code: 'NO_PROCESS' });
    });

    test('fails with NO_PROCESS for an actor that has ended', async () => {
      const ref = await spawnOnB('short');
      await a.system.call(ref, { type: 'end' });
      await until(() => b.system.whereis('short') === undefined);
      await expect(a.system.call(ref, { type: 'notes' })).rejects.toMatchObject({ code: 'NO_PROCESS' });
    });

    test('fails with NO_CONNECTION without a connection', async () => {
      const nowhere = a.remote.remote('x@127.0.0.1', 'echo', ECHO);
      await expect(a.system.call(nowhere, { type: 'notes' })).rejects.toMatchObject({ code: 'NO_CONNECTION' });
      expect(a.system.cast(nowhere, { type: 'note', value: 1 })).toBe(false);
      expect(a.system.isAlive(nowhere)).toBe(false);
      expect(a.system.isAlive(there)).toBe(true);
    });

    test('fails with TIMEOUT without an answer in time, and ignores a late one', async () => {
      await expect(a.system.call(there, { type: 'never' }, 20)).rejects.toMatchObject({ code: 'TIMEOUT' });
      const late = a.remote.counters.lateReplies;
      await expect(a.system.call(there, { type: 'hold' }, 20)).rejects.toMatchObject({ code: 'TIMEOUT' });
      release();
      expect(await a.system.call(there, { type: 'echo', value: 1 })).toBe(1);
      await until(() => a.remote.counters.lateReplies > late || b.remote.gauges.calls === 0);
      expect(a.remote.gauges).toMatchObject({ calls: 0, monitors: 0 });
    });

    test('fails with CRASHED when the handler threw', async () => {
      const ref = await spawnOnB('fails');
      const error = await a.system.call(ref, { type: 'fail', why: 'too hot' }).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'CRASHED' });
      expect((error as Error).message).toContain('failed on fail');
      expect(((error as Error).cause as RemoteFault).message).toBe(`on ${b.name}: too hot`);
    });

    test('fails with UNKNOWN_MESSAGE for a message that the actor does not know', async () => {
      await expect(a.system.call(there as AnyRef, { type: 'sing' } as never)).rejects.toMatchObject({
        code: 'UNKNOWN_MESSAGE',
      });
    });

    test('fails with NOT_SENDABLE for a message or an answer that cannot travel', async () => {
      await expect(a.system.call(there, { type: 'echo', value: () => 1 })).rejects.toMatchObject({
        code: 'NOT_SENDABLE',
      });
      expect(a.system.cast(there, { type: 'note', value: new Date() })).toBe(false);
      await expect(a.system.call(there, { type: 'unsendable' })).rejects.toThrow('a Date is not plain data');
    });

    test('a full mailbox refuses messages from other nodes too', async () => {
      const ref = await spawnOnB('full');
      const [first, second, third, fourth] = Array.from({ length: 4 }, () =>
        a.system.call(ref, { type: 'block', ms: 40 }).catch((error: unknown) => error),
      );
      const errors = (await Promise.all([first, second, third, fourth])).filter((error) => error instanceof Error);
      expect(errors.length).toBeGreaterThan(0);
      for (const error of errors) expect(error).toMatchObject({ code: 'MAILBOX_FULL', limit: 2 });
      expect(errors[0]).toMatchObject({ code: 'MAILBOX_FULL' });
    });

    test('fails with TOO_MANY_CALLS beyond the limit of open calls', async () => {
      const small = await startNode('small', mapper, { maxCalls: 2 });
      await small.node.connect(b.name);
      const target = small.remote.remote(b.name, 'echo', ECHO);
      const open = [1, 2].map(() => small.system.call(target, { type: 'never' }, 50).catch((error: unknown) => error));
      await expect(small.system.call(target, { type: 'notes' })).rejects.toMatchObject({ code: 'TOO_MANY_CALLS' });
      for (const error of await Promise.all(open)) expect(error).toMatchObject({ code: 'TIMEOUT' });
      expect(await small.system.call(target, { type: 'echo', value: 1 })).toBe(1);
      await small.stop();
    });
  });

  describe('refs in messages', () => {
    test('a ref that returns is the same actor', async () => {
      const own = a.system.spawn(echo);
      const back = (await a.system.call(there, { type: 'echo', value: { ref: own } })) as { ref: typeof own };
      expect(back.ref.key).toBe(own.key);
      expect(await a.system.call(back.ref, { type: 'echo', value: 3 })).toBe(3);
    });

    test('a ref that returns after its actor ended is still the same actor', async () => {
      const own = a.system.spawn(echo);
      a.system.cast(there, { type: 'note', value: own });
      await a.system.stop(own);
      const back = (await a.system.call(there, { type: 'notes' })) as AnyRef[];
      expect(back.at(-1)?.key).toBe(own.key);
      await expect(a.system.call(back.at(-1) as AnyRef, { type: 'notes' } as never)).rejects.toMatchObject({
        code: 'NO_PROCESS',
      });
    });

    test('two refs to one actor on another node are the same', async () => {
      const [one, two] = [await a.system.call(there, { type: 'self' }), await a.system.call(there, { type: 'self' })];
      expect(one === two).toBe(false);
      expect(one.key).toBe(two.key);
      expect(a.system.isAlive(one)).toBe(true);
    });

    test('an actor can answer an actor it learned of from a third node', async () => {
      const onC = c.system.spawn(echo);
      c.system.register('echo', onC);
      const ref = await a.system.call(a.remote.remote(c.name, 'echo', ECHO), { type: 'self' });
      expect(await a.system.call(there, { type: 'ask', whom: ref, value: 'over three nodes' })).toBe(
        'over three nodes',
      );
      expect(await a.system.call(there, { type: 'ask', whom: a.system.spawn(echo), value: 'home' })).toBe('home');
    });
  });

  describe('monitors', () => {
    test('monitors report an end, a crash and an unknown actor once each', async () => {
      const watcher = a.system.spawn(echo);
      for (const [name, end] of [
        ['m1', { type: 'end' }],
        ['m2', { type: 'fail', why: 'broken' }],
      ] as const) {
        const ref = await spawnOnB(name);
        await a.system.call(watcher, { type: 'watch', whom: ref });
        a.system.cast(ref, end);
      }
      await until(async () => (await a.system.call(watcher, { type: 'downs' })).length === 2);
      await a.system.call(watcher, { type: 'watch', whom: a.remote.remote('x@127.0.0.1', 'nobody', ECHO) });
      await until(async () => (await a.system.call(watcher, { type: 'downs' })).length === 3);
      await a.system.call(watcher, { type: 'watch', whom: a.remote.remote(b.name, 'nobody', ECHO) });
      await until(async () => (await a.system.call(watcher, { type: 'downs' })).length === 4);
      expect(await a.system.call(watcher, { type: 'downs' })).toEqual([
        'normal',
        'crashed',
        'noconnection',
        'noprocess',
      ]);
      expect(a.remote.gauges.monitors).toBe(0);
    });

    test('monitors carry the error that the handler threw', async () => {
      const ref = await spawnOnB('m3');
      const down = new Promise<Down>((resolve) => a.system.monitor(ref, resolve));
      a.system.cast(ref, { type: 'fail', why: 'no coal' });
      expect(((await down).error as Error).message).toBe(`on ${b.name}: no coal`);
    });

    test('monitors end with their watcher and leave nothing behind', async () => {
      const watcher = a.system.spawn(echo);
      await a.system.call(watcher, { type: 'watch', whom: await spawnOnB('m4') });
      expect(a.remote.gauges.monitors).toBe(1);
      await a.system.stop(watcher);
      expect(a.remote.gauges.monitors).toBe(0);
    });

    test('stop ends an actor on another node and waits for it', async () => {
      const ref = await spawnOnB('m5');
      const down = new Promise<Down>((resolve) => a.system.monitor(ref, resolve));
      await a.system.stop(ref);
      expect((await down).reason).toBe('normal');
      expect(b.system.whereis('m5')).toBeUndefined();
    });
  });

  describe('lost connection', () => {
    test('fails its calls immediately and fires its monitors once, and everything works again afterwards', async () => {
      const downs: Down[] = [];
      const ref = await a.system.call(there, { type: 'self' });
      a.system.monitor(ref, (down) => downs.push(down));
      const open = [1, 2, 3].map(() =>
        a.system.call(there, { type: 'never' }, 60_000).catch((error: unknown) => error),
      );
      cut(a, b);
      for (const error of await Promise.all(open)) expect(error).toMatchObject({ code: 'NO_CONNECTION' });
      expect(downs).toEqual([{ ref, reason: 'noconnection' }]);
      expect(a.remote.gauges).toMatchObject({ calls: 0, monitors: 0 });

      await until(() => a.node.isConnected(b.name) && b.node.isConnected(a.name));
      expect(await a.system.call(ref, { type: 'echo', value: 'again' })).toBe('again');
      expect(downs.length).toBe(1);
    });

    test('is noticed on the other side too', async () => {
      await until(() => b.node.isConnected(a.name));
      const watcher = b.system.spawn(echo);
      const onA = a.system.spawn(echo);
      a.system.register('watched', onA);
      const ref = await b.system.call(b.remote.remote(a.name, 'watched', ECHO), { type: 'self' });
      await b.system.call(watcher, { type: 'watch', whom: ref });
      cut(a, b);
      await until(async () => (await b.system.call(watcher, { type: 'downs' })).length === 1);
      expect(await b.system.call(watcher, { type: 'downs' })).toEqual(['noconnection']);
      await until(() => a.node.isConnected(b.name));
    });

    test('a node that stops leaves no call open', async () => {
      const d = await startNode('d', mapper);
      const own = d.system.spawn(echo);
      d.system.register('echo', own);
      await a.node.connect(d.name);
      const ref = await a.system.call(a.remote.remote(d.name, 'echo', ECHO), { type: 'self' });
      const open = a.system.call(ref, { type: 'never' }, 60_000);
      open.catch(() => {});
      const down = new Promise<Down>((resolve) => a.system.monitor(ref, resolve));
      await d.stop();
      await expect(open).rejects.toMatchObject({ code: 'NO_CONNECTION' });
      expect((await down).reason).toBe('noconnection');
      await expect(
        d.system.call(d.remote.remote(b.name, 'echo', ECHO), { type: 'notes' } as never),
      ).rejects.toMatchObject({
        code: 'NO_CONNECTION',
      });
    });
  });

  test('no term from another node causes a crash or a leak', async () => {
    const word = fc.constantFrom('type', '$gen_call', '$gen_cast', 'call', 'note', 'down', '$map', 'rex', 'alias');
    const pid = a.node.createPid();
    const term = fc.letrec<{ term: Term }>((tie) => ({
      term: fc.oneof(
        { depthSize: 'small' },
        fc.oneof(fc.integer(), word, word.map(atom)),
        fc.constantFrom<Term>(pid, a.node.createRef(), new ImproperList([atom('alias')], a.node.createRef())),
        fc.array(tie('term'), { maxLength: 3 }),
        fc.dictionary(word, tie('term'), { maxKeys: 2 }),
        fc.array(tie('term'), { maxLength: 5 }).map((elements) => tuple(...elements)),
        fc.tuple(tie('term'), tie('term')).map(([tag, request]) => tuple(atom('$gen_call'), tuple(pid, tag), request)),
        tie('term').map((request) => tuple(atom('$gen_cast'), request)),
      ),
    })).term;
    const target = await spawnOnB('target');
    const { to: onB } = target as RemoteRef;
    const targets = [onB as Pid, { node: b.name, name: 'target' }, { node: b.name, name: 'rex' }];
    for (const any of fc.sample(term, RUNS)) for (const to of targets) a.node.send(to, any, { from: pid });
    expect(await a.system.call(there, { type: 'echo', value: 1 })).toBe(1);
    expect(b.remote.gauges).toMatchObject({ calls: 0, monitors: 0 });
  });

  test('pids are forgotten with their actors', async () => {
    const before = a.remote.gauges.pids;
    const refs = Array.from({ length: 100 }, () => a.system.spawn(echo));
    await a.system.call(there, { type: 'echo', value: refs });
    expect(a.remote.gauges.pids).toBe(before + 100);
    await Promise.all(refs.map((ref) => a.system.stop(ref)));
    expect(a.remote.gauges.pids).toBe(before);
  });

  test('many concurrent callers get their own answers', async () => {
    await until(() => a.node.isConnected(b.name));
    const answers = await Promise.all(
      Array.from({ length: 2_000 }, (_, value) => a.system.call(there, { type: 'echo', value }, 25_000)),
    );
    expect(answers).toEqual(Array.from({ length: 2_000 }, (_, i) => i));
    expect(a.remote.gauges.calls).toBe(0);
  });

  test('a system that was never connected knows no other node', async () => {
    const ref = a.remote.remote(b.name, 'echo', ECHO);
    const alone = openActorSystem({ log: silentLog });
    await expect(alone.call(ref, { type: 'notes' })).rejects.toMatchObject({ code: 'NO_CONNECTION' });
    expect(alone.cast(ref, { type: 'note', value: 1 })).toBe(false);
    expect((await new Promise<Down>((resolve) => alone.monitor(ref, resolve))).reason).toBe('noconnection');
    await alone.stop(ref);
    await alone.close();
  });
});
