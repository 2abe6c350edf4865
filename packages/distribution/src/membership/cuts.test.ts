import { afterEach, describe, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { startMapper } from '../testing/erlang.js';
import { ClusterEvents } from './cluster-events.js';
import { type ClusterEvent, type LinkState, type NodeOptions } from '../index.js';
import { TestNode } from '../testing/test-node.js';

const cleanUps: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

const [A, B, C] = ['a@127.0.0.1', 'b@127.0.0.1', 'c@127.0.0.1'] as const;

let mapperPort = 0;

async function start(name: string, options: Partial<NodeOptions> = {}): Promise<TestNode> {
  const started = await TestNode.start(name, mapperPort, { announceForeign: false, ...options });
  cleanUps.push(() => started.stop());
  return started;
}

async function threeNodes(): Promise<readonly [TestNode, TestNode, TestNode]> {
  const mapper = await startMapper('ours');
  cleanUps.push(() => mapper.stop());
  mapperPort = mapper.port;
  const nodes: TestNode[] = [];
  for (const name of [A, B, C]) nodes.push(await start(name));
  for (const { node } of nodes.slice(1)) node.seed([A]);
  await until(() => nodes.every(({ node }) => node.nodes().length === 2));
  return nodes as unknown as readonly [TestNode, TestNode, TestNode];
}

function linkOf({ node }: TestNode, other: string): LinkState {
  const link = node.links().find((state) => state.node === other);
  if (link === undefined) throw new Error(`${node.name} knows no ${other}`);
  return link;
}

function eventsOf({ node }: TestNode): [ClusterEvent['event'], string][] {
  return node.events.last().map(({ event, node: about }) => [event, about]);
}

describe('cuts', () => {
  test('keeps two nodes apart during a cut, leaves the third alone, and ends it by itself', async () => {
    const [a, b, c] = await threeNodes();
    const before = eventsOf(a).length;
    a.node.cut(B, 600);
    expect(a.node.nodes()).toEqual([C]);
    expect(linkOf(a, B)).toMatchObject({ state: 'waiting', lastFailure: { reason: 'cut' }, traffic: null });
    expect(linkOf(a, B).cutForMs).toBeGreaterThan(0);
    await until(() => !b.node.nodes().includes(A));
    await expect(a.node.connect(B)).rejects.toMatchObject({ code: 'LINK_CUT' });
    await expect(b.node.connect(A)).rejects.toMatchObject({ code: 'HANDSHAKE_FAILED', reason: 'not_allowed' });
    expect(c.node.nodes().toSorted()).toEqual([A, B]);
    expect(b.node.nodes()).toEqual([C]);

    await until(() => a.node.nodes().length === 2 && b.node.nodes().length === 2);
    expect(linkOf(a, B)).toMatchObject({ state: 'up', cutForMs: null, attempts: 0 });
    expect(eventsOf(a).slice(before)).toEqual([
      ['split', B],
      ['cut', B],
      ['healed', B],
    ]);
    expect(eventsOf(b).at(-1)).toEqual(['healed', A]);
    expect(eventsOf(c).filter(([event]) => event !== 'up')).toEqual([]);
  });

  test('ends a cut early on request, without dialling an unwanted node', async () => {
    const [a, b] = await threeNodes();
    a.node.cut(B, 60_000);
    await until(() => !b.node.nodes().includes(A));
    a.node.cut('stranger@127.0.0.1', 60_000);
    expect(linkOf(a, 'stranger@127.0.0.1')).toMatchObject({ state: 'down', kind: null });
    expect(a.node.uncut('stranger@127.0.0.1')).toBe(true);
    expect(a.node.uncut('stranger@127.0.0.1')).toBe(false);
    expect(a.node.links().map(({ node }) => node)).not.toContain('stranger@127.0.0.1');
    expect(a.node.uncut(B)).toBe(true);
    await until(() => a.node.nodes().length === 2 && b.node.nodes().length === 2);
  });
});

describe('link states', () => {
  test('covers connected and missing nodes, the reasons, and the traffic', async () => {
    const [a, b] = await threeNodes();
    const nobody = 'nobody@127.0.0.1';
    a.node.seed([nobody]);
    await until(() => linkOf(a, nobody).attempts > 0);
    expect(linkOf(a, nobody)).toMatchObject({ state: 'waiting', seed: true, kind: null, dialled: null });
    expect(linkOf(a, nobody).lastFailure?.reason).toContain('does not know');
    expect(linkOf(a, nobody).nextAttemptInMs).toBeGreaterThan(0);

    const up = linkOf(b, A);
    expect(up).toMatchObject({ state: 'up', seed: true, kind: 'member', dialled: true, nextAttemptInMs: null });
    expect(up.traffic?.framesIn).toBeGreaterThan(0);
    expect(up.traffic?.bytesOut).toBeGreaterThan(0);
    expect(linkOf(a, B)).toMatchObject({ dialled: false, seed: false });
  });

  test('includes tools, which are not members', async () => {
    const [a] = await threeNodes();
    const tool = await start('ctl@127.0.0.1', { tool: true, listen: false });
    await tool.node.connect(A);
    await until(() => linkOf(a, 'ctl@127.0.0.1').kind === 'tool');
    expect(a.node.nodes().toSorted()).toEqual([B, C]);
    expect(eventsOf(a).map(([, node]) => node)).not.toContain('ctl@127.0.0.1');
  });
});

describe('cluster events', () => {
  test('distinguishes a node that came back from one that was restarted', () => {
    let now = 0;
    const events = new ClusterEvents(() => now);
    const heard: ClusterEvent[] = [];
    const stop = events.subscribe((event) => heard.push(event));
    events.up({ node: B, creation: 7 });
    events.down({ node: B, reason: 'net_tick_timeout' });
    now = 14_000;
    events.up({ node: B, creation: 7 });
    events.down({ node: B, reason: 'connection_closed' });
    events.up({ node: B, creation: 8 });
    events.down({ node: B, reason: 'leave' });
    events.up({ node: B, creation: 8 });
    stop();
    events.add('draining', B, '');
    expect(heard.map(({ at, event, detail }) => [at, event, detail])).toEqual([
      [0, 'up', ''],
      [0, 'split', 'net_tick_timeout'],
      [14_000, 'healed', 'apart for 14.0 s'],
      [14_000, 'down', 'connection_closed'],
      [14_000, 'up', ''],
      [14_000, 'down', 'leave'],
      [14_000, 'up', ''],
    ]);
    expect(events.last(1)).toEqual([{ at: 14_000, event: 'draining', node: B, detail: '' }]);
  });

  test('keeps a limited number of events, and never calls a listener that threw again', () => {
    const events = new ClusterEvents(() => 1);
    let calls = 0;
    events.subscribe(() => {
      calls += 1;
      throw new Error('not today');
    });
    for (let i = 0; i < 600; i++) events.add('up', `n${i}@h`, '');
    expect(calls).toBe(1);
    expect(events.last()).toHaveLength(500);
    expect(events.last()[0]?.node).toBe('n100@h');
  });
});
