/** How a child is started, so that its limits hold before its first instruction. */
import { type ChildProcess, type ForkOptions, fork, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** The kernel ends a child long before a node. */
const OOM_SCORE = 800;
/** Niceness below that of the node, and the lowest there is. */
const STEPS_BELOW = 5;
const LOWEST_PRIORITY = 19;
const SHELL = '/bin/sh';
/**
 * Becomes the program after `$1`, the limit of its writable memory in KiB. The limit counts what is mapped for writing, unlike
 * that of the address space, of which V8 reserves gigabytes. `setpriv` of util-linux makes the kernel end the child with its
 * parent even while it hangs; elsewhere the closed channel does.
 */
const WRAPPER = `ulimit -d "$1" 2>/dev/null
ulimit -c 0 2>/dev/null
echo ${OOM_SCORE} 2>/dev/null >/proc/self/oom_score_adj
shift
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL -- "$@"; fi
exec "$@"`;

export interface LaunchOptions {
  entry: URL;
  nodeFlags: readonly string[];
  /** Limit of writable memory. */
  dataMib: number;
  signal?: AbortSignal;
}

/** Forks Node.js with its limits. Where there is no shell, it runs without them. */
export function launch({ entry, nodeFlags, dataMib, signal }: LaunchOptions): ChildProcess {
  const options: ForkOptions = {
    serialization: 'advanced',
    // The process reads what strangers send: it gets nothing of the server's environment.
    env: {},
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    ...(signal === undefined ? {} : { signal, killSignal: 'SIGKILL' }),
  };
  if (!existsSync(SHELL)) return lowered(fork(entry, { ...options, execArgv: [...nodeFlags] }));
  const execArgv = ['-c', WRAPPER, 'sh', `${dataMib * 1024}`, process.execPath, ...nodeFlags];

  return lowered(fork(entry, { ...options, execPath: SHELL, execArgv }));
}

/** Gives calls and requests the precedence over the processes of components. */
function lowered(child: ChildProcess): ChildProcess {
  try {
    if (child.pid !== undefined) setPriority(child.pid, Math.min(LOWEST_PRIORITY, getPriority() + STEPS_BELOW));
  } catch {
    // It is gone already, or the system does not allow it.
  }

  return child;
}

/** Starts a program for this Node that outlives it, with this environment only. A failure shows in what the program does not do. */
export function startDetached(program: string, env: NodeJS.ProcessEnv): void {
  const child = spawn(process.execPath, [program], { detached: true, stdio: 'ignore', env, cwd: '/' });
  child.on('error', () => {});
  child.unref();
}
