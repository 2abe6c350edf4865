import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connectActors, openActorSystem } from '@bloom/actors';
import { InspectionClient } from '@bloom/inspection';
import { createLogger, silentLog } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { startTestNode, type TestNode } from './testing/test-node.js';

const COOKIE = 'inspected_cookie';

const hasErlang = ((): boolean => {
  try {
    execFileSync('erl', ['-noshell', '-eval', 'halt().'], { stdio: 'ignore' });
    return true;
  } catch {
    // oxlint-disable-next-line no-console
    console.warn('SKIPPED: tests against erlang-base; install it with: apt-get install erlang-base');
    return false;
  }
})();

test("answers its user's tools on a node without a cluster, which listens on no further port", async () => {
  const node = await startTestNode({}, { log: createLogger({ sink: () => {} }) });
  const folder = join(node.settings.resourcesPath, 'run');
  const [file = ''] = readdirSync(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const system = openActorSystem({ log: silentLog });
  const remote = connectActors(system, { log: silentLog });
  const via = join(folder, file);
  const mapper = { port: 0 };
  const tool = { tool: true, listen: false, via, mapper } as const;
  await remote.start({ name: 'bloomctl-1-x@desk', mode: 'sname', cookie: '', ...tool, log: silentLog });
  const asked = file.slice(0, -'.sock'.length);
  expect(asked).toMatch(`bloom-${node.settings.http.port}@`);
  const roomId = await node.createRoom();
  const { token } = await node.addPeer(roomId);
  await remote.node?.connect(asked);
  const client = new InspectionClient({ system, remote, asked, tool: 'bloomctl-1-x' });
  const { answer } = await client.ask('nodes', {});
  expect(answer.nodes).toMatchObject([{ name: asked, rooms: 1, peers: 1, links: { known: 0 } }]);
  expect((await client.ask('placement-dry-run', {})).answer).toMatchObject({ chosen: asked, nodes: [{ rooms: 1 }] });
  const { answer: room } = await client.ask('room', { room: roomId });
  expect(JSON.stringify(room)).not.toContain(token);
  const health = await node.request('GET', '/health');
  expect(health.body.data.distribution).toEqual({ enabled: false, nodeStatus: 'DOWN', nodesInCluster: 0 });
  await client.ask('drain', { deadlineMs: null });
  expect((await node.request('POST', '/room')).status).toBe(503);
  await client.close();
  await remote.close();
  await system.close();
  await node.close();
  expect(readdirSync(folder)).toEqual([]);
  await node.dispose();
});

test("shows the node, its log without secrets, a room's placement and a peer's rates over the HTTP API", async () => {
  const lines = createLogger({ sink: () => {} });
  const node = await startTestNode({ JF_SERVER_API_TOKEN: 'a-token-of-the-api' }, { log: lines });
  const roomId = await node.createRoom();
  const peer = await node.addPeer(roomId);
  lines.warn('test.line', { said: 'a-token-of-the-api' });

  const { body: cluster } = await node.request('GET', '/cluster');
  const { asked } = cluster.data;
  expect(cluster.data).toMatchObject({
    nodes: [{ name: asked, state: 'up', rooms: 1, peers: 1 }],
    links: [],
    unreachable: [],
    verdict: 'whole',
  });
  const { body: log } = await node.request('GET', '/cluster/logs?level=warning&match=test.line');
  expect(log.data).toMatchObject([{ node: asked, level: 'warning', event: 'test.line' }]);
  expect(JSON.stringify(log)).not.toContain('a-token-of-the-api');
  const { body: placement } = await node.request('GET', '/cluster/placement');
  expect(placement.data).toMatchObject({ room: null, chosen: asked, nodes: [{ rooms: 1 }] });
  const { body: stats } = await node.request('GET', `/room/${roomId}/peer/${peer.id}/stats`);
  expect(stats.data).toMatchObject({ id: peer.id, node: asked, status: 'disconnected', inbound: [] });

  expect((await node.request('GET', `/room/${roomId}/peer/none/stats`)).status).toBe(404);
  expect((await node.request('GET', '/cluster/logs?node=none@host')).status).toBe(404);
  const moving = await node.request('POST', '/node/drain', { move: true });
  expect(moving).toMatchObject({ status: 503, body: { errors: 'This node is not part of a cluster' } });
  expect((await node.request('POST', `/node/drain?node=${asked}`)).body.data).toEqual({ draining: true, rooms: 1 });
  expect((await node.request('DELETE', `/node/drain?node=${asked}`)).body.data).toEqual({ draining: false, rooms: 1 });
  await node.dispose();
});

test('opens no socket and shows nothing with inspection off', async () => {
  const node = await startTestNode({ JF_INSPECTION: 'off' });
  const { status, body } = await node.request('GET', '/cluster');
  expect(status).toBe(503);
  expect(body.errors).toEqual(expect.stringContaining('JF_INSPECTION=off'));
  expect(existsSync(join(node.settings.resourcesPath, 'run'))).toBe(false);
  await node.dispose();
});

describe('inspection of a running node', () => {
  let mapper: PortMapperServer;
  let node: TestNode;

  const start = (name: string, env: Record<string, string> = {}): Promise<TestNode> =>
    startTestNode(
      {
        JF_DIST_ENABLED: 'true',
        JF_DIST_MODE: 'name',
        JF_DIST_NODE_NAME: `${name}@127.0.0.1`,
        JF_DIST_NODES: `${name}@127.0.0.1`,
        JF_DIST_COOKIE: COOKIE,
        JF_DIST_IP: '127.0.0.1',
        ERL_EPMD_PORT: String(mapper.port),
        ...env,
      },
      { log: createLogger({ sink: () => {} }) },
    );

  beforeAll(async () => {
    mapper = await PortMapperServer.open({ port: 0, log: silentLog });
    node = await start('watched');
  });
  afterAll(async () => {
    await node?.dispose();
    await mapper?.close();
  });

  const withTool = async <T>(asked: string, use: (client: InspectionClient) => Promise<T>): Promise<T> => {
    const system = openActorSystem({ log: silentLog });
    const remote = connectActors(system, { log: silentLog });
    const tool = await remote.start({
      name: 'bloomctl-1-x@127.0.0.1',
      mode: 'name',
      cookie: COOKIE,
      tool: true,
      listen: false,
      mapper: { port: mapper.port },
      log: silentLog,
    });
    try {
      await tool.connect(asked);
      return await use(new InspectionClient({ system, remote, asked, tool: 'bloomctl-1-x' }));
    } finally {
      await remote.close();
      await system.close();
    }
  };

  test('answers a tool without disturbing the node', async () => {
    const roomId = await node.createRoom();
    const peer = await node.addPeer(roomId);
    await withTool('watched@127.0.0.1', async (client) => {
      const { answer } = await client.ask('nodes', {});
      expect(answer.nodes).toMatchObject([{ name: 'watched@127.0.0.1', rooms: 1, peers: 1, links: { known: 0 } }]);
      const health = await node.request('GET', '/health');
      expect(health.body.data.distribution.nodesInCluster).toBe(1);
      expect((await client.ask('placement-dry-run', {})).answer.nodes).toHaveLength(1);

      const answers = [answer, (await client.ask('room', { room: roomId })).answer];
      const { actors } = (await client.ask('actors', { limit: 1_000 })).answer;
      for (const { key } of actors) {
        answers.push((await client.ask('state', { id: key, depth: 10, bytes: 65_536 })).answer as never);
        answers.push((await client.ask('mailbox', { id: key })).answer as never);
      }
      const everything = JSON.stringify(answers);
      const { apiToken, secretKeyBase } = node.settings.http;
      for (const secret of [COOKIE, peer.token, apiToken, secretKeyBase]) expect(everything).not.toContain(secret);
      expect((await client.ask('logs', {})).answer.lines.length).toBeGreaterThan(0);
    });
    expect(node.cluster?.node.events.last()).toEqual([]);
    await node.request('DELETE', `/room/${roomId}`);
  });

  test('shows and drains a node through the HTTP API of another one, even in production', async () => {
    const other = await start('west', { JF_DIST_NODES: 'watched@127.0.0.1', JF_INSPECTION: 'read' });
    try {
      await other.cluster?.node.connect('watched@127.0.0.1');
      const roomId = await node.createRoom();
      const peer = await node.addPeer(roomId);
      const { body: cluster } = await other.request('GET', '/cluster');
      expect(cluster.data).toMatchObject({
        asked: 'west@127.0.0.1',
        nodes: [{ name: 'watched@127.0.0.1' }, { name: 'west@127.0.0.1' }],
        links: [
          { from: 'watched@127.0.0.1', to: 'west@127.0.0.1', state: 'up' },
          { from: 'west@127.0.0.1', to: 'watched@127.0.0.1', state: 'up' },
        ],
        verdict: 'whole',
      });
      const { body: placement } = await other.request('GET', `/cluster/placement?room=${roomId}`);
      expect(placement.data).toMatchObject({ asked: 'watched@127.0.0.1', room: roomId });
      const { body: log } = await other.request('GET', '/cluster/logs?node=watched@127.0.0.1&limit=1');
      expect(log.data).toMatchObject([{ node: 'watched@127.0.0.1' }]);
      const stats = await other.request('GET', `/room/${roomId}/peer/${peer.id}/stats`);
      expect(stats.status).toBe(200);
      expect(stats.body.data?.id).toBe(peer.id);

      const drained = await node.request('POST', '/node/drain?node=west@127.0.0.1');
      expect(drained.body.data).toMatchObject({ draining: true });
      const lifted = await node.request('DELETE', '/node/drain?node=west@127.0.0.1');
      expect(lifted.body.data).toMatchObject({ draining: false });
      await node.request('DELETE', `/room/${roomId}`);
    } finally {
      await other.dispose();
    }
  });

  test('stays silent when it is switched off', async () => {
    const quiet = await start('quiet', { JF_INSPECTION: 'off' });
    await expect(withTool('quiet@127.0.0.1', (client) => client.ask('hello', {}))).rejects.toMatchObject({
      code: 'OFF',
    });
    await quiet.dispose();
  });

  /** Prints the value of each expression on a separate line. */
  const shell = async (expressions: readonly string[]): Promise<string[]> => {
    const show = expressions.map((expression) => `io:format("~0tp~n", [${expression}])`).join(', ');
    const name = [
      '-name',
      'shell@127.0.0.1',
      '-setcookie',
      COOKIE,
      '-kernel',
      'inet_dist_use_interface',
      '{127,0,0,1}',
    ];
    const args = ['-noshell', ...name, '-eval', `io:setopts([{encoding, unicode}]), ${show}, halt().`];
    const env = { ...process.env, ERL_EPMD_PORT: String(mapper.port), ERL_EPMD_ADDRESS: '127.0.0.1', HOME: '/tmp' };

    return new Promise((resolve) => {
      execFile('erl', args, { env, timeout: 20_000 }, (_error, stdout, stderr) =>
        resolve(`${stdout}${stderr}`.trimEnd().split('\n')),
      );
    });
  };

  (hasErlang ? test : test.skip)('gives an Erlang shell the same answers, read-only [needs erlang]', async () => {
    await node.request('POST', '/room', { roomId: 'kitchen' });
    const call = (fun: string, ...args: string[]): string =>
      `rpc:call('watched@127.0.0.1', bloom, ${fun}, [${args.join(', ')}])`;
    const lines = await shell([
      `[maps:get(path, A) || A <- ${call('actors', '<<"rooms*">>')}]`,
      `lists:member(<<"/inspection">>, [maps:get(path, A) || A <- ${call('actors')}])`,
      `maps:with([id, node, peers, components], ${call('room', '"kitchen"')})`,
      `maps:with([kind, status, parent, last_error], ${call('actor', "'rooms/kitchen'")})`,
      `maps:with([chosen, policy], ${call('placement', '<<"kitchen">>')})`,
      `[maps:with([node, verdict], N) || N <- maps:get(nodes, ${call('placement')})]`,
      `[maps:with([node, state], L) || L <- ${call('links')}]`,
      `is_integer(maps:get(pid, ${call('process')}))`,
      `is_list(${call('logs')})`,
      call('room', '<<"hall">>'),
      call('room', '{no, name}'),
      call('kill', '<<"rooms">>'),
    ]);
    expect(lines).toEqual([
      '[<<"/rooms">>,<<"/rooms/kitchen">>,<<"/rooms_node">>]',
      'true',
      '#{components => #{},id => <<"kitchen">>,node => <<"watched@127.0.0.1">>,peers => 0}',
      '#{kind => <<"room">>,last_error => undefined,parent => <<"/rooms">>,status => <<"idle">>}',
      '#{chosen => <<"watched@127.0.0.1">>,policy => <<"least-loaded">>}',
      '[#{node => <<"watched@127.0.0.1">>,verdict => <<"chosen">>}]',
      '[#{node => <<"shell@127.0.0.1">>,state => <<"up">>}]',
      'true',
      'true',
      `{badrpc,{'EXIT',{{unknown_room,<<"watched@127.0.0.1 has no room hall">>},[]}}}`,
      `{badrpc,{'EXIT',{badarg,[]}}}`,
      `{badrpc,{'EXIT',{undef,[{bloom,kill,[<<"rooms">>],[]}]}}}`,
    ]);
    await node.request('DELETE', '/room/kitchen');
  });
});
