import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import { PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { startTestNode } from './testing/test-node.js';

describe('a node that joins a cluster', () => {
  let mapper: PortMapperServer;
  const env = (name: string, others: string): Record<string, string> => ({
    JF_DIST_ENABLED: 'true',
    JF_DIST_MODE: 'name',
    JF_DIST_NODE_NAME: `${name}@127.0.0.1`,
    JF_DIST_COOKIE: 'a_cookie_for_the_tests_of_clusters',
    JF_DIST_IP: '127.0.0.1',
    ERL_EPMD_PORT: String(mapper.port),
    ...(others === '' ? {} : { JF_DIST_NODES: others }),
  });

  beforeAll(async () => {
    mapper = await PortMapperServer.open({ port: 0, log: silentLog });
  });
  afterAll(() => mapper.close());

  test('starts even if no resolver answers', async () => {
    const dns = { JF_DIST_STRATEGY_NAME: 'DNS', JF_DIST_QUERY: 'sfu.internal' };
    const node = await startTestNode(
      { ...env('alone', ''), ...dns },
      { resolver: { addresses: () => new Promise(() => {}) } },
    );
    expect((await node.request('POST', '/room', {})).status).toBe(201);
    await node.dispose();
  });

  test('names the settings that keep it out by their variables', async () => {
    const first = await startTestNode(env('taken', ''));
    await expect(startTestNode(env('taken', ''))).rejects.toMatchObject({
      message: 'a node called taken is already registered on this machine (JF_DIST_NODE_NAME)',
    });
    const port = String(await freeTcpPort());
    const range = { JF_DIST_MIN_PORT: port, JF_DIST_MAX_PORT: port };
    const holder = await startTestNode({ ...env('holder', ''), ...range });
    await expect(startTestNode({ ...env('late', ''), ...range })).rejects.toMatchObject({
      message: `no port of ${port}..${port} on 127.0.0.1 is free (JF_DIST_IP, JF_DIST_MIN_PORT, JF_DIST_MAX_PORT)`,
    });
    await first.dispose();
    await holder.dispose();
  });

  test('leaves no lost link behind when it shuts down cleanly', async () => {
    const stays = await startTestNode(env('stays', ''));
    const leaves = await startTestNode(env('leaves', 'stays@127.0.0.1'));
    const links = async (): Promise<string[]> =>
      (await (await fetch(`${stays.metricsUrl}/metrics`)).text()).match(/^bloom_cluster_link_up\{.*$/gm) ?? [];
    await until(() => stays.cluster?.node.nodes().length === 1);
    expect(await links()).toEqual(['bloom_cluster_link_up{node="leaves@127.0.0.1"} 1']);
    await leaves.dispose();
    await until(() => stays.cluster?.node.nodes().length === 0);
    // A link that is 0 for two minutes triggers the alert for a split.
    expect(await links()).toEqual([]);
    await stays.dispose();
  });

  test('receives no room before its clients can reach it', async () => {
    const port = await freeTcpPort();
    const member = await startTestNode(env('member', 'newcomer@127.0.0.1'));
    const { placement } = (member.cluster as NonNullable<typeof member.cluster>).registry;
    const starting = startTestNode({ ...env('newcomer', 'member@127.0.0.1'), JF_PORT: String(port) });
    const takesRooms = async (): Promise<boolean> =>
      (await placement.survey()).some(
        (sample) => sample.node === 'newcomer@127.0.0.1' && 'answer' in sample && !sample.answer.draining,
      );
    while (!(await takesRooms())) await new Promise((resolve) => setImmediate(resolve));
    expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(401);
    await (await starting).dispose();
    await member.dispose();
  });
});
