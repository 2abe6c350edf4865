// Many creations at the same moment through all nodes of a larger cluster.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { deployments, LabCluster } from './lab-cluster.js';

const nodes = ['app1', 'app2', 'app3', 'app4', 'app5'];
const [model] = deployments['nodes-list'].services;
const services = nodes.map((name) => ({
  name,
  port: 4001,
  env: { ...model?.env, JF_DIST_NODE_NAME: `app@${name}`, JF_DIST_NODES: 'app@app1' },
}));

describeWith(['network namespaces'], 'five nodes', () => {
  let cluster: LabCluster;
  beforeAll(async () => {
    cluster = await LabCluster.start(services);
  }, 180_000);
  afterAll(() => cluster?.close());

  test('spread 300 rooms that are created at once through all of them, each within 4 s', async () => {
    // Nodes that have just started compile what they run for the first time, five of them on the cores of one machine.
    for (let round = 0; round < 20; round += 1) await Promise.all(cluster.nodes.map((node) => node.create()));
    await cluster.deleteAllRooms();

    const answers = await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        const from = performance.now();
        const { status } = await cluster.node((i % nodes.length) + 1).api.request('POST', '/room', {});
        return { status, ms: performance.now() - from };
      }),
    );
    expect(answers.filter(({ status }) => status !== 201)).toEqual([]);
    expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(4_000);
    const counts = await Promise.all(cluster.nodes.map(async (node) => (await node.rooms()).length));
    expect(counts.reduce((sum, count) => sum + count)).toBe(300);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  }, 60_000);

  test('give an id that two of them are asked for at the same moment away once, 100 times at once', async () => {
    const pairs = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        Promise.all(
          [1 + (i % 5), 1 + ((i + 1 + (i % 4)) % 5)].map(async (number) => {
            return (await cluster.node(number).api.request('POST', '/room', { roomId: `pair-${i}` })).status;
          }),
        ),
      ),
    );
    expect(pairs.map((pair) => pair.toSorted((a, b) => a - b))).toEqual(pairs.map(() => [201, 400]));
  }, 60_000);
});
