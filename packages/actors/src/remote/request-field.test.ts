import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Erlang, hasErlang } from '@bloom/distribution/testing';
import { until } from '@bloom/time/testing';
import type { ActorRef, Behaviour } from '../index.js';
import { puppet, PUPPET, type PuppetProtocol } from '../testing/puppet.js';
import { startMapper, startNode, type TestMapper, type TestNode } from '../testing/nodes.js';
import { takeRequestId, withRequestId } from './request-field.js';

describe('request id across nodes', () => {
  let mapper: TestMapper;
  let a: TestNode;
  let b: TestNode;
  let here: ActorRef<PuppetProtocol>;
  let there: ActorRef<PuppetProtocol>;
  let target: ActorRef<PuppetProtocol>;

  beforeAll(async () => {
    mapper = await startMapper();
    [a, b] = [await startNode('a', mapper), await startNode('b', mapper)];
    here = a.system.spawn(puppet(), { name: 'here' });
    target = b.system.spawn(puppet(), { name: 'there' });
    b.system.register('there', target);
    a.node.seed([b.name]);
    await until(() => a.node.nodes().length === 1 && b.node.nodes().length === 1);
    there = a.remote.remote(b.name, 'there', PUPPET);
  });
  afterAll(async () => {
    for (const node of [a, b]) await node?.stop();
    await mapper?.close();
  });

  test('travels with casts and calls, and with everything they cause', async () => {
    expect(await a.system.forRequest('r1', 'http').call(there, { type: 'pass', to: here, what: 'x' })).toBe('r1');
    await until(async () => (await a.system.call(here, { type: 'seen' })).includes('x in r1'));
    a.system.forRequest('r2').cast(here, { type: 'pass', to: there, what: 'y' });
    await until(async () => (await b.system.call(target, { type: 'seen' })).includes('y in r2'));
    expect(b.system.hops('r1')).toEqual([
      expect.objectContaining({ where: '/there', what: 'pass', from: a.name, failed: false }),
    ]);
    expect(a.system.hops('r1')).toEqual([expect.objectContaining({ where: '/here', what: 'note', from: b.name })]);
  });

  test('travels with the first few of many like messages only, so that the other node records no more', async () => {
    type Crier = { cry: (message: object) => void };
    const crier: Behaviour<Crier, null> = {
      kind: 'crier',
      init: () => null,
      handlers: {
        cry: (_state, _message, context) => {
          for (let i = 1; i <= 20; i++) context.cast(there, { type: 'note', what: `news ${i}` });
        },
      },
    };
    a.system.forRequest('r5').cast(a.system.spawn(crier), { type: 'cry' });
    await until(async () => (await b.system.call(target, { type: 'seen' })).includes('news 20 in undefined'));
    expect(b.system.hops('r5')).toHaveLength(8);
    expect(a.system.hops('r5')).toMatchObject([{ what: 'cry', omitted: 12 }]);
  });

  test('is missing without a request, and is never part of the message', async () => {
    const messages: unknown[] = [];
    const end = b.system.trace({ match: () => true, limit: 10, withinMs: 5_000, type: 'note' }, ({ message }) =>
      messages.push(message),
    );
    a.system.forRequest('r3').cast(there, { type: 'note', what: 'with' });
    a.system.cast(there, { type: 'note', what: 'without' });
    await until(async () => (await b.system.call(target, { type: 'seen' })).includes('without in undefined'));
    end.stop();
    expect(messages).toEqual([
      { type: 'note', what: 'with' },
      { type: 'note', what: 'without' },
    ]);
  });

  (hasErlang ? test : test.skip)("is not sent to Erlang, and Erlang's messages have none [needs erlang]", async () => {
    const erl = await Erlang.start('e1@127.0.0.1', mapper);
    try {
      expect(await erl.eval(`net_adm:ping('a@127.0.0.1')`)).toBe('pong');
      await until(() => a.node.isConnected('e1@127.0.0.1'));
      await erl.eval('register(shell, self())');
      const shell = a.remote.remote('e1@127.0.0.1', 'shell', PUPPET);
      expect(a.system.forRequest('r4').cast(shell, { type: 'note', what: 'hello' })).toBe(true);
      expect(await erl.eval(`receive {'$gen_cast', M} -> lists:sort(maps:keys(M)) after 5000 -> none end`)).toBe(
        '[<<"type">>,<<"what">>]',
      );
    } finally {
      await erl.stop();
    }
  });
});

describe('request field of a message', () => {
  test('is removed, whatever it contains', () => {
    const message = { type: 'note', what: 'x' };
    for (const id of ['r1', '', 'x'.repeat(200)]) {
      const term = { ...withRequestId(message, id) };
      expect(takeRequestId(term as never)).toBe(id);
      expect(term).toEqual(message);
    }
    for (const id of [7, null, 'x'.repeat(201), ['r1']]) {
      const term = { ...withRequestId(message, id as string) };
      expect(takeRequestId(term as never)).toBeUndefined();
      expect(term).toEqual(message);
    }
  });
});
