import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Erlang, hasErlang, hasErlCall, run } from '@bloom/distribution/testing';
import { atom, isAtom, type Pid, type Term, Tuple, tuple } from '@bloom/etf';
import { until } from '@bloom/time/testing';
import {
  actor,
  Exit,
  later,
  takes,
  type ActorRef,
  type Shapes,
  type Behaviour,
  type Down,
  type TermMessage,
} from '../index.js';
import { RemoteRef } from '../ref.js';
import { looseShapes } from '../testing/counter.js';
import { COOKIE, startMapper, startNode, type TestMapper, type TestNode } from '../testing/nodes.js';

type CalcProtocol = {
  sum: (message: { of: number[] }) => number;
  seen: (message: object) => readonly TermMessage[];
  self: (message: object) => ActorRef<CalcProtocol>;
};

const CALC: Shapes<CalcProtocol> = {
  ...looseShapes<CalcProtocol>('sum', 'seen'),
  self: takes(
    {},
    actor(() => CALC),
  ),
};

/** Behaves like an Erlang gen_server: answers `{add, A, B}`, ends with the reason of `{die, Reason}`. */
function calc(trapsExits = false): Behaviour<CalcProtocol, { seen: TermMessage[] }> {
  return {
    kind: 'calc',
    shapes: CALC,
    endable: true,
    trapsExits,
    init: () => ({ seen: [] }),
    handlers: {
      sum: (_state, { of }) => of.reduce((total, value) => total + value, 0),
      seen: (state) => state.seen,
      self: (_state, _message, { self }) => self,
    },
    onTerm: (state, message) => {
      state.seen.push(message);
      const { term, kind } = message;
      if (!(term instanceof Tuple)) return kind === 'call' ? atom('what') : undefined;
      const [word, a, b] = term.elements;
      if (isAtom(word, 'die')) throw new Exit(a);
      if (isAtom(word, 'break')) throw new Error('broken');
      if (isAtom(word, 'add')) return (a as number) + (b as number);
      if (isAtom(word, 'later')) return later(Promise.resolve(tuple(atom('done'), a)));
      return a;
    },
  };
}

const TS = "'tsn@127.0.0.1'";
/** Erlang expression for the pid of a registered actor. */
const pidOf = (name: string): string => `element(2, gen_server:call({${name}, ${TS}}, #{<<"type">> => <<"self">>}))`;

(hasErlang ? describe : describe.skip)('with real Erlang [needs erlang]', () => {
  let mapper: TestMapper;
  let tsn: TestNode;
  let erl: Erlang;

  beforeAll(async () => {
    mapper = await startMapper();
    tsn = await startNode('tsn', mapper);
    const { remote } = tsn;
    remote.registerFunction(['calc', 'add', 2], (a, b) => (a as number) + (b as number));
    remote.registerFunction(['calc', 'slowly', 1], (value) => Promise.resolve(value));
    remote.registerFunction(['calc', 'never', 0], () => new Promise<Term>(() => {}), { timeoutMs: 30 });
    remote.registerFunction(['calc', 'fail', 0], () => {
      throw new Error('no luck');
    });
    remote.registerFunction(['calc', 'exit', 1], (reason) => {
      throw new Exit(reason);
    });
    remote.registerFunction(['calc', 'nothing', 0], () => {});
    remote.registerFunction(['calc', 'wrong', 0], () => (() => 1) as unknown as Term);
    erl = await Erlang.start('e1@127.0.0.1', mapper);
    expect(await erl.eval(`net_adm:ping(${TS})`)).toBe('pong');
  });
  afterAll(async () => {
    await erl?.stop();
    await tsn?.stop();
    await mapper?.close();
  });

  let ref: ActorRef<CalcProtocol>;
  beforeEach(async () => {
    const old = tsn.system.whereis('calc');
    if (old !== undefined) await tsn.system.stop(old);
    ref = tsn.system.spawn(calc());
    tsn.system.register('calc', ref);
  });
  const seen = () => tsn.system.call(ref, { type: 'seen' });

  describe('requests from Erlang', () => {
    test('reaches a registered actor by gen_server:call', async () => {
      expect(await erl.eval(`gen_server:call({calc, ${TS}}, {add, 2, 3})`)).toBe('5');
      expect(await erl.eval(`gen_server:call({calc, ${TS}}, {add, 2, 3}, infinity)`)).toBe('5');
      expect(await erl.eval(`gen_server:call({calc, ${TS}}, {later, [a]})`)).toBe('{done,[a]}');
      expect(await erl.eval(`gen_server:multi_call([${TS}], calc, {add, 4, 4}, 2000)`)).toBe(`{[{${TS},8}],[]}`);
    });

    test('fails a call to an unknown name with noproc', async () => {
      expect(await erl.eval(`catch gen_server:call({nosuch, ${TS}}, x)`)).toBe(
        `{'EXIT',{noproc,{gen_server,call,[{nosuch,${TS}},x]}}}`,
      );
    });

    test('exchanges messages of the protocol as maps with text keys', async () => {
      expect(
        await erl.eval(`gen_server:call({calc, ${TS}}, #{<<"type">> => <<"sum">>, <<"of">> => [1, 2, 3.5]})`),
      ).toBe('{ok,6.5}');
    });

    test('refuses terms for an actor without onTerm', async () => {
      tsn.system.register('deaf', tsn.system.spawn({ kind: 'deaf', shapes: {}, init: () => null, handlers: {} }));
      expect(await erl.eval(`gen_server:call({deaf, ${TS}}, hello)`)).toMatch(/^\{error,unknown_message,/);
      expect(await erl.eval(`gen_server:call({deaf, ${TS}}, #{<<"type">> => <<"x">>})`)).toMatch(
        /^\{error,unknown_message,/,
      );
    });

    test('delivers casts and plain messages as such, by name and by pid', async () => {
      expect(await erl.eval(`gen_server:cast({calc, ${TS}}, {note, 1}), {calc, ${TS}} ! {note, 2}, ok`)).toBe('ok');
      await until(async () => (await seen()).length === 2);
      expect((await seen()).map(({ kind, term }) => [kind, (term as Tuple).elements[1]])).toEqual([
        ['cast', 1],
        ['info', 2],
      ]);
      expect(await erl.eval(`P1 = ${pidOf('calc')}, gen_server:call(P1, {add, 1, 1})`)).toBe('2');
    });

    test('reports the reason to monitors by name and by pid', async () => {
      expect(
        await erl.eval(`begin P6 = ${pidOf('calc')}, R6 = erlang:monitor(process, {calc, ${TS}}),
          Q6 = erlang:monitor(process, P6), {calc, ${TS}} ! {die, bye},
          W6 = receive {'DOWN', R6, process, A6, B6} -> {A6, B6} after 3000 -> timeout end,
          V6 = receive {'DOWN', Q6, process, P6, C6} -> C6 after 3000 -> timeout end, {W6, V6} end`),
      ).toBe(`{{{calc,${TS}},bye},bye}`);
    });

    test('reports a fault with its message, and a clean end as normal', async () => {
      expect(
        await erl.eval(`begin R8 = erlang:monitor(process, {calc, ${TS}}),
          A8 = gen_server:call({calc, ${TS}}, {break, "it"}),
          {A8, receive {'DOWN', R8, process, _, B8} -> B8 after 3000 -> timeout end} end`),
      ).toBe('{{error,crashed,<<"broken">>},{crashed,<<"broken">>}}');
      ref = tsn.system.spawn(calc());
      tsn.system.register('calc', ref);
      const down = erl.eval(`begin R9 = erlang:monitor(process, {calc, ${TS}}), gen_server:cast({calc, ${TS}}, here),
        receive {'DOWN', R9, process, _, B9} -> B9 after 3000 -> timeout end end`);
      await until(async () => (await seen()).length === 1);
      await tsn.system.stop(ref);
      expect(await down).toBe('normal');
    });

    test('ends a monitor of an unknown name with noproc', async () => {
      expect(
        await erl.eval(`begin R7 = erlang:monitor(process, {nosuch, ${TS}}),
          receive {'DOWN', R7, process, W7, Y7} -> {W7, Y7} after 3000 -> timeout end end`),
      ).toBe(`{{nosuch,${TS}},noproc}`);
    });

    test('carries 20 MiB there and back', async () => {
      expect(
        await erl.eval(`begin B15 = binary:copy(<<"0123456789abcdef">>, 1310720),
          B15 =:= gen_server:call({calc, ${TS}}, {echo, B15}, 30000) end`),
      ).toBe('true');
    });
  });

  describe('function calls from Erlang', () => {
    test('reaches only registered functions through rpc and erpc', async () => {
      expect(await erl.eval(`{rpc:call(${TS}, calc, add, [4, 5]), erpc:call(${TS}, calc, add, [4, 6])}`)).toBe(
        '{9,10}',
      );
      expect(await erl.eval(`rpc:call(${TS}, calc, nope, [1, 2])`)).toBe(
        "{badrpc,{'EXIT',{undef,[{calc,nope,[1,2],[]}]}}}",
      );
      expect(await erl.eval(`rpc:call(${TS}, os, cmd, ["id"])`)).toContain('undef');
      expect(await erl.eval(`erpc:call(${TS}, calc, slowly, [#{a => {1, "x"}}])`)).toBe('#{a => {1,"x"}}');
      expect(await erl.eval(`erpc:call(${TS}, calc, nothing, [])`)).toBe('undefined');
    });

    test("passes a function's error to its caller", async () => {
      expect(await erl.eval(`catch erpc:call(${TS}, calc, fail, [])`)).toContain('{crashed,<<"no luck">>}');
      expect(await erl.eval(`catch erpc:call(${TS}, calc, exit, [{my, reason}])`)).toContain('{my,reason}');
      expect(await erl.eval(`catch erpc:call(${TS}, calc, never, [])`)).toContain('timeout');
      expect(await erl.eval(`catch erpc:call(${TS}, calc, wrong, [])`)).toContain('is not a term');
      expect(await erl.eval(`erpc:call(${TS}, calc, add, [1, 1])`)).toBe('2');
    });

    test('answers multicall, and runs erpc and rex casts without an answer', async () => {
      const calls: Term[] = [];
      tsn.remote.registerFunction(['calc', 'note', 1], (value) => void calls.push(value));
      expect(
        await erl.eval(`erpc:cast(${TS}, calc, note, [1]), rpc:cast(${TS}, calc, note, [2]),
        gen_server:cast({rex, ${TS}}, {cast, calc, note, [3], group_leader()}), ok`),
      ).toBe('ok');
      await until(() => calls.length === 3);
      expect(calls.toSorted()).toEqual([1, 2, 3]);
      expect(await erl.eval(`erpc:multicall([${TS}], calc, add, [1, 2])`)).toBe('[{ok,3}]');
    });

    test('serves older callers through rex', async () => {
      const ask = (mfa: string) => erl.eval(`gen_server:call({rex, ${TS}}, {call, ${mfa}, group_leader()})`);
      expect(await ask('calc, add, [4, 5]')).toBe('9');
      expect(await ask('calc, nope, []')).toBe("{badrpc,{'EXIT',{undef,[{calc,nope,[],[]}]}}}");
      expect(await ask('calc, fail, []')).toBe(`{badrpc,{'EXIT',{{crashed,<<"no luck">>},[]}}}`);
    });

    test('spawns nothing else', async () => {
      expect(await erl.eval(`catch spawn_monitor(${TS}, calc, add, [1, 2])`)).toMatch(/^\{'EXIT',\{notsup,/);
      expect(await erl.eval(`catch spawn_monitor(${TS}, erpc, execute_call, [1, 2])`)).toMatch(/^\{'EXIT',\{notsup,/);
    });

    (hasErlCall ? test : test.skip)('a C node calls through rex [needs erl_call]', async () => {
      const args = ['-c', COOKIE, '-name', tsn.name, '-timeout', '4', '-a', 'calc add [1,2]'];
      expect(await run('erl_call', args, mapper.port)).toEqual({ out: '3', code: 0 });
    });

    test('runs no more functions at once than the limit', async () => {
      const small = await startNode('small', mapper, { maxRunningFunctions: 1 });
      let open: (value: Term) => void = () => {};
      small.remote.registerFunction(['m', 'wait', 0], () => new Promise<Term>((resolve) => (open = resolve)));
      expect(await erl.eval("K = erpc:send_request('small@127.0.0.1', m, wait, []), ok")).toBe('ok');
      await until(() => small.remote.counters.functionCalls === 1);
      expect(await erl.eval("catch erpc:call('small@127.0.0.1', m, wait, [])")).toContain('system_limit');
      expect(await erl.eval("gen_server:call({rex, 'small@127.0.0.1'}, {call, m, wait, [], group_leader()})")).toBe(
        "{badrpc,{'EXIT',{system_limit,[]}}}",
      );
      open(7);
      expect(await erl.eval('erpc:receive_response(K)')).toBe('7');
      await small.stop();
    });
  });

  describe('links', () => {
    test('ends an actor with a linked Erlang process', async () => {
      const ended = new Promise<Down>((resolve) => tsn.system.monitor(ref, resolve));
      await erl.eval(`L1 = ${pidOf('calc')}, spawn(fun() -> link(L1), exit(boom) end)`);
      const down = await ended;
      expect(down.reason).toBe('crashed');
      expect(isAtom((down.error as Exit).reason, 'boom')).toBe(true);
    });

    test('ends an Erlang process with the actor it is linked to, and gives it the reason', async () => {
      expect(
        await erl.eval(`begin process_flag(trap_exit, true), L2 = ${pidOf('calc')}, link(L2),
          L2 ! {die, {bad, day}}, receive {'EXIT', L2, E2} -> E2 after 3000 -> timeout end end`),
      ).toBe('{bad,day}');
    });

    test('delivers a message to an actor that traps exits, which survives', async () => {
      const tough = tsn.system.spawn(calc(true));
      tsn.system.register('tough', tough);
      await erl.eval(`L3 = ${pidOf('tough')}, spawn(fun() -> link(L3), exit(why) end)`);
      await until(async () => (await tsn.system.call(tough, { type: 'seen' })).length === 1);
      const [message] = await tsn.system.call(tough, { type: 'seen' });
      expect(message).toMatchObject({ kind: 'exit', node: erl.name });
      expect(isAtom(message?.term, 'why')).toBe(true);

      await erl.eval('exit(L3, kill)');
      await until(() => !tsn.system.isAlive(tough));
    });

    test('ignores the exit signal `normal`, ends cleanly on `shutdown`, and removes the link on unlink', async () => {
      const down = new Promise<Down>((resolve) => tsn.system.monitor(ref, resolve));
      const script = `begin L4 = ${pidOf('calc')}, exit(L4, normal), link(L4), unlink(L4),
        gen_server:call(L4, {add, 1, 2}) end`;
      expect(await erl.eval(script)).toBe('3');
      const { links } = { links: await erl.eval('element(2, process_info(self(), links))') };
      expect(links).not.toContain('tsn');
      await erl.eval('exit(L4, shutdown)');
      expect((await down).reason).toBe('normal');
    });

    test('ends an Erlang process from one of our actors', async () => {
      const script = `X5 = spawn(fun() -> receive never -> ok end end), gen_server:cast({calc, ${TS}}, X5), is_process_alive(X5)`;
      expect(await erl.eval(script)).toBe('true');
      await until(async () => (await seen()).length === 1);
      const [message] = await seen();
      await tsn.system.stop(new RemoteRef(erl.name, message?.term as Pid));
      expect(await erl.eval('is_process_alive(X5)')).toBe('false');
    });
  });

  describe('requests to Erlang', () => {
    beforeAll(async () => {
      await erl.eval(`Echo = fun F() -> receive
          {'$gen_call', From, #{<<"type">> := <<"double">>, <<"n">> := N}} ->
            gen_server:reply(From, {ok, #{<<"was">> => <<"double">>, <<"twice">> => 2 * N}}), F();
          {'$gen_call', From, #{<<"type">> := <<"echo">>, <<"value">> := V}} -> gen_server:reply(From, {ok, V}), F();
          {'$gen_call', From, #{<<"type">> := <<"die">>}} -> exit(of_age);
          {'$gen_call', From, #{<<"type">> := <<"quiet">>}} -> F();
          {'$gen_cast', #{<<"type">> := <<"tell">>, <<"whom">> := P}} -> P ! {cast, self()}, F() end end, ok`);
    });
    beforeEach(async () => {
      await erl.eval('case whereis(echo) of undefined -> register(echo, spawn(Echo)); _ -> ok end');
    });
    type Echo = {
      double: (message: { n: number }) => { was: string; twice: number };
      echo: (message: { value: unknown }) => unknown;
      die: (message: object) => void;
      quiet: (message: object) => void;
      tell: (message: { whom: ActorRef<CalcProtocol> }) => void;
    };
    const ECHO = looseShapes<Echo>('double', 'echo', 'die', 'quiet', 'tell');
    const echo = (): ActorRef<Echo> => tsn.remote.remote(erl.name, 'echo', ECHO);

    test('answers a call, and sends messages as maps', async () => {
      expect(await tsn.system.call(echo(), { type: 'double', n: 21 })).toEqual({ was: 'double', twice: 42 });
    });

    test('distinguishes failures', async () => {
      const nosuch = tsn.remote.remote(erl.name, 'nosuch', ECHO);
      await expect(tsn.system.call(nosuch, { type: 'quiet' })).rejects.toMatchObject({ code: 'NO_PROCESS' });
      await expect(tsn.system.call(echo(), { type: 'quiet' }, 30)).rejects.toMatchObject({ code: 'TIMEOUT' });
      const died = await tsn.system.call(echo(), { type: 'die' }).catch((error: unknown) => error);
      expect(died).toMatchObject({ code: 'CRASHED' });
      expect((died as Error).message).toContain('of_age');

      const other = await Erlang.start('e2@127.0.0.1', mapper);
      await tsn.node.connect(other.name);
      const waiting = tsn.system.call(tsn.remote.remote(other.name, 'init', ECHO), { type: 'quiet' }, 60_000);
      const lost = expect(waiting).rejects.toMatchObject({ code: 'NO_CONNECTION' });
      await other.stop();
      await lost;
      expect(tsn.remote.gauges.calls).toBe(0);
    });

    test('delivers casts, with refs in them as pids', async () => {
      expect(tsn.system.cast(echo(), { type: 'tell', whom: ref })).toBe(true);
      await until(async () => (await seen()).length === 1);
      const [message] = await seen();
      expect(((message as TermMessage & { term: Tuple }).term.elements[1] as Pid).node).toBe(erl.name);
    });

    test('gives a monitor the reason', async () => {
      const heard = new Promise<Down>((resolve) => tsn.system.monitor(echo(), resolve));
      // Messages stay in order: once this one is answered, the monitor is active.
      await tsn.system.call(echo(), { type: 'echo', value: 1 });
      await erl.eval('exit(whereis(echo), {shutdown, done})');
      expect((await heard).reason).toBe('normal');
    });

    test('returns bytes that are not text as bytes', async () => {
      const bytes = Buffer.from([0xff, 0xfe, 0]);
      const back = await tsn.system.call(echo(), { type: 'echo', value: bytes });
      expect(Buffer.from(back as Uint8Array).equals(bytes)).toBe(true);
    });
  });

  test('fails only the caller of a result too large for a frame', async () => {
    const limits = { maxFrameBytes: 100_000 };
    const d = await startNode('d', mapper, { limits });
    d.remote.registerFunction(['m', 'large', 0], () => Buffer.alloc(limits.maxFrameBytes));
    expect(await erl.eval("catch erpc:call('d@127.0.0.1', m, large, [])")).toContain('system_limit');
    expect(await erl.eval("gen_server:call({rex, 'd@127.0.0.1'}, {call, m, large, [], group_leader()})")).toBe(
      "{badrpc,{'EXIT',{system_limit,[]}}}",
    );
    expect(d.remote.gauges).toMatchObject({ calls: 0, monitors: 0 });
    await d.stop();
  });
});
