// Creates many rooms at once through all nodes of a larger cluster.
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

  /** Creates rooms at once, through all nodes in turn. Returns the duration in ms. */
  async function createAtOnce(rooms: number): Promise<number> {
    const from = performance.now();
    const statuses = await Promise.all(
      Array.from({ length: rooms }, async (_, i) => {
        return (await cluster.node((i % nodes.length) + 1).api.request('POST', '/room', {})).status;
      }),
    );
    expect(statuses).toEqual(statuses.map(() => 201));
    return performance.now() - from;
  }

  test('spread 300 rooms created at once through all of them, as fast per room as 60', async () => {
    // Five nodes that have just started compile their code on the cores of one machine.
    for (let round = 0; round < 20; round += 1) await Promise.all(cluster.nodes.map((node) => node.create()));
    await cluster.deleteAllRooms();

    const few = await createAtOnce(60);
    await cluster.deleteAllRooms();
    const many = await createAtOnce(300);
    // Five times the rooms take a little over five times as long; quadratic growth would take 25 times.
    expect(many / few).toBeLessThan(8);
    const counts = await Promise.all(cluster.nodes.map(async (node) => (await node.rooms()).length));
    expect(counts.reduce((sum, count) => sum + count)).toBe(300);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  }, 60_000);

  test('nodes accept an id once when two of them get it at the same moment, 100 times at once', async () => {
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
