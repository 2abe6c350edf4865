// Tests faults of containers: killed, paused, cut off from their network, upgraded.
import { beforeEach, expect, test } from '@jest/globals';
import { deployments } from '../../scripts/deploy/deployments.mjs';
import { until } from '../cluster/until.js';
import type { Peer } from '../harness/peer.js';
import { browserSuite } from '../harness/stage.js';
import { ContainerCluster, type ContainerNode, useContainers } from './containers.js';

useContainers();

/** Seconds of silence after which a node counts as lost; the default is a minute. */
const TICK = { JF_DIST_TICK_TIME: '8' };
const TEST_MS = 180_000;

let cluster: ContainerCluster;
let one: ContainerNode;
let two: ContainerNode;
const start = async () => {
  cluster = await ContainerCluster.start(deployments['nodes-list'], TICK);
  [one, two] = [cluster.node(1), cluster.node(2)];
  return {
    url: one.url,
    host: one.address,
    pid: 0,
    log: () => one.log(),
    stop: () => cluster.close(),
    kill: () => one.kill(),
  };
};

browserSuite('Containers of a cluster', { node: start, needs: ['containers'] }, (stage) => {
  beforeEach(() => cluster.deleteAllRooms());

  async function roomOn(node: ContainerNode): Promise<string> {
    const rooms = [await node.create(), await node.create()];
    const room = rooms.find(({ address }) => address === node.address);
    if (room === undefined) throw new Error(`two rooms, and none on ${node.name}`);
    return room.id;
  }

  async function call(room: string, node: ContainerNode): Promise<{ watching: Peer; track: string }> {
    const ann = await stage.seat(await node.api.addPeer(room), 'ann');
    const bob = await stage.seat(await node.api.addPeer(room), 'bob');
    for (const peer of [ann, bob]) await peer.join({ host: node.address });
    const track = await ann.addVideo({ colour: 'red' });
    await bob.plays(track, 'red');
    return { watching: bob, track };
  }

  test(
    'ends only the rooms of a killed container, and lets a new one join again',
    async () => {
      const { watching, track } = await call(await roomOn(one), one);
      await two.kill();
      await one.joined(1);
      expect((await one.create()).address).toBe(one.address);
      await watching.call('awaitFrames', track, 30);

      await two.start();
      await cluster.complete();
      expect((await one.create()).address).toBe(two.address);
      await watching.call('awaitFrames', track, 30);
    },
    TEST_MS,
  );

  test(
    'gives a paused container no rooms, names it without waiting for it, and continues its call',
    async () => {
      const room = await roomOn(two);
      const { watching, track } = await call(room, two);
      await two.pause();
      for (let round = 0; round < 3; round += 1) expect((await one.create()).address).toBe(one.address);
      const answer = await one.api.request('GET', `/room/${room}`);
      expect(answer).toEqual({ status: 503, body: { errors: expect.stringContaining('app@app2') } });

      await two.unpause();
      await until(
        'node 1 reaches the room',
        async () => (await one.api.request('GET', `/room/${room}`)).status === 200,
      );
      await watching.call('awaitFrames', track, 30);
    },
    TEST_MS,
  );

  test(
    'loses a disconnected container, which is a member again when reconnected under another address',
    async () => {
      await two.disconnect();
      await one.joined(1);
      expect((await one.create()).address).toBe(one.address);

      await two.connect();
      await cluster.complete();
      expect((await one.create()).address).toBe(two.address);
    },
    TEST_MS,
  );

  test(
    'ends no call in a rolling upgrade: each node ends after its last room and is replaced by a new container',
    async () => {
      const room = await roomOn(one);
      const { watching, track } = await call(room, one);
      await Promise.all((await two.rooms()).map((id) => two.api.deleteRoom(id)));
      await two.terminate();
      expect(await two.container.ended()).toBe(0);
      await two.start();
      await cluster.complete();

      await one.terminate();
      await one.says('node.draining');
      for (const node of [one, two]) expect((await node.create()).address).toBe(two.address);
      await watching.call('awaitFrames', track, 30);
      await Promise.all((await one.rooms()).map((id) => one.api.deleteRoom(id)));
      expect(await one.container.ended()).toBe(0);
      await one.start();
      await cluster.complete();
      expect((await two.create()).address).toBe(one.address);
    },
    TEST_MS,
  );
});
