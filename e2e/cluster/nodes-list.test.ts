// The deployment with a list of names, on two hosts.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { deployments, LabCluster, reasonToSkip } from './lab-cluster.js';
import { referenceScenarios } from './reference-scenarios.js';

(reasonToSkip() ? describe.skip : describe)('two nodes with a list of names', () => {
  let cluster: LabCluster;
  beforeAll(async () => {
    cluster = await LabCluster.start(deployments['nodes-list'].services);
  }, 120_000);
  afterAll(() => cluster?.close());

  referenceScenarios(() => cluster);

  test('O1, O9: a node that was stopped is counted no more, and one that is started again joins by itself', async () => {
    const [one, two] = [cluster.node(1), cluster.node(2)];
    await two.stop();
    await one.joined(1);
    expect(one.log()).toContain('disconnected from :"app@app2"');
    expect((await one.create()).address).toBe(one.address);

    two.start();
    await cluster.complete();
    expect((await one.create()).address).toBe(two.address);
  }, 120_000);
});
