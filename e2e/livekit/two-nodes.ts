// Two nodes behind a load balancer, for clients of LiveKit whose websocket is at the node that lacks their room.
import { afterAll, afterEach } from '@jest/globals';
import { deployments, LabCluster, type LabNode } from '../cluster/lab-cluster.js';
import { receiveWebhooksAt, type WebhookReceiver } from '../cluster/webhooks.js';
import { browserSuite, type Stage } from '../harness/stage.js';
import { openProxy, type TcpProxy } from '../harness/tcp-proxy.js';
import { livekitNode } from './participant.js';

const services = deployments['nodes-list'].services.map((service) => ({
  ...service,
  env: { ...service.env, ...livekitNode },
}));

/** Longest pause of a picture while its receiver changes nodes. */
export const PAUSE_MS = 3_000;

export class TwoNodes {
  cluster!: LabCluster;
  owner!: LabNode;
  other!: LabNode;
  /** The load balancer. */
  proxy!: TcpProxy;
  receiver!: WebhookReceiver;
  cleanUp = (): void => {};

  /** Resolves with the node that owns the rooms, for a stage. */
  async start() {
    this.cluster = await LabCluster.start(services);
    [this.owner, this.other] = [this.cluster.node(2), this.cluster.node(1)];
    this.proxy = await openProxy(this.other.address);
    this.receiver = await receiveWebhooksAt(this.cluster.ownAddress);
    return {
      url: this.owner.url,
      host: this.owner.address,
      pid: this.owner.pid,
      log: () => this.owner.log(),
      stop: () => this.cluster.close(),
      kill: () => this.owner.kill(),
    };
  }

  async restore(): Promise<void> {
    this.cleanUp();
    for (const node of this.cluster.nodes) if (!node.runs) node.start();
    await this.owner.api.request('DELETE', '/node/drain');
    await this.cluster.complete();
    await this.cluster.deleteAllRooms();
  }

  async close(): Promise<void> {
    await this.proxy?.close();
    await this.receiver?.close();
  }

  tracksHeardOf(room: string): number {
    return this.receiver.heard.filter((line) => line === `trackAdded ${room}`).length;
  }
}

/** A suite whose tests share two nodes and a browser. */
export function twoNodesSuite(title: string, body: (stage: Stage, nodes: TwoNodes) => void): void {
  const nodes = new TwoNodes();
  afterAll(() => nodes.close());
  browserSuite(title, { node: () => nodes.start(), needs: ['network namespaces'] }, (stage) => {
    afterEach(() => nodes.restore());
    body(stage, nodes);
  });
}
