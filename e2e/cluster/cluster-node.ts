// A cluster's node as its users see it, wherever it runs.
import { type Answer, Api } from '../harness/api.js';
import { until } from './until.js';

export abstract class ClusterNode {
  readonly api: Api;

  /** `address` is the address that `POST /room` returns for a room here, `host:port`. */
  constructor(
    readonly name: string,
    readonly address: string,
  ) {
    this.api = new Api(this.url);
  }

  get url(): string {
    return `http://${this.address}`;
  }

  /** Its output so far. */
  abstract log(): string;

  /** `distribution` of the health report; undefined while the node does not answer. */
  async distribution(): Promise<{ enabled: boolean; nodeStatus: string; nodesInCluster: number } | undefined> {
    const answer = await this.api.request('GET', '/health').catch(() => undefined);
    return answer?.body?.data?.distribution;
  }

  async joined(nodes: number): Promise<void> {
    await until(`${this.name} sees ${nodes} nodes`, async () => (await this.distribution())?.nodesInCluster === nodes, {
      detail: () => `what ${this.name} printed:\n${this.log()}`,
    });
  }

  says(wanted: string | RegExp): Promise<unknown> {
    const found = (): boolean => (typeof wanted === 'string' ? this.log().includes(wanted) : wanted.test(this.log()));
    return until(`${this.name} says ${String(wanted)}`, found, { detail: () => this.log() });
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
}

/** Nodes of one cluster. */
export abstract class Cluster<N extends ClusterNode> {
  constructor(readonly nodes: readonly N[]) {}

  /** Address where the nodes reach the test itself. */
  abstract get ownAddress(): string;

  async complete(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.joined(this.nodes.length)));
  }

  node(number: number): N {
    const node = this.nodes[number - 1];
    if (!node) throw new Error(`there is no node ${number}`);
    return node;
  }

  at(address: string): N {
    const node = this.nodes.find((one) => one.address === address);
    if (!node) throw new Error(`no node has the address ${address}`);
    return node;
  }

  async deleteAllRooms(): Promise<void> {
    for (const node of this.nodes) for (const room of await node.rooms()) await node.api.deleteRoom(room);
  }
}
