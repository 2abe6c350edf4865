/**
 * Real hosts made of network namespaces: each has its own address, port 4369, hostname and resolver, and its cable can
 * be pulled. Needs root on Linux; `labUnavailable` returns what is missing.
 */
import type { ChildProcess } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { TestDns } from './test-dns.js';
import { openTestDns } from './test-dns.js';

const ip = (...args: string[]): string =>
  execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Adds an address of a lab to a device, at once: duplicates are impossible. */
function addAddress(address: string, device: string, namespace?: string): void {
  const inside = namespace === undefined ? [] : ['-n', namespace];
  const range = isIPv6(address) ? [`${address}/64`, 'nodad'] : [`${address}/24`];
  ip(...inside, 'addr', 'add', ...range, 'dev', device);
}

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

/** Name by which the hosts know the test itself. */
export const OWN_NAME = 'media.lab.test';

export interface StartOptions {
  env?: Record<string, string>;
  cwd?: string;
}

export class Host {
  readonly #namespace: string;
  readonly #cable: string;
  /** Rules of `filterSent`, which outlive the namespace. */
  readonly #rules: (readonly string[])[] = [];

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

  /** Adds an iptables rule for packets from this host to the test's own addresses. The sender is not notified. */
  filterSent(...rule: string[]): void {
    const whole = ['INPUT', '-s', this.address, ...rule];
    execFileSync('iptables', ['-A', ...whole]);
    this.#rules.push(whole);
  }

  /** Adds an iptables rule for packets that arrive at this host. */
  filterReceived(...rule: string[]): void {
    const [command = '', ...args] = this.commandOf('iptables');
    execFileSync(command, [...args, '-A', 'INPUT', ...rule]);
  }

  /** Connects a pod, whose packets leave with the address of this host. */
  wire({ namespace, gateway }: { namespace: string; gateway: string }): void {
    ip('-n', this.#namespace, 'link', 'add', 'pod', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
    addAddress(gateway, 'pod', this.#namespace);
    ip('-n', this.#namespace, 'link', 'set', 'pod', 'up');
    this.#run('sysctl', '-qw', 'net.ipv4.ip_forward=1');
    this.#run('iptables', '-t', 'nat', '-A', 'POSTROUTING', '-o', 'eth0', '-j', 'MASQUERADE');
  }

  /** Passes what arrives at a port of this host to a port of its pod, as a NodePort does. */
  forward(protocol: 'tcp' | 'udp', port: number, to: { pod: Host; port: number }): void {
    const target = `${to.pod.address}:${to.port}`;
    const arriving = ['-i', 'eth0', '-p', protocol, '--dport', String(port)];
    this.#run('iptables', '-t', 'nat', '-A', 'PREROUTING', ...arriving, '-j', 'DNAT', '--to-destination', target);
  }

  #run(program: string, ...args: readonly string[]): void {
    const [command = '', ...inside] = this.commandOf(program);
    execFileSync(command, [...inside, ...args]);
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
    for (const rule of this.#rules.splice(0)) execFileSync('iptables', ['-D', ...rule]);
    ip('netns', 'del', this.#namespace);
    rmSync(join('/etc/netns', this.#namespace), { recursive: true, force: true });
  }
}

export class Lab {
  readonly hosts: Host[] = [];
  readonly #tag: string;
  readonly #bridge: string;
  /** First part of all addresses. */
  readonly #subnet: string;

  private constructor(
    readonly dns: TestDns,
    names: { tag: string; bridge: string; subnet: string },
  ) {
    this.#tag = names.tag;
    this.#bridge = names.bridge;
    this.#subnet = names.subnet;
  }

  /**
   * Creates a bridge with its own name server, for hosts of one family; names and addresses are private to this run.
   */
  static async open(family: 4 | 6 = 4): Promise<Lab> {
    for (let attempt = 0; ; attempt += 1) {
      const tag = randomBytes(3).toString('hex');
      const subnet = family === 4 ? `10.77.${randomInt(1, 250)}.` : `fd77:${randomInt(1, 0xffff).toString(16)}::`;
      const network = family === 4 ? `${subnet}0/24` : `${subnet}/64`;
      const bridge = `blm${tag}`;
      // Another run may use this subnet, and two bridges with one route would mix up their traffic.
      if (ip(`-${family}`, 'route', 'show', network).trim() !== '') {
        if (attempt > 20) throw new Error('no free subnet for the lab: 10.77.0.0/16 is full');
        continue;
      }
      ip('link', 'add', bridge, 'type', 'bridge');
      addAddress(`${subnet}254`, bridge);
      ip('link', 'set', bridge, 'up');
      const dns = await openTestDns(`${subnet}254`);
      dns.set(OWN_NAME, [`${subnet}254`]);
      return new Lab(dns, { tag, bridge, subnet });
    }
  }

  /** Address at which the hosts reach the test itself. */
  get ownAddress(): string {
    return `${this.#subnet}254`;
  }

  /** Gives the test itself another address, so that two of its servers may have the same port. */
  addOwnAddress(): string {
    const address = `${this.#subnet}253`;
    addAddress(address, this.#bridge);
    return address;
  }

  addHost(hostname: string): Host {
    const number = this.hosts.length + 1;
    const namespace = `bloom-${this.#tag}-${number}`;
    const cable = `bl${this.#tag}-${number}`;
    const address = `${this.#subnet}${number}`;
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
    addAddress(address, 'eth0', namespace);
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
    ip('-n', namespace, 'link', 'set', 'eth0', 'up');
    const host = new Host(hostname, address, { namespace, cable });
    this.hosts.push(host);
    this.dns.set(hostname, [address]);
    this.#writeHostsFiles();
    return host;
  }

  /**
   * Adds a host with a network of its own behind another host, like a pod behind its machine. It reaches others at the
   * machine's address; only `forward` lets them in.
   */
  addPod(machine: Host, hostname: string): Host {
    const namespace = `bloom-${this.#tag}-${this.hosts.length + 1}`;
    const [gateway, address] = ['10.244.1.1', '10.244.1.2'];
    mkdirSync(join('/etc/netns', namespace), { recursive: true });
    writeFileSync(join('/etc/netns', namespace, 'resolv.conf'), `nameserver ${this.ownAddress}\n`);
    ip('netns', 'add', namespace);
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
    machine.wire({ namespace, gateway });
    addAddress(address, 'eth0', namespace);
    ip('-n', namespace, 'link', 'set', 'eth0', 'up');
    ip('-n', namespace, 'route', 'add', 'default', 'via', gateway);
    const pod = new Host(hostname, address, { namespace, cable: 'pod' });
    this.hosts.push(pod);
    return pod;
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
