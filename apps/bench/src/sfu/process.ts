import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';

/** Node.js flags used by `npm start` and the image. */
export const NODE_FLAGS = ['--max-semi-space-size=64', '--single-threaded-gc'] as const;

/** A server under test. Its whole output is kept, so that a failed start can be explained. */
export class ServerProcess {
  readonly child: ChildProcess;
  #output = '';

  constructor(program: string, args: readonly string[], options: SpawnOptions = {}) {
    this.child = spawn(program, args, {
      ...options,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const keep = (data: Buffer) => (this.#output = (this.#output + data.toString()).slice(-20_000));
    this.child.stdout?.on('data', keep);
    this.child.stderr?.on('data', keep);
  }

  get pid(): number {
    return this.child.pid as number;
  }

  get output(): string {
    return this.#output;
  }

  /** Resolves when `ready` does. Rejects if the process ends or 60 s pass first. */
  async until(ready: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + 60_000;
    while (Date.now() < deadline) {
      if (this.child.exitCode !== null) break;
      if (await ready().catch(() => false)) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`the server did not start:\n${this.#output}`);
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGTERM');
    const force = setTimeout(() => this.child.kill('SIGKILL'), 3000);
    await once(this.child, 'exit');
    clearTimeout(force);
  }
}

const ticksPerSecond = 100;

/** Returns the CPU time of a process with all its threads, in microseconds (`utime` and `stime` of proc(5)). */
export function cpuMicros(pid: number): number {
  return statMicros(`/proc/${pid}/stat`);
}

/** Returns the same from any `stat` file: each thread of a process has one too. */
export function statMicros(path: string): number {
  const stat = readFileSync(path, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / ticksPerSecond;
}

/** Returns the CPU time of each thread of a process, in microseconds, by its kernel number. */
export function threadMicros(pid: number): Map<string, number> {
  const tasks = `/proc/${pid}/task`;
  return new Map(readdirSync(tasks).map((thread) => [thread, statMicros(`${tasks}/${thread}/stat`)]));
}

/** Returns resident memory in bytes. */
export function rss(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
}

/** Returns a currently free TCP port at this address. */
export async function freePort(address: string): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, address, done));
  const { port } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return port;
}
