import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { Erlang, hasElixir, hasErlang, hasErlCall, run, startMapper, type TestMapper } from './testing/erlang.js';
import { COOKIE, TestNode } from './testing/test-node.js';

const NIGHTLY = process.env['BLOOM_NIGHTLY'] !== undefined;
const TS = "'tsn@127.0.0.1'";

(hasErlang ? describe : describe.skip)('from a real Erlang node to ours [needs erlang]', () => {
  let mapper: TestMapper;
  let tsn: TestNode;
  let erl: Erlang;
  const more: { stop(): Promise<void> }[] = [];

  beforeAll(async () => {
    mapper = await startMapper('original');
    tsn = await TestNode.start('tsn@127.0.0.1', mapper.port);
    erl = await Erlang.start('c1@127.0.0.1', { port: mapper.port });
  }, 30_000);
  afterAll(async () => {
    await erl?.stop();
    await tsn?.stop();
    await mapper?.stop();
  });
  afterEach(async () => {
    for (const other of more.splice(0)) await other.stop();
  });

  test('C1: answers pings and is a hidden node', async () => {
    expect(await erl.eval(`{net_adm:ping(${TS}), nodes(), nodes(hidden)}`)).toBe(`{pong,[],[${TS}]}`);
  });

  test('C3: answers gen_server calls', async () => {
    expect(await erl.eval(`gen_server:call({calc, ${TS}}, {add, 2, 3})`)).toBe('5');
    expect(await erl.eval(`gen_server:call({calc, ${TS}}, {add, 2, 3}, infinity)`)).toBe('5');
    expect(await erl.eval(`gen_server:multi_call([${TS}], calc, {add, 4, 4}, 2000)`)).toBe(`{[{${TS},8}],[]}`);
  });

  test('C4: a call to an unknown name fails with noproc', async () => {
    expect(await erl.eval(`catch gen_server:call({nosuch, ${TS}}, x)`)).toBe(
      `{'EXIT',{noproc,{gen_server,call,[{nosuch,${TS}},x]}}}`,
    );
  });

  test('C5: answers rpc and erpc from its table of functions', async () => {
    expect(await erl.eval(`{rpc:call(${TS}, calc, add, [4, 5]), erpc:call(${TS}, calc, add, [4, 6])}`)).toBe('{9,10}');
    expect(await erl.eval(`rpc:call(${TS}, calc, nope, [1, 2])`)).toBe(
      "{badrpc,{'EXIT',{undef,[{calc,nope,[1,2],[]}]}}}",
    );
  });

  test('C4: fails a call to an unknown name with noproc', async () => {
    expect(
      await erl.eval(`begin R6 = erlang:monitor(process, {calc, ${TS}}), {calc, ${TS}} ! {die, bye},
        receive {'DOWN', R6, process, W6, Y6} -> {W6, Y6} after 3000 -> timeout end end`),
    ).toBe(`{{calc,${TS}},bye}`);
  });

  test('C7: a monitor of an unknown name ends with noproc', async () => {
    expect(
      await erl.eval(`begin R7 = erlang:monitor(process, {nosuch, ${TS}}),
        receive {'DOWN', R7, process, W7, Y7} -> {W7, Y7} after 3000 -> timeout end end`),
    ).toBe(`{{nosuch,${TS}},noproc}`);
  });

  test('C8: a node with another cookie is refused and counted', async () => {
    const before = tsn.node.counters.handshakes.bad_cookie ?? 0;
    const stranger = await Erlang.start('c8@127.0.0.1', { port: mapper.port, cookie: 'wrong' });
    more.push(stranger);
    expect(await stranger.eval(`net_adm:ping(${TS})`)).toBe('pang');
    expect(tsn.node.counters.handshakes.bad_cookie).toBe(before + 1);
    expect(await erl.eval(`net_adm:ping(${TS})`)).toBe('pong');
  });

  test('C7: ends a monitor of an unknown name with noproc', async () => {
    const args = [
      '-noshell',
      '-sname',
      'c9',
      '-setcookie',
      COOKIE,
      '-eval',
      `io:format("~p~n",[net_adm:ping(${TS})]),halt().`,
    ];
    const { out } = await run('erl', args, mapper.port);
    expect(out).toContain('pang');
    expect(out).toContain('Hostname 127.0.0.1 is illegal');
    await expect(tsn.node.connect('c9@shorthost')).rejects.toThrow('c9@shorthost has a short host name');
  });

  (NIGHTLY ? test : test.skip)(
    'C10: stays connected when idle (T=8, 20 s) [nightly]',
    async () => {
      await erl.eval(`net_adm:ping(${TS})`);
      await new Promise((resolve) => setTimeout(resolve, 20_000));
      expect(await erl.eval('nodes(hidden)')).toBe(`[${TS}]`);
    },
    30_000,
  );

  (NIGHTLY ? test : test.skip)(
    'C10: stays connected when idle (T=60, 160 s) [nightly]',
    async () => {
      const slow = await TestNode.start('slow@127.0.0.1', mapper.port, { tickTimeMs: 60_000 });
      const idle = await Erlang.start('c10@127.0.0.1', { port: mapper.port, tickTime: 60 });
      more.push(slow, idle);
      await idle.eval("net_adm:ping('slow@127.0.0.1')");
      await new Promise((resolve) => setTimeout(resolve, 160_000));
      expect(await idle.eval('nodes(hidden)')).toBe("['slow@127.0.0.1']");
      expect(slow.node.linkCounters('c10@127.0.0.1')?.ticksIn).toBeGreaterThan(6);
    },
    200_000,
  );

  test('C8: refuses and counts a node with another cookie', async () => {
    expect(await erl.eval(`catch spawn_monitor(${TS}, calc, add, [1, 2])`)).toMatch(/^\{'EXIT',\{notsup,/);
    expect(
      await erl.eval(`begin process_flag(trap_exit, true), P11 = spawn_link(${TS}, calc, add, [1, 2]),
        receive {'EXIT', P11, R11} -> R11 after 3000 -> timeout end end`),
    ).toBe('notsup');
  });

  test('C9: cannot be reached by a node with short names, and refuses to dial one', async () => {
    const gone = await TestNode.start('gone@127.0.0.1', mapper.port);
    const name = "'gone@127.0.0.1'";
    expect(
      await erl.eval(
        `{net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true}), net_adm:ping(${name})}`,
      ),
    ).toBe('{ok,pong}');
    await gone.stop();
    expect(await erl.eval(`receive {nodedown, ${name}, I12} -> I12 after 1000 -> timeout end`)).toBe(
      '#{node_type => hidden,nodedown_reason => connection_closed}',
    );
  });

  (hasElixir ? test : test.skip)(
    'C13: Elixir connects, calls and uses erpc [needs elixir]',
    async () => {
      const script = `IO.inspect {Node.connect(:"tsn@127.0.0.1"), Node.list(:hidden), GenServer.call({:calc, :"tsn@127.0.0.1"}, {:add, 2, 3}), :erpc.call(:"tsn@127.0.0.1", :calc, :add, [4,6])}`;
      const args = [
        '--erl',
        '-kernel inet_dist_use_interface {127,0,0,1}',
        '--name',
        'ex1@127.0.0.1',
        '--cookie',
        COOKIE,
        '-e',
        script,
      ];
      expect((await run('elixir', args, mapper.port)).out).toContain('{true, [:"tsn@127.0.0.1"], 5, 10}');
    },
    30_000,
  );

  (hasErlCall ? test : test.skip)('C14: a C node calls through rex [needs erl_call]', async () => {
    const args = (cookie: string) => ['-c', cookie, '-name', 'tsn@127.0.0.1', '-timeout', '4', '-a', 'calc add [1,2]'];
    expect((await run('erl_call', args(COOKIE), mapper.port)).out).toBe('3');
    expect((await run('erl_call', args('wrong'), mapper.port)).out).toContain('failed to connect');
  });

  test('gives a shell without a name one of its own', async () => {
    const local = await TestNode.start('tsl@localhost', mapper.port, { mode: 'sname' });
    more.push(local);
    const ask = `{net_kernel:connect_node(N), net_adm:ping(N), node(), rpc:call(N, calc, add, [4, 5])}`;
    const code = `N = 'tsl@localhost', io:format("~p~n", [${ask}]), halt().`;
    const { out } = await run(
      'erl',
      ['-noshell', '-sname', 'undefined', '-setcookie', COOKIE, '-eval', code],
      mapper.port,
    );
    expect(out).toMatch(/^\{true,pong,'?[0-9a-z]+_1@.+,9\}$/);
    expect(local.node.nodes('members')).toEqual([]);
  }, 30_000);

  (hasErlCall ? test : test.skip)(
    'a C node without a name of its own is given one [needs erl_call]',
    async () => {
      const local = await TestNode.start('tsl@localhost', mapper.port, { mode: 'sname' });
      more.push(local);
      const args = ['-R', '-c', COOKIE, '-n', 'tsl@localhost', '-timeout', '4', '-a', 'calc add [1,2]'];
      expect((await run('erl_call', args, mapper.port)).out).toBe('3');
    },
    30_000,
  );

  test('C15: receives 20 MiB in a call and returns them', async () => {
    expect(
      await erl.eval(`begin B15 = binary:copy(<<"0123456789abcdef">>, 1310720),
        B15 =:= gen_server:call({calc, ${TS}}, {echo, B15}, 30000) end`),
    ).toBe('true');
  }, 40_000);

  test('C12: notices its end immediately', async () => {
    const seen = await TestNode.start('seen@127.0.0.1', mapper.port, { visible: true });
    const fresh = await Erlang.start('c16@127.0.0.1', { port: mapper.port });
    more.push(seen, fresh);
    expect(await fresh.eval("{net_adm:ping('seen@127.0.0.1'), nodes(), global:sync()}")).toBe(
      "{pong,['seen@127.0.0.1'],ok}",
    );
    expect(await fresh.eval('{global:register_name(zz, self()), global:trans({lk, self()}, fun() -> done end)}')).toBe(
      '{yes,done}',
    );
  }, 20_000);

  test('C17: stays connected to all Erlang nodes when they lose each other', async () => {
    const seen = await TestNode.start('seen@127.0.0.1', mapper.port, { visible: true });
    more.push(seen);
    const others: Erlang[] = [];
    for (const name of ['a17', 'b17', 'd17'])
      others.push(await Erlang.start(`${name}@127.0.0.1`, { port: mapper.port }));
    more.push(...others);
    for (const other of others) await other.eval("net_adm:ping('seen@127.0.0.1')");
    const [a, b] = others as [Erlang, Erlang];
    for (const other of others) await a.eval(`net_adm:ping('${other.name}')`);
    await until(async () => (await b.eval('length(nodes())')) === '3');
    await a.eval("erlang:disconnect_node('b17@127.0.0.1')");
    await new Promise((resolve) => setTimeout(resolve, 500));
    for (const other of others) {
      expect(tsn.node.isConnected(other.name)).toBe(false);
      expect(await seen.node.ping(other.name)).toBe(true);
      expect(seen.events.filter((event) => 'down' in event && event.down === other.name)).toEqual([]);
    }
  }, 30_000);
});
