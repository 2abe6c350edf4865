import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const COOKIE = 'bench';

/** Compiles the Erlang side. Returns the folder of the code, or why there is none. */
export function compile(source: string): { folder: string } | { missing: string } {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-bench-'));
  const file = join(folder, 'bench_dist.erl');
  writeFileSync(file, source);
  try {
    execFileSync('erlc', ['-o', folder, file]);
    return { folder };
  } catch (error) {
    return {
      missing:
        (error as NodeJS.ErrnoException).code === 'ENOENT'
          ? 'erlc is missing: apt-get install erlang-base'
          : String(error),
    };
  }
}

const LOOP = `
  L = fun L() -> case io:get_line("") of
    eof -> halt(0);
    Line ->
      {ok, Ts, _} = erl_scan:string(Line), {ok, Es} = erl_parse:parse_exprs(Ts),
      {value, V, _} = erl_eval:exprs(Es, []), io:format("@@~0p~n", [V]), L()
  end end,
  bench_dist:start(), io:format("@@ready~n"), L().`;

/** A real Erlang node that evaluates expressions. */
export class Erlang {
  readonly #waiting: ((answer: string) => void)[] = [];

  private constructor(
    readonly name: string,
    readonly child: ChildProcess,
  ) {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (line.startsWith('@@')) this.#waiting.shift()?.(line.slice(2));
    });
  }

  static async start(name: string, mapperPort: number, folder: string): Promise<Erlang> {
    const kernel = ['-kernel', 'inet_dist_use_interface', '{127,0,0,1}', 'logger_level', 'none'];
    const child = spawn(
      'erl',
      ['-noshell', '-pa', folder, '-name', name, '-setcookie', COOKIE, ...kernel, '-eval', LOOP],
      {
        env: { ...process.env, ERL_EPMD_PORT: String(mapperPort) },
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    const erlang = new Erlang(name, child);
    await erlang.#answer();
    return erlang;
  }

  eval(expression: string): Promise<string> {
    const answer = this.#answer();
    this.child.stdin?.write(`${expression}.\n`);
    return answer;
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  #answer(): Promise<string> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
