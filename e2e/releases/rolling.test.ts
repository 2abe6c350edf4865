// Tests a rolling upgrade from the last release to this checkout and back, node by node. Each node restarts during a
// call on the other node, which a newcomer then joins through the restarted node.
import { expect, test } from '@jest/globals';
import { until } from '../cluster/until.js';
import { browserSuite } from '../harness/stage.js';
import type { LabCluster } from '../cluster/lab-cluster.js';
import { checkoutOf, roomOn, startMixed, type Release } from './mixed-cluster.js';

/** Numbers of the restarted node and of the other one. */
const STEPS: readonly { restarted: number; other: number; release: Release }[] = [
  { restarted: 1, other: 2, release: 'this' },
  { restarted: 2, other: 1, release: 'this' },
  { restarted: 2, other: 1, release: 'last' },
  { restarted: 1, other: 2, release: 'last' },
];

let cluster: LabCluster;
const start = async () => {
  cluster = await startMixed(['last', 'last']);
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

const needs = ['network namespaces', 'the last release'] as const;
browserSuite('A rolling upgrade and a rollback', { node: start, needs }, (stage) => {
  test('disturb no call, and newcomers join through either release', async () => {
    for (const { restarted, other, release } of STEPS) {
      const [node, owner] = [cluster.node(restarted), cluster.node(other)];
      const room = await roomOn(cluster, other);
      const ann = await stage.seat(await owner.api.addPeer(room), 'ann');
      const bob = await stage.seat(await owner.api.addPeer(room), 'bob');
      for (const peer of [ann, bob]) await peer.join({ host: owner.address });
      const red = await ann.addVideo({ colour: 'red' });
      await bob.plays(red, 'red');

      expect((await node.api.request('POST', '/node/drain')).status).toBe(200);
      expect((await node.create()).address).toBe(owner.address);
      await node.stop();
      const blue = await bob.addVideo({ colour: 'blue' });
      await ann.plays(blue, 'blue');
      node.checkout = checkoutOf(release);
      node.start();
      await until('it takes rooms again', async () => (await fetch(`${node.url}/health/ready`)).status === 200);
      await cluster.complete();

      const eve = await stage.seat(await node.api.addPeer(room), 'eve');
      await eve.join({ host: node.address });
      const green = await eve.addVideo({ colour: 'green' });
      await Promise.all([eve.plays(red, 'red'), eve.plays(blue, 'blue')]);
      await Promise.all([ann.plays(green, 'green'), bob.plays(green, 'green')]);
      expect((await node.create()).address).toBe(node.address);
      await node.api.deletePeer(room, eve.id);
      expect(await eve.next('socketClose')).toMatchObject({ code: 1000, reason: 'Peer removed' });
      await ann.removed(green);
      for (const peer of [ann, bob]) expect(peer.since('socketClose')).toEqual([]);
      await cluster.deleteAllRooms();
    }
  }, 180_000);
});
