import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Erlang, hasErlang } from '@bloom/distribution/testing';
import { createLogger } from '@bloom/log';
import { until } from '@bloom/time/testing';
import type { ActorRef, Behaviour } from '../index.js';
import { puppet, PUPPET, type PuppetProtocol } from '../testing/puppet.js';
import { startMapper, startNode, type TestMapper, type TestNode } from '../testing/nodes.js';
import { takeRequest, withRequest } from './request-field.js';

describe('request id across nodes', () => {
  let mapper: TestMapper;
  let a: TestNode;
  let b: TestNode;
  let here: ActorRef<PuppetProtocol>;
  let there: ActorRef<PuppetProtocol>;
  let target: ActorRef<PuppetProtocol>;
  const log = createLogger({ sink: () => undefined });

  beforeAll(async () => {
    mapper = await startMapper();
    [a, b] = [await startNode('a', mapper, { log }), await startNode('b', mapper)];
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

  test('travels with all of many like messages, of which the other node records the first few', async () => {
    type Crier = { cry: (message: object) => void };
    const crier: Behaviour<Crier, null> = {
      kind: 'crier',
      init: () => null,
      handlers: {
        cry: (_state, _message, context) => {
          for (let i = 1; i <= 20; i++) context.cast(there, { type: 'pass', to: here, what: `news ${i}` });
        },
      },
    };
    a.system.forRequest('r5').cast(a.system.spawn(crier), { type: 'cry' });
    const news = async () => (await a.system.call(here, { type: 'seen' })).filter((each) => each.startsWith('news'));
    await until(async () => (await news()).length === 20);
    expect(await news()).toEqual(Array.from({ length: 20 }, (_, i) => `news ${i + 1} in r5`));
    const logged = log.recent.last().filter(({ event, fields }) => event === 'noted' && fields['request_id'] === 'r5');
    expect(logged).toHaveLength(20);
    expect(b.system.hops('r5')).toHaveLength(8);
    const steps = a.system.hops('r5').map(({ what, omitted }) => [what, omitted]);
    expect(steps).toEqual([['cry', 12], ...Array.from({ length: 8 }, () => ['note', 0])]);
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

describe('request fields of a message', () => {
  const message = { type: 'note', what: 'x' };

  test('are removed, whatever they contain', () => {
    for (const id of ['r1', '', 'x'.repeat(200), 7, null, 'x'.repeat(201), ['r1']]) {
      const requestId = typeof id === 'string' && id.length <= 200 ? id : undefined;
      for (const omitted of [undefined, true, false, null, 'true', 1]) {
        const term = { ...message, $req: id, $omitted: omitted };
        expect(takeRequest(term as never)).toEqual({ requestId, isOmitted: omitted === true });
        expect(term).toEqual(message);
      }
    }
  });

  test('are the id alone, as earlier releases know it, unless the message is not recorded', () => {
    expect(withRequest(message, { requestId: 'r1', isOmitted: false })).toEqual({ ...message, $req: 'r1' });
    expect(withRequest(message, { requestId: 'r1', isOmitted: true })).toEqual({
      ...message,
      $req: 'r1',
      $omitted: true,
    });
  });
});
