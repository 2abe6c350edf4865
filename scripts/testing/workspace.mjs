// Isolates a test run: one temporary folder, and as root on Linux separate namespaces for each jest process, so that
// folders, processes, mounts, network namespaces and ports end with the run, however it ends.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PREFIX = 'bloom-test-';
/** Folders that `ip netns` mounts, or where podman stores process ids: each jest process sees its own empty one. */
const NAMESPACE_FOLDERS = ['/run/netns', '/etc/netns', '/run/containers', '/run/bloom-containers'];

/**
 * The first process of the namespaces. It stays until the program ends, to reap orphans, because tests check that
 * processes are gone. Browsers gather no candidates without a non-loopback interface, so it adds one that leads
 * nowhere.
 */
const FIRST_PROCESS = `
set -e
ip link set lo up
ip link add bloom0 type veth peer name bloom1
ip addr add 198.18.0.1/30 dev bloom0
ip link set bloom0 up
ip link set bloom1 up
ip route add default via 198.18.0.2
for folder in ${NAMESPACE_FOLDERS.join(' ')}; do mount -t tmpfs bloom-test "$folder"; done
set +e
"$@"
exit $?`;

/** The namespaces end with their first process, which ends with unshare, which ends with this process. */
const ISOLATED = [
  ...'setpriv --pdeathsig KILL -- unshare --net --mount --pid --fork --kill-child --mount-proc -- sh -c'.split(' '),
  FIRST_PROCESS,
  'sh',
];

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Returns the folders of all runs on this machine. */
function foldersOfRuns() {
  return readdirSync(tmpdir()).flatMap((name) => {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    return pid === undefined ? [] : [{ folder: join(tmpdir(), name), alive: isAlive(Number(pid)) }];
  });
}

export class Workspace {
  #children = new Set();
  /** System folders that did not exist before. */
  #made = [];
  #closed = false;
  #runs = 0;

  constructor() {
    for (const { folder, alive } of foldersOfRuns()) {
      // Left by a killed run.
      if (!alive) rmSync(folder, { recursive: true, force: true });
    }
    this.folder = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
    this.isolated = process.platform === 'linux' && process.getuid?.() === 0 && this.#canIsolate();
    for (const [signal, number] of [
      ['SIGHUP', 1],
      ['SIGINT', 2],
      ['SIGTERM', 15],
    ]) {
      process.once(signal, () => {
        this.close();
        process.exit(128 + number);
      });
    }
    process.once('exit', () => this.close());
  }

  #canIsolate() {
    // Another run may have created the folders; the last run removes them.
    const isAlone = foldersOfRuns().length === 1;
    for (const folder of NAMESPACE_FOLDERS) {
      if (isAlone && existsSync(folder)) continue;
      mkdirSync(folder, { recursive: true });
      this.#made.push(folder);
    }
    const [program, ...args] = [...ISOLATED, 'true'];
    return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
  }

  /**
   * Runs a program and resolves with its exit code and its stderr, which goes to `onOutput` instead if given. The
   * program and everything it started are killed after `timeLimitMs` (then `late` is true), and when this process ends.
   */
  async run(program, args, { env = {}, cwd, timeLimitMs, onOutput } = {}) {
    const [first, ...rest] = [...(this.isolated ? ISOLATED : []), program, ...args];
    // Short, because a socket path has at most 107 characters.
    const folder = join(this.folder, String((this.#runs += 1)));
    mkdirSync(folder);
    const child = spawn(first, rest, {
      // A separate process group, so that Ctrl-C reaches only this process, which ends the group.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd,
      env: { ...process.env, TMPDIR: folder, ...env },
    });
    this.#children.add(child);
    const output = [];
    child.stderr.on('data', onOutput ?? ((chunk) => output.push(chunk)));
    let late = false;
    const limit = setTimeout(() => {
      late = true;
      kill(child);
    }, timeLimitMs);
    const code = await new Promise((done) => {
      child.once('error', () => done(127));
      child.once('exit', done);
    });
    clearTimeout(limit);
    kill(child);
    this.#children.delete(child);
    rmSync(folder, { recursive: true, force: true });
    return { code, late, output: Buffer.concat(output).toString() };
  }

  /** Ends all programs and removes every file. Idempotent. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    for (const child of this.#children) kill(child);
    // A program may write its last file while it is being killed.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    // Linux removes a folder even where others have mounted on it.
    if (foldersOfRuns().some(({ alive }) => alive)) return;
    for (const folder of this.#made.toReversed()) {
      try {
        rmdirSync(folder);
      } catch {
        // Another run uses it by now.
      }
    }
  }
}

function kill(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The group has already ended.
  }
}
