// Tests which nodes become members: three nodes that each know at most one other, and one that does not know the
// cookie.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { deployments, LabCluster, type Service } from './lab-cluster.js';
import { until } from './until.js';

const cookie = 'a-secret-of-this-cluster';
const [model] = deployments['nodes-list'].services;

/** Settings of a node that knows only this other node. */
function service(name: string, knows: string, own: Record<string, string> = {}): Service {
  return {
    name,
    port: 4001,
    env: {
      ...model?.env,
      JF_DIST_NODE_NAME: `app@${name}`,
      JF_DIST_NODES: knows,
      JF_DIST_COOKIE: cookie,
      ...own,
    },
  };
}

describeWith(['network namespaces'], 'becoming a member', () => {
  let cluster: LabCluster;
  beforeAll(async () => {
    cluster = await LabCluster.prepare([
      service('app1', 'app@app2'),
      service('app2', 'app@app3'),
      service('app3', ''),
      service('stranger', 'app@app1', { JF_DIST_COOKIE: 'not-this-one' }),
    ]);
    for (const node of cluster.nodes) node.start();
  });
  afterAll(() => cluster?.close());

  test('lets three nodes that each know only the next all meet each other', async () => {
    const members = [1, 2, 3].map((number) => cluster.node(number));
    await Promise.all(members.map((node) => node.joined(3)));
    for (const node of members) {
      for (const other of members) if (other !== node) await node.says(`connected to :"app@${other.service.name}"`);
    }
  }, 120_000);

  test('leaves a node with a wrong cookie alone, which logs that it cannot connect without printing a secret', async () => {
    const stranger = cluster.node(4);
    await stranger.joined(1);
    await stranger.says('unable to connect to :"app@app1"');
    expect((await cluster.node(1).distribution())?.nodesInCluster).toBe(3);
    const { address } = await stranger.create();
    expect(address).toBe(stranger.address);
    for (const node of cluster.nodes) {
      expect(node.log()).not.toContain(cookie);
      expect(node.log()).not.toContain('not-this-one');
    }
    expect(stranger.log()).not.toMatch(/\] connected to/);
    await cluster.node(1).says(/distribution\.refused node=app@stranger address=\S+ reason=bad_cookie/);
    await stranger.stop();
  }, 120_000);

  test('survives a restart of each node in turn', async () => {
    const members = [1, 2, 3].map((number) => cluster.node(number));
    for (const node of members) {
      const others = members.filter((one) => one !== node);
      await node.stop();
      await Promise.all(others.map((other) => other.joined(2)));
      // The other nodes keep accepting rooms.
      const { address } = await (others[0] ?? node).create();
      expect(others.map((other) => other.address)).toContain(address);
      node.start();
      await Promise.all(members.map((member) => member.joined(3)));
    }
  }, 240_000);

  test('replaces a killed port mapper without losing a member', async () => {
    const [one, , three] = [cluster.node(1), cluster.node(2), cluster.node(3)];
    const [mapper] = one.host.pids().filter((pid) => pid !== one.pid);
    if (mapper === undefined) throw new Error('there is no port mapper on app1');
    process.kill(mapper, 'SIGKILL');
    await one.says('port_mapper.restarted');
    for (const number of [1, 2, 3]) expect((await cluster.node(number).distribution())?.nodesInCluster).toBe(3);

    // Later nodes ask the new port mapper.
    await three.stop();
    await one.joined(2);
    three.start({ JF_DIST_NODES: 'app@app1' });
    await Promise.all([1, 2, 3].map((number) => cluster.node(number).joined(3)));
    await until('the new port mapper is one process', () => one.host.pids().length === 2);
  }, 120_000);
});
