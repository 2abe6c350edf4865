// Nodes on hosts of their own: the deployments that scripts/deployments.mjs describes, and variants of them. Every host
// has its own address and port mapper; the node gets the settings that the container image gives it.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deployments } from '../../scripts/deployments.mjs';
import { type Answer, Api } from '../harness/api.js';
import { repository } from '../harness/repository.js';
import { type Host, Lab } from '../hosts/lab.js';
import { until } from './until.js';

export { deployments };

export interface Service {
  /** Hostname of the machine. */
  readonly name: string;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
}

export class LabNode {
  readonly api: Api;
  #child: ChildProcess | undefined;
  #output = '';
  #folder: string | undefined;

  constructor(
    readonly host: Host,
    readonly service: Service,
  ) {
    this.api = new Api(this.url);
  }

  /** What `POST /room` answers as the address of a room here. */
  get address(): string {
    return `${this.host.address}:${this.service.port}`;
  }

  get url(): string {
    return `http://${this.address}`;
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error(`${this.service.name} does not run`);
    return this.#child.pid;
  }

  get runs(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts the program; it may take a while until it answers. */
  start(env: Readonly<Record<string, string>> = {}): void {
    const main = join(repository, 'apps', 'bloom', 'dist', 'main.js');
    if (!existsSync(main)) throw new Error(`${main} is missing: build it with \`npx tsc -b\``);
    const { address } = this.host;
    this.#folder ??= mkdtempSync(join(tmpdir(), 'bloom-cluster-'));
    const child = this.host.start(process.execPath, ['--enable-source-maps', main], {
      cwd: this.#folder,
      env: {
        JF_HOST: this.address,
        JF_PORT: String(this.service.port),
        JF_IP: '0.0.0.0',
        JF_METRICS_IP: '0.0.0.0',
        JF_DIST_MIN_PORT: '9000',
        JF_DIST_MAX_PORT: '9000',
        JF_RESOURCES_BASE_PATH: join(this.#folder, 'resources'),
        JF_WEBRTC_TURN_IP: address,
        JF_WEBRTC_TURN_LISTEN_IP: address,
        JF_MEDIA_WORKERS: '1',
        ...this.service.env,
        ...env,
      },
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (data: Buffer) => (this.#output += data.toString()));
    }
    this.#child = child;
  }

  /** Everything it has printed since its host was made. */
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

  /** In order, as an upgrade does. */
  stop(): Promise<void> {
    return this.#end('SIGTERM');
  }

  /** As a crash or a lost machine. */
  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  /** The process stands still with its connections open, as on a machine that swaps. */
  freeze(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** `distribution` of the health report; undefined while nobody answers. */
  async distribution(): Promise<{ enabled: boolean; nodeStatus: string; nodesInCluster: number } | undefined> {
    const answer = await this.api.request('GET', '/health').catch(() => undefined);
    return answer?.body?.data?.distribution;
  }

  async joined(nodes: number): Promise<void> {
    await until(
      `${this.service.name} sees ${nodes} nodes`,
      async () => (await this.distribution())?.nodesInCluster === nodes,
      {
        detail: () => `what ${this.service.name} printed:\n${this.#output}`,
      },
    );
  }

  says(wanted: string | RegExp): Promise<unknown> {
    const found = (): boolean =>
      typeof wanted === 'string' ? this.#output.includes(wanted) : wanted.test(this.#output);
    return until(`${this.service.name} says ${String(wanted)}`, found, { detail: () => this.#output });
  }

  async rooms(scope: 'local' | 'cluster' = 'local'): Promise<string[]> {
    const answer = await this.api.request('GET', scope === 'local' ? '/room' : '/room?scope=cluster');
    if (answer.status !== 200) throw new Error(`GET /room answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body.data.map((room: { id: string }) => room.id).toSorted();
  }

  async create(body: Record<string, unknown> = {}): Promise<{ id: string; address: string }> {
    const answer: Answer = await this.api.request('POST', '/room', body);
    if (answer.status !== 201) throw new Error(`POST /room answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    return { id: answer.body.data.room.id, address: answer.body.data.jellyfish_address };
  }

  async dispose(): Promise<void> {
    await this.kill();
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
  }
}

export class LabCluster {
  private constructor(
    readonly lab: Lab,
    readonly nodes: readonly LabNode[],
  ) {}

  /** The hosts with one node each, none of them started. `alias` = DNS name of them all. */
  static async prepare(services: readonly Service[], alias?: string): Promise<LabCluster> {
    const lab = await Lab.open();
    const nodes = services.map((service) => new LabNode(lab.addHost(service.name), service));
    if (alias !== undefined) {
      lab.dns.set(
        alias,
        nodes.map(({ host }) => host.address),
      );
    }
    return new LabCluster(lab, nodes);
  }

  /** All started, and all of them see each other. */
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

  async complete(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.joined(this.nodes.length)));
  }

  node(number: number): LabNode {
    const node = this.nodes[number - 1];
    if (!node) throw new Error(`there is no node ${number}`);
    return node;
  }

  at(address: string): LabNode {
    const node = this.nodes.find((one) => one.address === address);
    if (!node) throw new Error(`no node has the address ${address}`);
    return node;
  }

  async deleteAllRooms(): Promise<void> {
    for (const node of this.nodes) for (const room of await node.rooms()) await node.api.deleteRoom(room);
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.dispose()));
    await this.lab.close();
  }
}
