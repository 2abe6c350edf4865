// Three nodes behind haproxy, which leaves out those that are not ready, as docs/guide/upgrading.md sets it up.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeTcpPort } from '@bloom/net/testing';
import { LABELS, type Label, settings, Trio } from '../bloomctl/trio.js';
import { Api } from '../harness/api.js';
import { type BloomNode, startNode } from '../harness/bloom-node.js';
import { until } from './until.js';

export class BalancedTrio {
  /** The nodes that run now; a test may remove one that it kills. */
  readonly nodes = new Map<Label, BloomNode>();
  readonly #folder = mkdtempSync(join(tmpdir(), 'bloom-balanced-'));
  #balancer: ChildProcess | undefined;

  private constructor(
    readonly trio: Trio,
    readonly envs: ReadonlyMap<Label, Record<string, string>>,
    readonly ports: readonly [people: number, figures: number],
  ) {
    for (const label of LABELS) this.nodes.set(label, trio.nodes[label]);
  }

  /** With `direct`, each node names its own address to clients. */
  static async start(env: Readonly<Record<string, string>>, { direct = false } = {}): Promise<BalancedTrio> {
    const ports = [await freeTcpPort(), await freeTcpPort()] as const;
    const envs = new Map<Label, Record<string, string>>();
    for (const label of LABELS) {
      const port = await freeTcpPort();
      const host = `127.0.0.1:${direct ? port : ports[0]}`;
      envs.set(label, { JF_PORT: String(port), JF_HOST: host, JF_SIP_USED: 'false', ...env });
    }
    const trio = await Trio.start(Object.fromEntries(envs));
    const cluster = new BalancedTrio(trio, envs, ports);
    const config = join(cluster.#folder, 'haproxy.cfg');
    writeFileSync(config, haproxy(envs, ports));
    cluster.#balancer = spawn('haproxy', ['-db', '-f', config], { stdio: 'ignore' });
    await until('the load balancer knows all nodes', async () => (await cluster.standing()).length === LABELS.length);

    return cluster;
  }

  /** Nodes to which the load balancer sends requests. */
  async standing(): Promise<Label[]> {
    const rows = (await (await fetch(`http://127.0.0.1:${this.ports[1]}/;csv`)).text())
      .split('\n')
      .map((line) => line.split(','));
    return LABELS.filter((label) => rows.some((row) => row[0] === 'nodes' && row[1] === label && row[17] === 'UP'));
  }

  api(label: Label): Api {
    return new Api(this.nodes.get(label)?.url ?? '');
  }

  name(label: Label): string {
    return this.trio.name(label);
  }

  async roomsOf(label: Label): Promise<string[]> {
    return (await this.api(label).request('GET', '/room')).body.data.map(({ id }: { id: string }) => id);
  }

  async ownerOf(room: string): Promise<Label | undefined> {
    for (const label of this.nodes.keys()) if ((await this.roomsOf(label)).includes(room)) return label;
    return undefined;
  }

  /** The recipe of the guide: drain, let the load balancer notice, stop (which moves the rooms), start. */
  async restart(label: Label, note: (what: string) => void): Promise<void> {
    const rooms = await this.roomsOf(label);
    await this.api(label).request('POST', '/node/drain');
    await until('the load balancer leaves it out', async () => !(await this.standing()).includes(label));
    note(`${label} drains, the load balancer leaves it out`);
    await this.nodes.get(label)?.stop(90_000);
    note(`${label} has moved ${rooms.length} rooms and ended`);
    await this.startAgain(label);
    note(`${label} is back, the load balancer uses it`);
  }

  /** Kills a node like a crash. */
  async kill(label: Label): Promise<void> {
    const node = this.nodes.get(label);
    this.nodes.delete(label);
    await node?.kill();
  }

  /** Starts a node that has ended, and waits until all others and the load balancer know it. */
  async startAgain(label: Label): Promise<void> {
    const env = { ...settings(label, this.trio.mapperPort), ...this.envs.get(label) };
    this.nodes.set(label, await startNode({ env }));
    await until(
      'the cluster is complete',
      async () => (await this.api(label).request('GET', '/cluster')).body.data.nodes.length === LABELS.length,
    );
    await until('the load balancer uses it again', async () => (await this.standing()).includes(label));
  }

  /** Waits until the room has a standby, and returns its node. */
  async standbyOf(room: string, owner: Label): Promise<Label> {
    const chosen = await until('the room has a standby', async () => {
      const { body } = await this.api(owner).request('GET', `/cluster/placement?room=${room}`);
      return body.data?.policy === 'standby' && (body.data.chosen as string);
    });

    return chosen.split('@')[0] as Label;
  }

  /** The cluster as its clients see it: one node at the load balancer's address. */
  asNode(): BloomNode {
    const host = `127.0.0.1:${this.ports[0]}`;
    return { ...this.trio.nodes.a, url: `http://${host}`, host, stop: () => this.stop() };
  }

  async stop(): Promise<void> {
    if (this.#balancer !== undefined) {
      const ended = once(this.#balancer, 'exit');
      if (this.#balancer.kill('SIGKILL')) await ended;
    }
    await Promise.all([...this.nodes.values()].map((node) => node.stop()));
    await this.trio.stop();
    rmSync(this.#folder, { recursive: true });
  }
}

function haproxy(envs: BalancedTrio['envs'], [port, stats]: readonly [number, number]): string {
  return `
defaults
  mode http
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout tunnel 1h
frontend people
  bind 127.0.0.1:${port}
  default_backend nodes
frontend figures
  bind 127.0.0.1:${stats}
  stats enable
  stats uri /
backend nodes
  option httpchk GET /health/ready
  option redispatch
  default-server check inter 200ms fall 1 rise 1
${LABELS.map((label) => `  server ${label} 127.0.0.1:${envs.get(label)?.['JF_PORT']}`).join('\n')}
`;
}
