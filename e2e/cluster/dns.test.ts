// Tests the deployment with one DNS name for all nodes, on two hosts with their own name server.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { deployments, LabCluster } from './lab-cluster.js';
import { referenceScenarios } from './reference-scenarios.js';
import { until } from './until.js';

const { services, alias } = deployments.dns;
// The default of 5 s between queries would only slow the test down.
const impatient = services.map((service) => ({
  ...service,
  env: { ...service.env, JF_DIST_POLLING_INTERVAL: '300' },
}));

describeWith(['network namespaces'], 'two nodes with one DNS name', () => {
  let cluster: LabCluster;
  beforeAll(async () => {
    cluster = await LabCluster.start(impatient, alias);
  }, 120_000);
  afterAll(() => cluster?.close());

  referenceScenarios(() => cluster);

  test('a name that loses one or all of its addresses, or disappears, disconnects no member', async () => {
    const [one, two] = [cluster.node(1), cluster.node(2)];
    const name = alias ?? '';
    for (const change of [
      () => cluster.lab.dns.set(name, [one.host.address]),
      () => cluster.lab.dns.set(name, []),
      () => cluster.lab.dns.remove(name),
    ]) {
      change();
      const asked = cluster.lab.dns.questions(name);
      await until('both have asked again, twice', () => cluster.lab.dns.questions(name) >= asked + 5);
      for (const node of [one, two]) {
        expect((await node.distribution())?.nodesInCluster).toBe(2);
        expect(node.log()).not.toContain('disconnected from');
      }
    }
    const { id, address } = await one.create();
    expect(await (address === one.address ? two : one).api.room(id)).toMatchObject({ id });

    // With the addresses restored, later nodes are found.
    await two.stop();
    await one.joined(1);
    cluster.lab.dns.set(name, [one.host.address, two.host.address]);
    two.start();
    await cluster.complete();
  }, 120_000);
});
