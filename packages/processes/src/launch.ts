/** Starts children so that their limits hold before their first instruction. */
import { type ChildProcess, type ForkOptions, fork, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/** Makes the kernel kill a child long before the node when memory runs out. */
const OOM_SCORE = 800;
/** Niceness steps below the node, and the lowest priority there is. */
const STEPS_BELOW = 5;
const LOWEST_PRIORITY = 19;
const SHELL = '/bin/sh';
/**
 * Becomes the program after `$1`, the limit of its writable memory in KiB. The limit counts memory mapped for writing,
 * unlike the limit of the address space, of which V8 reserves gigabytes.
 */
const LIMITS = `ulimit -d "$1" 2>/dev/null
ulimit -c 0 2>/dev/null`;
/**
 * `chrt` of util-linux gives a batch process only cores that nothing else wants (sched(7), SCHED_IDLE): niceness alone
 * still takes a time slice from the node each time it wakes. `setpriv` makes the kernel kill the child when its parent
 * dies, even if the child hangs; elsewhere the closed channel ends it.
 */
const WRAPPER = `${LIMITS}
echo ${OOM_SCORE} 2>/dev/null >/proc/self/oom_score_adj
batch=$2
shift 2
if [ "$batch" = true ]; then chrt --idle --pid 0 $$ 2>/dev/null; fi
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL -- "$@"; fi
exec "$@"`;

export interface LaunchOptions {
  entry: URL;
  nodeFlags: readonly string[];
  /** Limit of writable memory, in MiB. */
  dataMib: number;
  /** Nobody waits for the process, so it gets the lowest priority. */
  isBatch: boolean;
  signal?: AbortSignal;
}

/** Forks Node.js with its limits. Without a shell, the process runs without them. */
export function launch({ entry, nodeFlags, dataMib, isBatch, signal }: LaunchOptions): ChildProcess {
  const options: ForkOptions = {
    serialization: 'advanced',
    // The process reads untrusted input, so it gets nothing from the server's environment.
    env: {},
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    ...(signal === undefined ? {} : { signal, killSignal: 'SIGKILL' }),
  };
  if (!existsSync(SHELL)) return lowered(fork(entry, { ...options, execArgv: [...nodeFlags] }), isBatch);
  const execArgv = ['-c', WRAPPER, 'sh', `${dataMib * 1024}`, `${isBatch}`, process.execPath, ...nodeFlags];

  return lowered(fork(entry, { ...options, execPath: SHELL, execArgv }), isBatch);
}

/** Gives calls and requests precedence over the processes of components. */
function lowered(child: ChildProcess, isBatch: boolean): ChildProcess {
  const priority = isBatch ? LOWEST_PRIORITY : Math.min(LOWEST_PRIORITY, getPriority() + STEPS_BELOW);
  try {
    if (child.pid !== undefined) setPriority(child.pid, priority);
  } catch {
    // The process has already ended, or the system does not allow it.
  }

  return child;
}

/**
 * Starts a Node.js program that outlives this one, with only this environment and at most `memoryMib` of writable
 * memory. A failure to start goes unreported.
 */
export function startDetached(program: string, env: NodeJS.ProcessEnv, memoryMib: number): void {
  const command = existsSync(SHELL)
    ? [SHELL, '-c', `${LIMITS}\nshift\nexec "$@"`, 'sh', `${memoryMib * 1024}`, process.execPath, program]
    : [process.execPath, program];
  const child = spawn(command[0]!, command.slice(1), { detached: true, stdio: 'ignore', env, cwd: '/' });
  child.on('error', () => {});
  child.unref();
}
