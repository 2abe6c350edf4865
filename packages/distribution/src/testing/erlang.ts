import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { silentLog } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import { names, PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { COOKIE } from './test-node.js';

// Real Erlang programs on loopback with a private port mapper, for tests.

function has(program: string, ...args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

export const hasErlang = has('erl', '-noshell', '-eval', 'halt().') && has('epmd', '-names');
export const hasElixir = hasErlang && has('elixir', '--version');
export const hasErlCall = hasErlang && has('erl_call');
for (const [there, what] of [
  [hasErlang, 'erlang-base'],
  [hasElixir, 'elixir'],
  [hasErlCall, 'erlang-dev'],
] as const) {
  // oxlint-disable-next-line no-console
  if (!there) console.warn(`SKIPPED: tests against ${what}; install it with: apt-get install ${what}`);
}

/** Returns an environment in which every Erlang program uses the port mapper on the given port. */
function environment(port: number): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ERL_EPMD_PORT: String(port),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    HOME: '/tmp',
    LC_ALL: 'C.UTF-8',
  };
}

export interface TestMapper {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts our port mapper or the original. */
export async function startMapper(which: 'ours' | 'original'): Promise<TestMapper> {
  if (which === 'ours') {
    const server = await PortMapperServer.open({ port: 0, log: silentLog });
    return { port: server.port, stop: () => server.close() };
  }
  const port = await freeTcpPort();
  const child = spawn('epmd', ['-address', '127.0.0.1', '-port', String(port)], { stdio: 'ignore' });
  await until(() =>
    names({ host: '127.0.0.1', port }).then(
      () => true,
      () => false,
    ),
  );
  return {
    port,
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve());
        child.kill('SIGKILL');
      }),
  };
}

/** Runs a program to its end and returns its output, whatever its exit code. */
export function run(program: string, args: readonly string[], port: number): Promise<{ out: string; code: number }> {
  return new Promise((resolve) => {
    execFile(program, [...args], { env: environment(port), timeout: 20_000 }, (error, stdout, stderr) => {
      resolve({
        out: `${stdout}${stderr}`.trim(),
        code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1,
      });
    });
  });
}

export interface ErlangOptions {
  readonly port: number;
  readonly cookie?: string;
  readonly tickTime?: number;
  readonly args?: readonly string[];
}

// Evaluates line after line with one set of bindings; each answer is one line that starts with a mark.
const LOOP = `
  L = fun L(B0) ->
    case io:get_line("") of
      eof -> halt(0);
      Line ->
        {R, B1} = try
          {ok, Ts, _} = erl_scan:string(Line),
          {ok, Es} = erl_parse:parse_exprs(Ts),
          {value, V, B} = erl_eval:exprs(Es, B0),
          {V, B}
        catch C:E -> {{failed, C, E}, B0} end,
        io:format("@@~0tp~n", [R]),
        L(B1)
    end
  end,
  io:setopts([{encoding, unicode}]), io:format("@@ready~n"), L(erl_eval:new_bindings())`;

/** A real Erlang node that evaluates expressions. */
export class Erlang {
  readonly #child: ChildProcess;
  readonly #waiting: ((answer: string) => void)[] = [];
  readonly #started: Promise<string>;
  readonly exited: Promise<void>;

  private constructor(
    readonly name: string,
    child: ChildProcess,
  ) {
    this.#child = child;
    this.#started = new Promise((resolve) => this.#waiting.push(resolve));
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (line.startsWith('@@')) this.#waiting.shift()?.(line.slice(2));
    });
    this.exited = new Promise((resolve) => child.once('exit', () => resolve()));
  }

  static async start(name: string, options: ErlangOptions): Promise<Erlang> {
    const { port, cookie = COOKIE, tickTime = 8, args = [] } = options;
    const kernel = [
      '-kernel',
      'inet_dist_use_interface',
      '{127,0,0,1}',
      'net_ticktime',
      String(tickTime),
      'logger_level',
      'none',
    ];
    const child = spawn(
      'erl',
      ['-noshell', '-name', name, '-setcookie', cookie, ...kernel, ...args, '-eval', `${LOOP}.`],
      {
        env: environment(port),
        stdio: ['pipe', 'pipe', 'ignore'],
      },
    );
    const erlang = new Erlang(name, child);
    const ready = await Promise.race([erlang.#started, erlang.exited]);
    if (ready !== 'ready') throw new Error(`erl ${name} did not start`);
    return erlang;
  }

  /** Returns the value of the expressions as Erlang prints it. */
  eval(expressions: string): Promise<string> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#child.stdin?.write(`${expressions.replaceAll(/\s*\n\s*/g, ' ')}.\n`);
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGCONT');
    this.#child.kill('SIGKILL');
    await this.exited;
  }
}
