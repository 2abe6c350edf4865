/** Real Erlang programs on loopback that use the port mapper of the test. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { COOKIE, type TestMapper } from './nodes.js';

function has(program: string, ...args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

export const hasErlang = has('erl', '-noshell', '-eval', 'halt().');
export const hasErlCall = hasErlang && has('erl_call');
for (const [there, what] of [
  [hasErlang, 'erlang-base'],
  [hasErlCall, 'erlang-dev'],
] as const) {
  // oxlint-disable-next-line no-console
  if (!there) console.warn(`SKIPPED: tests against ${what}; install it with: apt-get install ${what}`);
}

function environment({ port }: TestMapper): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ERL_EPMD_PORT: String(port),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    HOME: '/tmp',
    LC_ALL: 'C.UTF-8',
  };
}

/** Output of a program that runs to its end. */
export function run(program: string, args: readonly string[], mapper: TestMapper): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, [...args], { env: environment(mapper), timeout: 20_000 }, (_, stdout, stderr) =>
      resolve(`${stdout}${stderr}`.trim()),
    );
  });
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
  io:setopts([{encoding, unicode}]), io:format("@@ready~n"), L(erl_eval:new_bindings()).`;

/** A real Erlang node that evaluates expressions; variables keep their values from one to the next. */
export class Erlang {
  readonly #child: ChildProcess;
  readonly #waiting: ((answer: string) => void)[] = [];
  readonly #exited: Promise<void>;

  private constructor(
    readonly name: string,
    child: ChildProcess,
  ) {
    this.#child = child;
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (line.startsWith('@@')) this.#waiting.shift()?.(line.slice(2));
    });
    this.#exited = new Promise((resolve) => child.once('exit', () => resolve()));
  }

  static async start(alive: string, mapper: TestMapper): Promise<Erlang> {
    const name = `${alive}@127.0.0.1`;
    const kernel = ['-kernel', 'inet_dist_use_interface', '{127,0,0,1}', 'net_ticktime', '8', 'logger_level', 'none'];
    const args = ['-noshell', '-name', name, '-setcookie', COOKIE, ...kernel, '-eval', LOOP];
    const child = spawn('erl', args, { env: environment(mapper), stdio: ['pipe', 'pipe', 'ignore'] });
    const erlang = new Erlang(name, child);
    const ready = new Promise<string>((resolve) => erlang.#waiting.push(resolve));
    if ((await Promise.race([ready, erlang.#exited])) !== 'ready') throw new Error(`erl ${name} did not start`);

    return erlang;
  }

  /** The value of the expressions, as Erlang prints it. */
  eval(expressions: string): Promise<string> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#child.stdin?.write(`${expressions.replaceAll(/\s*\n\s*/g, ' ')}.\n`);
    });
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}
