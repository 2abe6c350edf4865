import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { atom, tuple } from '@bloom/etf';
import { silentLog } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import { PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { Erlang, hasErlang, run, startMapper } from './testing/erlang.js';
import { COOKIE, TestNode } from './testing/test-node.js';

const root = join(import.meta.dirname, '../../..');
const TSN = 'tsn@127.0.0.1';
let folder: string;
/** The compiled fixture, which a plain Node runs. */
let program: string;

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

/** Runs the fixture as a separate process. */
async function startTsn(port: number, tickMs = 8_000): Promise<{ child: ChildProcess; said: string }> {
  const child = spawn(process.execPath, [program, TSN, String(port), String(tickMs)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  cleanUps.push(() => child.kill('SIGKILL'));
  const said = await new Promise<string>((resolve) =>
    child.stdout?.once('data', (bytes) => resolve(String(bytes).trim())),
  );
  return { child, said };
}

const epmd = (port: number, ...args: string[]) => run('epmd', args, port);
const listed = async (port: number, name: string): Promise<boolean> =>
  (await epmd(port, '-names')).out.includes(`name ${name} at port`);

(hasErlang ? describe : describe.skip)('port mappers [needs erlang]', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bloom-mappers-'));
    program = join(folder, 'node-main.mjs');
    const entry = join(root, 'packages/distribution/src/testing/node-main.ts');
    // Some dependencies are CommonJS.
    const banner = `--banner:js=import { createRequire } from 'module'; const require = createRequire(import.meta.url);`;
    const args = [entry, '--bundle', '--platform=node', '--format=esm', banner, `--outfile=${program}`];
    await promisify(execFile)(join(root, 'node_modules/.bin/esbuild'), args, { cwd: root });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  describe('the original port mapper with our node', () => {
    test('A1, A2, A3: lists our node, forgets it immediately, and refuses a second one of that name', async () => {
      const mapper = await startMapper('original');
      cleanUps.push(() => mapper.stop());
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        const { child, said } = await startTsn(mapper.port);
        expect(said).toBe('ready');
        expect((await epmd(mapper.port, '-names')).out).toMatch(/^name tsn at port \d+$/m);
        expect((await startTsn(mapper.port)).said).toBe('a node called tsn is already registered on this machine');
        const gone = new Promise((resolve) => child.once('exit', resolve));
        child.kill(signal);
        await gone;
        expect(await until(async () => !(await listed(mapper.port, 'tsn')))).toBeLessThan(1_000);
      }
    }, 30_000);

    test('C12: Erlang notices a killed and a frozen node of ours', async () => {
      const mapper = await startMapper('original');
      cleanUps.push(() => mapper.stop());
      const erl = await Erlang.start('c12@127.0.0.1', { port: mapper.port, tickTime: 4 });
      cleanUps.push(() => erl.stop());
      await erl.eval('net_kernel:monitor_nodes(true, #{node_type => all, nodedown_reason => true})');
      const noticed = `receive {nodedown, '${TSN}', #{nodedown_reason := R}} -> {R, erlang:monotonic_time(millisecond) - T0} after 15000 -> timeout end`;
      const first = await startTsn(mapper.port, 4_000);
      expect(await erl.eval(`net_adm:ping('${TSN}')`)).toBe('pong');
      await erl.eval('f(T0)').catch(() => '');
      first.child.kill('SIGKILL');
      const killed = await erl.eval(`begin T0 = erlang:monotonic_time(millisecond), ${noticed} end`);
      expect(killed).toMatch(/^\{connection_closed,/);
      expect(Number(/,(\d+)\}/.exec(killed)?.[1])).toBeLessThan(100);

      const second = await startTsn(mapper.port, 4_000);
      expect(await erl.eval(`net_adm:ping('${TSN}')`)).toBe('pong');
      second.child.kill('SIGSTOP');
      const frozen = await erl.eval(
        `begin T1 = erlang:monotonic_time(millisecond), ${noticed.replaceAll('T0', 'T1').replaceAll('R', 'R1')} end`,
      );
      expect(frozen).toMatch(/^\{net_tick_timeout,/);
      const took = Number(/,(\d+)\}/.exec(frozen)?.[1]);
      expect(took).toBeGreaterThan(2_900);
      expect(took).toBeLessThan(5_500);
    }, 30_000);
  });

  describe('our port mapper with original programs', () => {
    const start = async (port = 0): Promise<PortMapperServer> => {
      const server = await PortMapperServer.open({ port, log: silentLog });
      cleanUps.push(() => server.close());
      return server;
    };
    const erlang = async (name: string, port: number): Promise<Erlang> => {
      const erl = await Erlang.start(`${name}@127.0.0.1`, { port });
      cleanUps.push(() => erl.stop());
      return erl;
    };

    test('B1, B2: lists its names in epmd and net_adm', async () => {
      const { port } = await start();
      expect((await epmd(port, '-names')).out).toBe(`epmd: up and running on port ${port} with data:`);
      const erl = await erlang('b2', port);
      expect(await erl.eval('net_adm:names("127.0.0.1")')).toMatch(/^\{ok,\[\{"b2",\d+\}\]\}$/);
    });

    test('B3: refuses a second node with the same name', async () => {
      const { port } = await start();
      await erlang('b3', port);
      const { out, code } = await run(
        'erl',
        ['-noshell', '-name', 'b3@127.0.0.1', '-setcookie', COOKIE, '-eval', 'halt().'],
        port,
      );
      expect(out).toContain('seems to be in use by another Erlang node');
      expect(code).toBe(1);
    });

    test('B4: stops on epmd -kill only when no nodes are registered', async () => {
      const server = await start();
      const erl = await erlang('b4', server.port);
      expect(await epmd(server.port, '-kill')).toEqual({
        out: 'Killing not allowed - living nodes in database.',
        code: 1,
      });
      await erl.stop();
      await until(() => server.size === 0);
      expect(await epmd(server.port, '-kill')).toEqual({ out: 'Killed', code: 0 });
      await server.closed;
    });

    test('B5, B6, B7: does not stop nodes, keeps its port, and forgets killed nodes immediately', async () => {
      const server = await start();
      const erl = await erlang('b5', server.port);
      expect(await epmd(server.port, '-stop', 'b5')).toEqual({ out: 'epmd: local epmd responded with <>', code: 1 });
      expect(await epmd(server.port, '-daemon')).toEqual({ out: '', code: 0 });
      expect(await listed(server.port, 'b5')).toBe(true);
      await erl.stop();
      expect(await until(() => server.size === 0)).toBeLessThan(200);
    });

    test('B8: registers Erlang and our node again after a restart, and calls between them continue', async () => {
      const port = await freeTcpPort();
      const first = await start(port);
      const ours = await TestNode.start('ours@127.0.0.1', port);
      cleanUps.push(() => ours.stop());
      const erl = await erlang('b8', port);
      expect(await erl.eval("gen_server:call({calc, 'ours@127.0.0.1'}, {add, 1, 2})")).toBe('3');
      await first.close();
      expect(await erl.eval("gen_server:call({calc, 'ours@127.0.0.1'}, {add, 1, 2})")).toBe('3');
      const second = await start(port);
      const took = await until(() => second.size === 2);
      expect(took).toBeLessThan(3_000);
      expect(
        await ours.call({ node: 'b8@127.0.0.1', name: 'net_kernel' }, tuple(atom('is_auth'), atom('x@y'))),
      ).toEqual({
        reply: atom('yes'),
      });
    });
  });
});
