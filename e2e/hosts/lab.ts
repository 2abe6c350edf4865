/**
 * Real hosts made of network namespaces: each has its own address, port 4369, hostname and resolver, and its cable can
 * be pulled. Needs root on Linux; `labUnavailable` returns what is missing.
 */
import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestDns } from './test-dns.js';
import { startTestDns } from './test-dns.js';

const ip = (...args: string[]): string =>
  execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Returns the reason that no lab can run here, or undefined. */
export function labUnavailable(): string | undefined {
  if (process.platform !== 'linux') return `network namespaces need Linux, this is ${process.platform}`;
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const probe = `bloom-probe-${randomBytes(3).toString('hex')}`;
  try {
    ip('netns', 'add', probe);
    ip('netns', 'del', probe);
    return undefined;
  } catch (error) {
    return `network namespaces cannot be made here (apt-get install iproute2?): ${String(error)}`;
  }
}

export interface StartOptions {
  env?: Record<string, string>;
  cwd?: string;
}

export class Host {
  readonly #namespace: string;
  readonly #cable: string;

  constructor(
    /** Hostname of the machine, such as `node-a.lab.test`. */
    readonly hostname: string,
    readonly address: string,
    names: { namespace: string; cable: string },
  ) {
    this.#namespace = names.namespace;
    this.#cable = names.cable;
  }

  /** Starts a program on this host. The returned process is the program itself and leads its own process group. */
  start(program: string, args: readonly string[], options: StartOptions = {}): ChildProcess {
    const inside = ['unshare', '--uts', 'sh', '-c', 'hostname "$0" && exec "$@"', this.hostname, program, ...args];
    return spawn('ip', ['netns', 'exec', this.#namespace, ...inside], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '/', ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
  }

  /** Pulls the cable: nothing gets in or out, and no program is notified. */
  linkDown(): void {
    ip('link', 'set', this.#cable, 'down');
  }

  linkUp(): void {
    ip('link', 'set', this.#cable, 'up');
  }

  /** Moves the host to another network: its link goes down and returns with another address. */
  moveTo(address: string): void {
    const inside = (...args: string[]): string => ip('-n', this.#namespace, ...args);
    inside('link', 'set', 'eth0', 'down');
    inside('addr', 'flush', 'dev', 'eth0');
    inside('addr', 'add', `${address}/24`, 'dev', 'eth0');
    inside('link', 'set', 'eth0', 'up');
  }

  /** Returns the command that runs a program on this host. */
  commandOf(program: string): readonly string[] {
    return ['ip', 'netns', 'exec', this.#namespace, program];
  }

  /** Returns every process of this host, including orphans. */
  pids(): number[] {
    return ip('netns', 'pids', this.#namespace).split('\n').filter(Boolean).map(Number);
  }

  remove(): void {
    // Twice, because a process may have started another one.
    for (let round = 0; round < 2; round += 1) {
      for (const pid of this.pids()) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It has already ended.
        }
      }
    }
    ip('netns', 'del', this.#namespace);
    rmSync(join('/etc/netns', this.#namespace), { recursive: true, force: true });
  }
}

export class Lab {
  readonly hosts: Host[] = [];
  readonly #tag: string;
  readonly #bridge: string;
  readonly #subnet: string;

  private constructor(
    readonly dns: TestDns,
    names: { tag: string; bridge: string; subnet: string },
  ) {
    this.#tag = names.tag;
    this.#bridge = names.bridge;
    this.#subnet = names.subnet;
  }

  /** Creates a bridge with its own name server; names and addresses are private to this run. */
  static async open(): Promise<Lab> {
    for (let attempt = 0; ; attempt += 1) {
      const tag = randomBytes(3).toString('hex');
      const subnet = `10.77.${randomInt(1, 250)}`;
      const bridge = `blm${tag}`;
      // Another run may use this subnet, and two bridges with one route would mix up their traffic.
      if (ip('-4', 'route', 'show', `${subnet}.0/24`).trim() !== '') {
        if (attempt > 20) throw new Error('no free subnet for the lab: 10.77.0.0/16 is full');
        continue;
      }
      ip('link', 'add', bridge, 'type', 'bridge');
      ip('addr', 'add', `${subnet}.254/24`, 'dev', bridge);
      ip('link', 'set', bridge, 'up');
      return new Lab(await startTestDns(`${subnet}.254`), { tag, bridge, subnet });
    }
  }

  /** Address at which the hosts reach the test itself. */
  get ownAddress(): string {
    return `${this.#subnet}.254`;
  }

  addHost(hostname: string): Host {
    const number = this.hosts.length + 1;
    const namespace = `bloom-${this.#tag}-${number}`;
    const cable = `bl${this.#tag}-${number}`;
    const address = `${this.#subnet}.${number}`;
    // `ip netns exec` bind-mounts it, so it must exist before the first program starts.
    mkdirSync(join('/etc/netns', namespace), { recursive: true });
    writeFileSync(
      join('/etc/netns', namespace, 'resolv.conf'),
      `nameserver ${this.ownAddress}\noptions timeout:1 attempts:1\n`,
    );
    ip('netns', 'add', namespace);
    ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
    ip('link', 'set', cable, 'master', this.#bridge);
    ip('link', 'set', cable, 'up');
    ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
    ip('-n', namespace, 'link', 'set', 'eth0', 'up');
    const host = new Host(hostname, address, { namespace, cable });
    this.hosts.push(host);
    this.dns.set(hostname, [address]);
    this.#writeHostsFiles();
    return host;
  }

  async close(): Promise<void> {
    for (const host of this.hosts) host.remove();
    this.hosts.length = 0;
    await this.dns.close();
    ip('link', 'del', this.#bridge);
  }

  /** Every host knows short names without DNS, as in a container network. */
  #writeHostsFiles(): void {
    const lines = this.hosts.map((host) => `${host.address} ${host.hostname} ${host.hostname.split('.')[0]}`);
    for (let number = 1; number <= this.hosts.length; number += 1) {
      const file = join('/etc/netns', `bloom-${this.#tag}-${number}`, 'hosts');
      writeFileSync(file, `127.0.0.1 localhost\n${lines.join('\n')}\n`);
    }
  }
}
