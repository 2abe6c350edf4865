import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { type Atom, atom, Float, type Pid, sameTerm, type Term, tuple } from '@bloom/etf';
import { codePoint, until } from '@bloom/time/testing';
import { Erlang, hasErlang, startMapper, type TestMapper } from './testing/erlang.js';
import { TestNode } from './testing/test-node.js';
import { TestWires } from './testing/wires.js';

const NIGHTLY = process.env['BLOOM_NIGHTLY'] !== undefined;
const X = 'x@127.0.0.1';

// A process that answers {swap, A, B}, hands out its pid, and keeps the last message sent to it.
const ECHO = `Echo = fun E(Last) ->
  receive
    {'$gen_call', {P, T}, {swap, A, B}} -> gen_server:reply({P, T}, {B, A}), E(Last);
    {'$gen_call', {P, T}, pid} -> gen_server:reply({P, T}, self()), E(Last);
    {'$gen_call', {P, T}, last} -> gen_server:reply({P, T}, Last), E(Last);
    {'$gen_call', _, never} -> E(Last);
    stop -> ok;
    M -> E(M)
  end end,
  register(echo, spawn(fun() -> Echo(none) end))`;

(hasErlang ? describe : describe.skip)('from ours to a real Erlang node [needs erlang]', () => {
  let mapper: TestMapper;
  let us: TestNode;
  let x: Erlang;
  const wires = new TestWires();
  const more: { stop(): Promise<void> }[] = [];

  beforeAll(async () => {
    mapper = await startMapper('original');
    us = await TestNode.start('us@127.0.0.1', mapper.port, { world: wires.world });
    x = await Erlang.start(X, { port: mapper.port });
    await x.eval(ECHO);
  }, 30_000);
  afterAll(async () => {
    await us?.stop();
    await x?.stop();
    await mapper?.stop();
  });
  afterEach(async () => {
    for (const other of more.splice(0)) await other.stop();
  });

  const another = async (name: string, tickTime = 8): Promise<Erlang> => {
    const erl = await Erlang.start(`${name}@127.0.0.1`, { port: mapper.port, tickTime });
    more.push(erl);
    return erl;
  };

  test('D1: calls a registered process', async () => {
    expect(await us.call({ node: X, name: 'echo' }, tuple(atom('swap'), 1, 'two'))).toEqual({ reply: tuple('two', 1) });
  });

  test('D2: calls net_kernel, and pings', async () => {
    expect(await us.call({ node: X, name: 'net_kernel' }, tuple(atom('is_auth'), atom(us.node.name)))).toEqual({
      reply: atom('yes'),
    });
    expect(await us.node.ping(X)).toBe(true);
    expect(await us.node.ping('nobody@127.0.0.1')).toBe(false);
  });

  test('D3: calls functions by erpc', async () => {
    expect(await us.erpcCall(X, ['erlang', 'node'], [])).toEqual(tuple(atom('return'), atom(X)));
    expect(await us.erpcCall(X, ['lists', 'sum'], [[1, 2, 3]])).toEqual(tuple(atom('return'), 6));
    const failed = (await us.erpcCall(X, ['nomodule', 'nofun'], [])) as unknown as { elements: Term[] };
    expect(failed.elements.slice(0, 2)).toEqual([atom('error'), atom('undef')]);
  });

  test('D4: distinguishes an unknown name, a lost connection and a timeout of a call', async () => {
    expect(await us.call({ node: X, name: 'nosuch' }, 1)).toEqual({ down: atom('noproc') });
    const y = await another('y');
    await y.eval(ECHO);
    const lost = us.call({ node: y.name, name: 'echo' }, atom('never'));
    await until(() => us.node.isConnected(y.name));
    await new Promise((resolve) => setTimeout(resolve, 50));
    y.signal('SIGKILL');
    expect(await lost).toEqual({ down: atom('noconnection') });
    expect(await us.call({ node: X, name: 'echo' }, atom('never'), 50)).toEqual({ timeout: true });
    await expect(us.call({ node: 'nobody@127.0.0.1', name: 'x' }, 1)).rejects.toMatchObject({
      code: 'NODE_NOT_REGISTERED',
    });
  });

  test('D5: monitors, links in both directions, exits and unlinks', async () => {
    const spawnOne = async (): Promise<Pid> => {
      await x.eval('(catch unregister(one)), register(one, spawn(fun() -> receive {die, R} -> exit(R) end end))');
      return ((await us.erpcCall(X, ['erlang', 'whereis'], [atom('one')])) as unknown as { elements: Term[] })
        .elements[1] as Pid;
    };
    const watched = await spawnOne();
    const reason = us.monitor(watched);
    const own = us.process();
    us.node.send(watched, tuple(atom('die'), tuple(atom('why'), 'so')), { from: own.pid });
    expect(await reason).toEqual({ down: tuple(atom('why'), 'so') });

    const linked = await spawnOne();
    us.node.link(own.pid, linked);
    us.node.send(linked, tuple(atom('die'), atom('boom')), { from: own.pid });
    await until(() => own.exits.length === 1);
    expect(own.exits[0]).toMatchObject({ linked: true, reason: atom('boom') });

    // The reverse: it links to our process and traps exits.
    us.process('ours');
    await x.eval("process_flag(trap_exit, true), {ours, 'us@127.0.0.1'} ! self()");
    const ours = us.whereIs('ours') as Pid;
    const shell = (await us.erpcCall(
      X,
      ['erlang', 'list_to_pid'],
      [Array.from(String(await x.eval('pid_to_list(self())')).slice(1, -1)).map((c) => c.charCodeAt(0))],
    )) as unknown as { elements: Term[] };
    us.node.link(ours, shell.elements[1] as Pid);
    us.end(ours, tuple(atom('gone'), 1));
    expect(await x.eval("receive {'EXIT', P5, {gone, 1}} -> node(P5) after 2000 -> timeout end")).toBe(
      "'us@127.0.0.1'",
    );

    const unlinked = await spawnOne();
    us.node.link(own.pid, unlinked);
    await until(async () => (await x.eval('element(2, process_info(whereis(one), links)) =/= []')) === 'true');
    us.node.unlink(own.pid, unlinked);
    await until(async () => (await x.eval('element(2, process_info(whereis(one), links))')) === '[]');
    us.node.send(unlinked, tuple(atom('die'), atom('late')), { from: own.pid });
    await until(async () => (await x.eval('whereis(one)')) === 'undefined');
    expect(own.exits).toHaveLength(1);

    await x.eval('process_flag(trap_exit, true)');
    us.node.exit(own.pid, shell.elements[1] as Pid, atom('please'));
    expect(await x.eval("receive {'EXIT', _, please} -> ok after 2000 -> timeout end")).toBe('ok');
  }, 20_000);

  test('D6: drops a frozen node after its tick time, and lets it come back', async () => {
    const tick = NIGHTLY ? 8 : 4;
    const ticking = await TestNode.start('ticking@127.0.0.1', mapper.port, { tickTimeMs: tick * 1_000 });
    more.push(ticking);
    const frozen = await another('frozen', tick);
    expect(await ticking.node.ping(frozen.name)).toBe(true);
    frozen.signal('SIGSTOP');
    const took = await until(() => !ticking.node.isConnected(frozen.name), 15_000);
    expect(took).toBeGreaterThan(tick * 750 - 100);
    expect(took).toBeLessThan(tick * 1_250 + 500);
    await until(() => ticking.events.some((event) => 'down' in event && event.reason === 'net_tick_timeout'));
    frozen.signal('SIGCONT');
    await until(() => ticking.node.ping(frozen.name), 10_000);
  }, 30_000);

  test('D7: takes over with a second connection of the same name, unless its cookie is wrong', async () => {
    const first = await TestNode.start('twin@127.0.0.1', mapper.port);
    const second = await TestNode.start('twin@127.0.0.1', mapper.port, { listen: false });
    const wrong = await TestNode.start('twin@127.0.0.1', mapper.port, { listen: false, cookie: 'wrong' });
    more.push(first, second, wrong);
    expect(await first.node.ping(X)).toBe(true);
    await expect(wrong.node.connect(X)).rejects.toMatchObject({ reason: 'closed' });
    expect(await first.node.ping(X)).toBe(true);
    expect(await second.node.ping(X)).toBe(true);
    await until(() => !first.node.isConnected(X));
    expect(await second.node.ping(X)).toBe(true);
  });

  test('D8: always ends simultaneous attempts of both sides in one working connection', async () => {
    const rounds = NIGHTLY ? 150 : 25;
    for (const name of ['aa@127.0.0.1', 'zz@127.0.0.1']) {
      const ours = await TestNode.start(name, mapper.port);
      more.push(ours);
      for (let round = 0; round < rounds; round++) {
        const theirs = x.eval(`net_kernel:connect_node('${name}')`);
        await ours.node.connect(X).catch(() => {});
        expect(await theirs).toBe('true');
        expect(await ours.node.ping(X)).toBe(true);
        ours.node.disconnect(X);
        await until(async () => (await x.eval('nodes(hidden)')).includes(name) === false);
      }
    }
  }, 60_000);

  test('D9: connects again after Erlang has closed because of a malformed frame', async () => {
    expect(await us.node.ping(X)).toBe(true);
    us.events.length = 0;
    // A control message of number 200.
    wires.write(Buffer.from('000000067083680161c8', 'hex'));
    await until(() => !us.node.isConnected(X));
    expect(us.node.counters.closed.connection_closed).toBeGreaterThan(0);
    expect(await us.node.ping(X)).toBe(true);
  });

  test('D10: sends terms that arrive exactly as sent', async () => {
    const terms: Term[] = [1, 1.5, new Float(2), -1, 1099511627776, 2n ** 70n, 'str', true, null, undefined, { a: 1 }];
    await us.node.connect(X);
    us.node.send({ node: X, name: 'echo' }, terms, { from: us.process().pid });
    const back = await us.call({ node: X, name: 'echo' }, atom('last'));
    expect(
      'reply' in back &&
        sameTerm(back.reply, [1, 1.5, 2, -1, 1099511627776, 2n ** 70n, 'str', true, null, undefined, { a: 1 }]),
    ).toBe(true);
    us.functions['check:last/1'] = (verdict) => verdict as Atom;
    expect(
      await x.eval(`begin L = gen_server:call(echo, last),
        L =:= [1, 1.5, 2.0, -1, 1099511627776, 1 bsl 70, <<"str">>, true, nil, undefined, #{<<"a">> => 1}] end`),
    ).toBe('true');
  });

  test('returns random terms unchanged from a round trip', async () => {
    const { default: fc } = await import('fast-check');
    const value = fc.letrec<{ term: Term }>((tie) => ({
      term: fc.oneof(
        { depthSize: 'small' },
        fc.integer(),
        fc.string({ unit: codePoint(fc) }),
        fc.constantFrom<Term>(true, null, atom('x')),
        fc.array(tie('term'), { maxLength: 5 }),
        fc.dictionary(fc.string(), tie('term'), { maxKeys: 5 }),
        fc.array(tie('term'), { maxLength: 5 }).map((elements) => tuple(...elements)),
      ),
    })).term;
    for (const term of fc.sample(value, { numRuns: 200, seed: 3 })) {
      const answer = await us.call({ node: X, name: 'echo' }, tuple(atom('swap'), term, 1));
      expect('reply' in answer && sameTerm(answer.reply, tuple(1, term))).toBe(true);
    }
  });
});
