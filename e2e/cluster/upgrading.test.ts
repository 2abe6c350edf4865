// Follows docs/guide/upgrading.md: drain, wait, restart, next. The call on each node continues until it ends by itself.
import { expect, test } from '@jest/globals';
import { browserSuite } from '../harness/stage.js';
import { deployments, LabCluster, type LabNode } from './lab-cluster.js';
import { until } from './until.js';

let cluster: LabCluster;
const start = async () => {
  cluster = await LabCluster.start(deployments['nodes-list'].services);
  const one = cluster.node(1);
  return {
    url: one.url,
    host: one.address,
    pid: one.pid,
    log: () => one.log(),
    stop: () => cluster.close(),
    kill: () => one.kill(),
  };
};

const ready = async (node: LabNode): Promise<number> => (await fetch(`${node.url}/health/ready`)).status;
const metric = async (node: LabNode, name: string): Promise<string | undefined> => {
  const text = await (await fetch(`http://${node.host.address}:9568/metrics`)).text();
  return new RegExp(`^${name} (\\d)$`, 'm').exec(text)?.[1];
};

browserSuite('Upgrading a cluster', { node: start, needs: ['network namespaces'] }, (stage) => {
  test('ends no call', async () => {
    for (const [node, other] of [
      [cluster.node(1), cluster.node(2)],
      [cluster.node(2), cluster.node(1)],
    ] as const) {
      const rooms = [await node.create(), await node.create()];
      const { id: room } = rooms.find(({ address }) => address === node.address) ?? { id: 'none' };
      const ann = await stage.seat(await node.api.addPeer(room), 'ann');
      const bob = await stage.seat(await node.api.addPeer(room), 'bob');
      for (const peer of [ann, bob]) await peer.join({ host: node.address });

      expect(await ready(node)).toBe(200);
      const drained = await node.api.request('POST', '/node/drain', { deadline: 600 });
      expect(drained).toEqual({ status: 200, body: { data: { draining: true, rooms: 1 } } });
      expect(await ready(node)).toBe(503);
      expect(await ready(other)).toBe(200);
      expect((await node.api.request('GET', '/health')).body.data).toMatchObject({ status: 'UP', draining: true });
      expect(await metric(node, 'bloom_node_draining')).toBe('1');
      expect(await metric(node, 'bloom_node_ready')).toBe('0');
      for (const asked of [node, other]) expect((await asked.create()).address).toBe(other.address);

      // The call continues, and can add new tracks.
      const red = await ann.addVideo({ colour: 'red' });
      await bob.plays(red, 'red');
      await node.api.deleteRoom(room);
      await until('the last room has ended', async () => (await node.rooms()).length === 0);
      await node.stop();
      node.start();
      await until('it takes rooms again', async () => (await ready(node)) === 200);
      await cluster.complete();
      expect((await node.create()).address).toBe(node.address);
      await cluster.deleteAllRooms();
    }
    // No process ended a room before its restart.
    for (const { log } of cluster.nodes.map((node) => ({ log: node.log() }))) {
      expect(log).not.toContain('why=node_closing');
    }
  }, 180_000);
});
