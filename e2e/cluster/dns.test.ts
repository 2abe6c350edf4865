// Tests the deployment with one DNS name for all nodes, on two hosts with their own name server.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { deployments, LabCluster } from './lab-cluster.js';
import { referenceScenarios } from './reference-scenarios.js';
import { until } from './until.js';
import { receiveWebhooksAt } from './webhooks.js';

const { services, alias } = deployments.dns;
// The default of 5 s between queries would only slow the test down.
const impatient = services.map((service) => ({
  ...service,
  env: { ...service.env, JF_DIST_POLLING_INTERVAL: '300' },
}));

describeWith(['network namespaces'], 'two nodes on a network with IPv6 only', () => {
  test('nodes find each other by AAAA records, under names with their IPv6 addresses', async () => {
    const cluster = await LabCluster.prepare(impatient, alias, 6);
    try {
      for (const node of cluster.nodes) node.start();
      await cluster.complete();
      const [one, two] = [cluster.node(1), cluster.node(2)];
      expect(one.log()).toMatch(new RegExp(`connected to :"[a-z]+@${two.host.address}"`));
      const { id, address } = await one.create();
      expect(await (address === one.address ? two : one).api.room(id)).toMatchObject({ id });
    } finally {
      await cluster.close();
    }
  }, 120_000);
});

describeWith(['network namespaces'], 'a node whose name server is silent about some webhooks', () => {
  test('sends the webhooks of all other rooms within a second', async () => {
    const cluster = await LabCluster.start(impatient.slice(0, 1));
    const receiver = await receiveWebhooksAt(cluster.ownAddress);
    try {
      const node = cluster.node(1);
      const { dns, ownAddress } = cluster.lab;
      dns.set('good.lab.test', [ownAddress]);
      for (let room = 0; room < 8; room += 1) {
        dns.silence(`hook${room}.lab.test`);
        await node.create({ roomId: `silent${room}`, webhookUrl: `http://hook${room}.lab.test/` });
      }
      const webhookUrl = receiver.url.replace(ownAddress, 'good.lab.test');
      for (let room = 0; room < 5; room += 1) {
        const since = performance.now();
        await node.create({ roomId: `good${room}`, webhookUrl });
        await until('the event arrives', () => receiver.heard.includes(`roomCreated good${room}`));
        expect(performance.now() - since).toBeLessThan(1_000);
      }
    } finally {
      await cluster.close();
      await receiver.close();
    }
  }, 120_000);
});

describeWith(['network namespaces'], 'a node among 60 addresses of which 56 are dead', () => {
  test('has joined the living ones within 2 s', async () => {
    const services = [1, 2, 3, 4].map((number) => ({ ...impatient[0]!, name: `app${number}`, port: 4_000 + number }));
    const cluster = await LabCluster.prepare(services, alias);
    try {
      const living = cluster.nodes.map(({ host }) => host.address);
      const dead = Array.from({ length: 56 }, (_, at) => cluster.lab.ownAddress.replace('254', String(100 + at)));
      cluster.lab.dns.set(alias ?? '', [...dead, ...living]);
      const [one, ...others] = cluster.nodes;
      for (const node of others) node.start();
      await Promise.all(others.map((node) => node.joined(3)));
      one!.start();
      await until('it listens', () => one!.distribution());
      const since = performance.now();
      await one!.joined(4);
      expect(performance.now() - since).toBeLessThan(2_000);
    } finally {
      await cluster.close();
    }
  }, 120_000);
});

describeWith(['network namespaces'], 'two nodes with one DNS name', () => {
  let cluster: LabCluster;
  beforeAll(async () => {
    cluster = await LabCluster.start(impatient, alias);
  }, 120_000);
  afterAll(() => cluster?.close());

  referenceScenarios(() => cluster);

  test('disconnects no member when a name loses one or all of its addresses, or disappears', async () => {
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

    // With the addresses restored, nodes that start later are found.
    await two.stop();
    await one.joined(1);
    cluster.lab.dns.set(name, [one.host.address, two.host.address]);
    two.start();
    await cluster.complete();
  }, 120_000);
});
