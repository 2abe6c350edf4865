// Tests the shipped deployments of deploy/compose*.yml in containers of the real image.
import { expect, test } from '@jest/globals';
import { deployments } from '../../scripts/deploy/deployments.mjs';
import { referenceScenarios } from '../cluster/reference-scenarios.js';
import { nightly } from '../harness/needs.js';
import { browserSuite } from '../harness/stage.js';
import { ContainerCluster, useContainers } from './containers.js';

useContainers();

/** By day without DNS, by which nodes on hosts of their own find each other in e2e/cluster/dns. */
const shipped = Object.entries(deployments).filter(([name]) => nightly || name !== 'dns');

for (const [name, deployment] of shipped) {
  let cluster: ContainerCluster;
  const start = async () => {
    cluster = await ContainerCluster.start(deployment);
    const node = cluster.node(1);
    return {
      url: node.url,
      host: node.address,
      pid: 0,
      log: () => node.log(),
      stop: () => cluster.close(),
      kill: () => node.kill(),
    };
  };

  browserSuite(`The deployment ${name}`, { node: start, needs: ['containers'] }, (stage) => {
    test('becomes healthy and carries a call through the published ports of each node', async () => {
      for (const node of cluster.nodes) {
        await cluster.deleteAllRooms();
        let room = await node.create();
        if (room.address !== node.address) room = await node.create();
        expect(room.address).toBe(node.address);
        const ann = await stage.seat(await node.api.addPeer(room.id), 'ann');
        const bob = await stage.seat(await node.api.addPeer(room.id), 'bob');
        for (const peer of [ann, bob]) await peer.join({ host: node.address });
        const [red, blue] = [await ann.addVideo({ colour: 'red' }), await bob.addVideo({ colour: 'blue' })];
        const tone = await bob.addTone(440);
        await Promise.all([bob.plays(red, 'red'), ann.plays(blue, 'blue'), ann.sounds(tone, 440)]);
      }
    });

    if (deployment.services.length > 1) referenceScenarios(() => cluster);
  });
}
