// Nodes on separate hosts: the deployments of scripts/deploy/deployments.mjs, and variants of them. Every host has its
// own address and port mapper; the node gets the settings of the container image.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { deployments, interpolate } from '../../scripts/deploy/deployments.mjs';
import { repository } from '../harness/processes.js';
import { type Host, Lab } from '../hosts/lab.js';
import { Cluster, ClusterNode } from './cluster-node.js';

export { deployments };

export interface Service {
  /** Hostname of the machine. */
  readonly name: string;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
}

/** The default cookie, so that Erlang shells can join these clusters. */
const COOKIE = 'bloom_cookie';

function settingsOf({ env }: Service): Record<string, string> {
  const values = { BLOOM_COOKIE: COOKIE };
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, interpolate(value, values)]));
}

export class LabNode extends ClusterNode {
  /** The built checkout whose program `start` runs. */
  checkout = repository;
  #child: ChildProcess | undefined;
  #output = '';
  readonly #folder = mkdtempSync(join(tmpdir(), 'bloom-cluster-'));
  /** Folder of its recordings and of the files that it plays. */
  readonly resources = join(this.#folder, 'resources');

  constructor(
    readonly host: Host,
    readonly service: Service,
  ) {
    super(service.name, `${isIPv6(host.address) ? `[${host.address}]` : host.address}:${service.port}`);
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error(`${this.service.name} does not run`);
    return this.#child.pid;
  }

  get runs(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts the program; the node may answer only later. */
  start(env: Readonly<Record<string, string>> = {}): void {
    const main = join(this.checkout, 'apps', 'bloom', 'dist', 'main.js');
    if (!existsSync(main)) throw new Error(`${main} is missing: build it with \`npm run build\``);
    const { address } = this.host;
    const child = this.host.start(process.execPath, [main], {
      cwd: this.#folder,
      env: {
        JF_HOST: this.address,
        JF_PORT: String(this.service.port),
        JF_IP: isIPv6(address) ? '::' : '0.0.0.0',
        JF_METRICS_IP: isIPv6(address) ? '::' : '0.0.0.0',
        JF_DIST_MIN_PORT: '9000',
        JF_DIST_MAX_PORT: '9000',
        JF_RESOURCES_BASE_PATH: this.resources,
        JF_WEBRTC_TURN_IP: address,
        JF_WEBRTC_TURN_LISTEN_IP: address,
        JF_MEDIA_WORKERS: '1',
        ...settingsOf(this.service),
        ...env,
      },
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (data: Buffer) => (this.#output += data.toString()));
    }
    this.#child = child;
  }

  /** Runs a `bloomctl` command against this node and returns the document it prints. The command must exit with 0. */
  async bloomctl(checkout: string, ...args: string[]) {
    const program = join(checkout, 'apps', 'bloomctl', 'dist', 'bloomctl.js');
    const env = { BLOOM_NODE: this.service.env['JF_DIST_NODE_NAME'] ?? '', BLOOM_COOKIE: COOKIE };
    const child = this.host.start(process.execPath, [program, ...args, '--json'], { env });
    const [out, err] = await Promise.all([child.stdout, child.stderr].map((stream) => text(stream as Readable)));
    if (child.exitCode === null) await once(child, 'exit');
    if (child.exitCode !== 0) throw new Error(`bloomctl ${args.join(' ')} ended with ${child.exitCode}: ${err}`);
    // oxlint-disable-next-line typescript/no-explicit-any -- JSON of another program; the tests state what they expect
    return JSON.parse(out ?? '') as any;
  }

  /** Its output since its host was created. */
  log(): string {
    return this.#output;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || !this.runs) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), 15_000);
    await gone;
    clearTimeout(timer);
  }

  /** Stops the node cleanly, as an upgrade does. */
  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  /** Kills the node, like a crash or a lost machine. */
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  /** Freezes the process with its connections open, as on a machine that swaps. */
  freeze(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  async dispose(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export class LabCluster extends Cluster<LabNode> {
  private constructor(
    readonly lab: Lab,
    nodes: readonly LabNode[],
  ) {
    super(nodes);
  }

  get ownAddress(): string {
    return this.lab.ownAddress;
  }

  /** Creates hosts with one node each, not started. `alias`: DNS name of all of them. */
  static async prepare(services: readonly Service[], alias?: string, family: 4 | 6 = 4): Promise<LabCluster> {
    const lab = await Lab.open(family);
    const nodes = services.map((service) => new LabNode(lab.addHost(service.name), service));
    if (alias !== undefined) {
      lab.dns.set(
        alias,
        nodes.map(({ host }) => host.address),
      );
    }
    return new LabCluster(lab, nodes);
  }

  /** Starts all nodes and waits until they see each other. */
  static async start(services: readonly Service[], alias?: string): Promise<LabCluster> {
    const cluster = await LabCluster.prepare(services, alias);
    try {
      for (const node of cluster.nodes) node.start();
      await cluster.complete();
    } catch (error) {
      await cluster.close();
      throw error;
    }
    return cluster;
  }

  /** Creates rooms until one is on this node. Returns its id. */
  async roomOn(node: LabNode, body: Record<string, unknown> = {}): Promise<string> {
    for (;;) {
      const { id, address } = await node.create(body);
      if (address === node.address) return id;
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.dispose()));
    await this.lab.close();
  }
}
