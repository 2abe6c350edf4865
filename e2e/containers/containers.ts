// Runs containers of the real image with podman, from the settings of the shipped deployments. One run per machine at a
// time.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll } from '@jest/globals';
import {
  buildImages,
  freshContainers,
  IMAGES,
  podman as podmanNow,
  PODMAN_OPTIONS,
} from '../../scripts/deploy/container-image.mjs';
import { type Deployment, environmentOf, interpolate, type Service } from '../../scripts/deploy/deployments.mjs';
import { Cluster, ClusterNode } from '../cluster/cluster-node.js';
import { until } from '../cluster/until.js';
import { apiToken } from '../harness/bloom-node.js';
import { missing } from '../harness/needs.js';
import { makeCertificate } from '../harness/processes.js';
import { openProxy, type TcpProxy } from '../harness/tcp-proxy.js';

const execute = promisify(execFile);
/** Limits for a container if this machine's own are lower than podman's defaults. */
const LIMITS = ['--ulimit', 'nofile=1024:4096', '--ulimit', 'nproc=1024:4096'];
const RUN_LIMIT_MS = 60_000;

const PREPARE_LIMIT_MS = 600_000;

/** Runs before all tests of a file: cleans up after the last run, and builds what has changed unless the runner did. */
export function useContainers(): void {
  if (missing(['containers']) !== undefined) return;
  beforeAll(() => {
    freshContainers();
    if (process.env['BLOOM_TEST_RUN'] === undefined) buildImages();
  }, PREPARE_LIMIT_MS);
}

/** Resolves with podman's stdout. @throws Error with its output when it fails */
async function podman(...args: string[]): Promise<string> {
  const { stdout } = await execute('podman', [...PODMAN_OPTIONS, ...args]);
  return stdout.trim();
}

/** Returns a non-loopback address of this machine, which containers and the browser see as external. */
function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const address = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  if (address === undefined) throw new Error('this machine has no address besides loopback');
  return address;
}

/**
 * Pins the MAC address of a network's bridge. By default a bridge has the lowest address of its ports, which changes
 * when a container ends: packets from the others are then lost until they resolve the address again, half a minute
 * later. Netavark does this itself since 1.9.
 */
async function pinBridgeAddress(network: string): Promise<void> {
  const bridge = await podman('network', 'inspect', '--format', '{{.NetworkInterface}}', network);
  const { stdout } = await execute('ip', ['-json', 'link', 'show', 'dev', bridge]);
  const [{ address }] = JSON.parse(stdout) as [{ address: string }];
  await execute('ip', ['link', 'set', 'dev', bridge, 'address', address]);
}

/** Creates a certificate that the user of the image may read. */
function certificateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-certificate-'));
  chmodSync(folder, 0o755);
  for (const file of Object.values(makeCertificate(folder))) chmodSync(file, 0o644);
  return folder;
}

export interface ContainerOptions {
  readonly image?: keyof typeof IMAGES;
  readonly env?: Readonly<Record<string, string>>;
  /** Further options of `podman run`. */
  readonly options?: readonly string[];
}

const names = (): string => `bloom-${randomBytes(4).toString('hex')}`;

export class Container {
  private constructor(
    readonly name: string,
    readonly image: string,
  ) {}

  static async run({ image = 'plain', env = {}, options = [] }: ContainerOptions): Promise<Container> {
    const container = new Container(names(), IMAGES[image].tag);
    const settings = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    await podman('run', '--detach', '--name', container.name, ...LIMITS, ...options, ...settings, container.image);
    return container;
  }

  log(): string {
    // Stdout and stderr, in order.
    return podmanNow('logs', this.name);
  }

  async exec(...command: string[]): Promise<string> {
    return podman('exec', this.name, ...command);
  }

  /** Resolves when the image's health check passes. Without systemd, podman runs it only on demand. */
  async healthy(): Promise<void> {
    await until(`${this.name} is healthy`, () => podman('healthcheck', 'run', this.name).then(() => true), {
      limitMs: RUN_LIMIT_MS,
      detail: () => this.log(),
    });
  }

  /** Sends SIGTERM. */
  async terminate(): Promise<void> {
    await podman('kill', '--signal', 'TERM', this.name);
  }

  /** Resolves with the exit code when the container has ended. */
  async ended(): Promise<number> {
    return Number(await podman('wait', this.name));
  }

  async remove(): Promise<void> {
    await podman('rm', '--force', '--time', '0', '--volumes', this.name);
  }
}

/** One node of a deployment. */
export class ContainerNode extends ClusterNode {
  #container: Container | undefined;

  constructor(
    readonly service: Service,
    readonly deployment: DeployedNetwork,
  ) {
    super(service.name, deployment.front?.host ?? `${ownAddress()}:${service.port}`);
  }

  get container(): Container {
    if (this.#container === undefined) throw new Error(`${this.name} does not run`);
    return this.#container;
  }

  log(): string {
    return this.container.log();
  }

  /** Replaces an earlier container with a new one that has its files. */
  async start(): Promise<void> {
    await this.#container?.remove();
    const { network, alias, values, env: further, certificate } = this.deployment;
    const env = Object.entries(environmentOf(this.service)).map(([name, value]) => [name, interpolate(value, values)]);
    this.#container = await Container.run({
      env: { ...(Object.fromEntries(env) as Record<string, string>), ...further },
      options: [
        `--hostname=${this.name}`,
        `--network=${network}`,
        ...this.#aliases(alias),
        ...this.service.ports.flatMap((port) => ['--publish', port]),
        `--volume=${network}-${this.name}:/app/bloom_resources`,
        ...(certificate === undefined ? [] : [`--volume=${certificate}:/certificate:ro`]),
      ],
    });
  }

  #aliases(alias: string | undefined): string[] {
    return [this.name, alias].flatMap((name) => (name === undefined ? [] : ['--network-alias', name]));
  }

  /** Sends SIGTERM, as an upgrade does; the container ends after its rooms. */
  async terminate(): Promise<void> {
    await this.container.terminate();
  }

  async kill(): Promise<void> {
    await podman('kill', this.container.name);
  }

  async pause(): Promise<void> {
    await podman('pause', this.container.name);
  }

  async unpause(): Promise<void> {
    await podman('unpause', this.container.name);
  }

  async disconnect(): Promise<void> {
    await podman('network', 'disconnect', this.deployment.network, this.container.name);
  }

  async connect(): Promise<void> {
    const { network, alias } = this.deployment;
    const aliases = [this.name, alias].flatMap((name) => (name === undefined ? [] : ['--alias', name]));
    await podman('network', 'connect', ...aliases, network, this.container.name);
  }

  async dispose(): Promise<void> {
    await this.#container?.remove();
    await podman('volume', 'rm', '--force', `${this.deployment.network}-${this.name}`);
  }
}

interface DeployedNetwork {
  readonly network: string;
  readonly alias: string | undefined;
  /** Values of `${NAME}` in the settings. */
  readonly values: Readonly<Record<string, string>>;
  /** Settings in addition to the deployment's. */
  readonly env: Readonly<Record<string, string>>;
  /** Folder of the certificate, if the node gets one; clients of the tests reach it through a proxy that adds TLS. */
  readonly certificate: string | undefined;
  readonly front: TcpProxy | undefined;
}

/** The nodes of a shipped deployment. */
export class ContainerCluster extends Cluster<ContainerNode> {
  private constructor(
    nodes: readonly ContainerNode[],
    readonly deployed: DeployedNetwork,
  ) {
    super(nodes);
  }

  get network(): string {
    return this.deployed.network;
  }

  get ownAddress(): string {
    return ownAddress();
  }

  static async start({ services, alias }: Deployment, env: Record<string, string> = {}): Promise<ContainerCluster> {
    const address = ownAddress();
    const secure = services[0]?.certificate === true;
    const certificate = secure ? certificateFolder() : undefined;
    const front = secure ? await openProxy(`${address}:443`, { secure }) : undefined;
    const values = {
      BLOOM_HOST: address,
      BLOOM_DOMAIN: front?.host ?? address,
      BLOOM_PUBLIC_IP: address,
      BLOOM_ORIGINS: '//127.0.0.1',
      BLOOM_API_TOKEN: apiToken,
      BLOOM_SECRET_KEY_BASE: 'a secret of this test',
    };
    const network = names();
    await podman('network', 'create', network);
    const deployed = { network, alias, values, env, certificate, front };
    const nodes = services.map((service) => new ContainerNode(service, deployed));
    const cluster = new ContainerCluster(nodes, deployed);
    try {
      // One by one, because two networks that start the name server at the same moment conflict.
      for (const node of nodes) {
        await node.start();
        if (node === nodes[0]) await pinBridgeAddress(network);
      }
      await Promise.all(nodes.map(({ container }) => container.healthy()));
      if (nodes.length > 1) await cluster.complete();
    } catch (error) {
      await cluster.close();
      throw error;
    }
    return cluster;
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.dispose()));
    await podman('network', 'rm', '--force', this.network);
    const { certificate, front } = this.deployed;
    await front?.close();
    if (certificate !== undefined) rmSync(certificate, { recursive: true });
  }
}
