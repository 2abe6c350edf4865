// Tests the deployment with a list of names, on two hosts.
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import { deployments, LabCluster } from './lab-cluster.js';
import { referenceScenarios } from './reference-scenarios.js';
import { until } from './until.js';

describeWith(['network namespaces'], 'two nodes with a list of names', () => {
  let cluster: LabCluster;
  beforeAll(async () => {
    cluster = await LabCluster.start(deployments['nodes-list'].services);
  }, 120_000);
  afterAll(() => cluster?.close());

  referenceScenarios(() => cluster);

  test('no longer counts a stopped node, and lets a restarted one join by itself', async () => {
    const [one, two] = [cluster.node(1), cluster.node(2)];
    await two.stop();
    await one.joined(1);
    await one.says('disconnected from :"app@app2"');
    expect((await one.create()).address).toBe(one.address);

    two.start();
    await cluster.complete();
    expect((await one.create()).address).toBe(two.address);
  }, 120_000);

  test('gives a draining node no rooms, which answers for its own until they end and then leaves cleanly', async () => {
    const [one, two] = [cluster.node(1), cluster.node(2)];
    await cluster.deleteAllRooms();
    await two.stop();
    two.start({ JF_DRAIN_TIMEOUT: '60' });
    await cluster.complete();
    const rooms = [await one.create(), await one.create()];
    const last = rooms.find(({ address }) => address === two.address)?.id ?? 'none';
    process.kill(two.pid, 'SIGTERM');
    await two.says('node.draining');

    // From here on it is the emptier node, and it is asked directly too.
    for (const node of [one, two, one, two]) expect((await node.create()).address).toBe(one.address);
    for (const node of [one, two]) expect(await node.api.room(last)).toMatchObject({ id: last });
    expect((await one.distribution())?.nodesInCluster).toBe(2);
    await one.api.deleteRoom(last);
    await one.joined(1);
    await one.says('disconnected from :"app@app2" reason=leave');
    expect((await one.api.request('GET', `/room/${last}`)).status).toBe(404);
    expect((await one.api.request('GET', '/room?scope=cluster')).body.unreachable).toEqual([]);
    await until('node 2 has ended', () => !two.runs);
    two.start();
    await cluster.complete();
  }, 120_000);
});
