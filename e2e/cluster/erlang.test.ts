// Tests an Erlang shell on a separate host that queries a running cluster, as docs/guide/erlang.md shows.
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { describeWith } from '../harness/needs.js';
import type { Host } from '../hosts/lab.js';
import { deployments, LabCluster } from './lab-cluster.js';

/** Prints the value of each expression on a separate line. */
async function ask(host: Host, expressions: readonly string[]): Promise<string[]> {
  const show = expressions.map((expression) => `io:format("~0p~n", [${expression}])`).join(', ');
  const shell = host.start('erl', [
    '-noshell',
    '-sname',
    'shell',
    '-setcookie',
    'bloom_cookie',
    '-eval',
    `${show}, halt().`,
  ]);
  let text = '';
  for (const stream of [shell.stdout, shell.stderr]) {
    stream?.on('data', (data: Buffer) => (text += data.toString()));
  }
  await once(shell, 'close');
  return text.trimEnd().split('\n');
}

describeWith(['network namespaces', 'erlang'], 'an Erlang shell', () => {
  let cluster: LabCluster;
  let desk: Host;
  beforeAll(async () => {
    cluster = await LabCluster.start(deployments['nodes-list'].services);
    desk = cluster.lab.addHost('desk');
  }, 120_000);
  afterAll(() => cluster?.close());

  test('can query the nodes, sees them as hidden, runs nothing else, and is not a member', async () => {
    await cluster.node(1).create({ roomId: 'standup' });
    const answers = await ask(desk, [
      `net_adm:ping('app@app1')`,
      `nodes()`,
      `nodes(hidden)`,
      `lists:sort(rpc:call('app@app1', bloom, nodes, []))`,
      `[rpc:call(N, bloom, rooms, []) || N <- ['app@app1', 'app@app2']]`,
      `rpc:call('app@app1', bloom, load, [])`,
      `maps:get(nodes_in_cluster, erpc:call('app@app2', bloom, health, [], 5000))`,
      `element(1, rpc:call('app@app1', os, cmd, ["id"]))`,
      `lists:sort(nodes(hidden))`,
      `maps:get(node, rpc:call('app@app2', bloom, room, ["standup"]))`,
      `lists:member(<<"/rooms/standup">>, [maps:get(path, A) || A <- rpc:call('app@app1', bloom, actors, ["rooms/*"])])`,
      `maps:with([asked, chosen, room], rpc:call('app@app2', bloom, placement, [standup]))`,
      `[maps:get(state, L) || L <- rpc:call('app@app1', bloom, links, []), maps:get(node, L) =:= <<"app@app2">>]`,
      `[maps:get(what, H) || H <- rpc:call('app@app2', bloom, path, [maps:get(req, rpc:call('app@app1', bloom, placement, [standup]))]), maps:get(actor, H) =:= <<"http">>]`,
      `element(1, rpc:call('app@app1', bloom, kill, ["rooms/standup"]))`,
    ]);
    expect(answers).toEqual([
      'pong',
      '[]',
      '[app@app1]',
      '[app@app1,app@app2]',
      '[[<<"standup">>],[]]',
      '#{draining => false,forwarded_tracks => 0,rooms => 1}',
      '2',
      'badrpc',
      '[app@app1,app@app2]',
      '<<"app@app1">>',
      'true',
      '#{asked => <<"app@app1">>,chosen => <<"app@app1">>,room => <<"standup">>}',
      '[<<"up">>]',
      '[<<"POST /room">>,<<"201">>]',
      'badrpc',
    ]);
    for (const node of cluster.nodes) {
      expect((await node.distribution())?.nodesInCluster).toBe(2);
      expect(node.log()).not.toContain('shell@desk');
    }
  }, 120_000);
});
