import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { loadSchemas, type RequestKind } from './index.js';
import { startMapper, startMember, startTool, type Member, type MemberOptions, type Tool } from './testing/nodes.js';

describe('the modes of a node', () => {
  let mapper: PortMapperServer;
  let running: { stop(): Promise<void> }[] = [];

  beforeAll(async () => {
    mapper = await startMapper();
  });
  afterAll(() => mapper?.close());
  afterEach(async () => {
    for (const each of running.toReversed()) await each.stop();
    running = [];
  });
  const member = async (alive: string, options: MemberOptions = {}): Promise<Member> => {
    const started = await startMember(alive, mapper, options);
    running.push(started);
    return started;
  };
  const toolOn = async (asked: Member, alive?: string): Promise<Tool> => {
    const started = await startTool(asked, mapper, alive);
    running.push(started);
    return started;
  };

  test('refuses to inject faults on a read-only node and says why', async () => {
    const a = await member('a', { mode: 'read' });
    const { requests } = await loadSchemas();
    const changing = (Object.keys(requests) as RequestKind[]).filter((kind) => 'changes' in requests[kind]);
    expect(changing).toHaveLength(6);
    const { client } = await toolOn(a);
    const { kinds, mode } = (await client.ask('hello', {})).answer;
    expect(mode).toBe('read');
    expect(kinds.filter((kind) => changing.includes(kind as RequestKind))).toEqual([]);
    const fields: Record<string, object> = {
      'link-cut': { to: 'b@127.0.0.1', forMs: 1_000 },
      'move-fault': { point: 'give', does: 'kill', forMs: 1_000 },
      kill: { id: 'rooms' },
      suspend: { id: 'rooms', forMs: 1_000 },
      resume: { id: 'rooms' },
      'log-level': { level: 'debug', forMs: 1_000 },
    };
    for (const kind of changing) {
      await expect(client.ask(kind, (fields[kind] ?? {}) as never)).rejects.toMatchObject({ code: 'NOT_PERMITTED' });
    }
    expect((await client.ask('actors', {})).answer.total).toBeGreaterThan(1);
  });

  test('drains a read-only node, as upgrades require', async () => {
    const a = await member('a', { mode: 'read' });
    const { client } = await toolOn(a);
    await client.ask('drain', {});
    expect(a.host.draining).toBe(true);
    expect((await client.ask('undrain', {})).answer).toEqual({ wasDraining: true, draining: false });
    expect(a.host.draining).toBe(false);
  });

  test('answers no tools with inspection off, and tells the tool why', async () => {
    const a = await member('a');
    const b = await member('b', { mode: 'off', seeds: [a.name] });
    await until(() => a.node.nodes().length === 1);
    expect(b.system.whereis('inspection')).toBeUndefined();
    const direct = await toolOn(b, 'bloomctl-1-off');
    await expect(direct.client.ask('hello', {})).rejects.toMatchObject({ code: 'OFF' });
    const through = await toolOn(a, 'bloomctl-2-off');
    await expect(through.client.ask('hello', {}, { node: b.name })).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect((await through.client.ask('nodes', {})).answer).toMatchObject({
      nodes: [{ name: a.name }],
      unreachable: [{ name: b.name, reason: expect.stringContaining('JF_INSPECTION=off') }],
    });
  });

  test('never counts or announces a tool, nor gives it rooms', async () => {
    const a = await member('a');
    const b = await member('b', { seeds: [a.name] });
    await until(() => a.node.nodes().length === 1 && b.node.nodes().length === 1);
    const heard: string[] = [];
    for (const { node } of [a, b]) node.subscribe({ nodeup: (event) => heard.push(event.node) });
    const events = a.node.events.last().length;
    const tool = await toolOn(a);
    await tool.client.ask('hello', {});
    expect(a.node.nodes('members')).toEqual([b.name]);
    expect(b.node.nodes('connected')).toEqual([a.name]);
    const { nodes } = (await tool.client.ask('placement-dry-run', {})).answer;
    expect(nodes.map(({ node }) => node).toSorted()).toEqual([a.name, b.name]);
    await tool.stop();
    expect(heard).toEqual([]);
    expect(a.node.events.last()).toHaveLength(events);
  });

  test('restores a cut link automatically, and reports both events', async () => {
    const a = await member('a');
    const b = await member('b', { seeds: [a.name] });
    const c = await member('c', { seeds: [a.name] });
    const all = [a, b, c];
    await until(() => all.every(({ node }) => node.nodes().length === 2));
    const { client } = await toolOn(a);
    const cut = await client.ask('link-cut', { to: c.name, forMs: 1_500 }, { node: b.name });
    expect(cut.answer).toMatchObject({ from: b.name, to: c.name });
    await until(() => b.node.nodes().length === 1 && c.node.nodes().length === 1);

    const { verdict, missing, views } = (await client.ask('cluster', {})).answer;
    expect(verdict).toBe('partial');
    expect(missing).toEqual([[b.name, c.name]]);
    const seenByB = views.find(({ node }) => node === b.name)?.links.find(({ node }) => node === c.name);
    expect(seenByB).toMatchObject({ state: 'cut', cutUntil: expect.any(Number) });
    expect((await client.ask('faults', {}, { node: b.name })).answer.faults).toMatchObject([
      { kind: 'link-cut', target: c.name },
    ]);

    await until(() => all.every(({ node }) => node.nodes().length === 2));
    expect((await client.ask('cluster', {})).answer.verdict).toBe('whole');
    const types = b.node.events.last().map(({ event }) => event);
    expect(types).toContain('cut');
    expect(types).toContain('healed');
  });

  test('reports a cluster as split that misses a member which has not left', async () => {
    const a = await member('a');
    const b = await member('b', { seeds: [a.name] });
    await until(() => a.node.nodes().length === 1 && b.node.nodes().length === 1);
    const { client } = await toolOn(a);
    await client.ask('link-cut', { to: b.name, forMs: 1_000 });
    const { verdict, groups, missing, unreachable } = (await client.ask('cluster', {})).answer;
    expect({ verdict, groups, missing }).toEqual({
      verdict: 'split',
      groups: [[a.name], [b.name]],
      missing: [[a.name, b.name]],
    });
    expect(unreachable).toMatchObject([{ name: b.name }]);

    await until(() => a.node.nodes().length === 1 && b.node.nodes().length === 1);
    expect((await client.ask('cluster', {})).answer.verdict).toBe('whole');
    await b.stop();
    await until(() => a.node.nodes().length === 0);
    expect((await client.ask('cluster', {})).answer.verdict).toBe('whole');
  });

  test('lists a silent node as unreachable before the tool gives up', async () => {
    const a = await member('a');
    const b = await member('b', { seeds: [a.name] });
    await until(() => a.node.nodes().length === 1);
    const { client } = await toolOn(a);
    const inspection = b.system.whereis('inspection');
    b.system.suspend(inspection!);
    const { nodes, unreachable } = (await client.ask('nodes', {})).answer;
    expect(nodes.map(({ name }) => name)).toEqual([a.name]);
    expect(unreachable).toEqual([{ name: b.name, reason: expect.stringContaining('in time') }]);
    await expect(client.ask('ps', {}, { node: b.name, timeoutMs: 400 })).rejects.toMatchObject({ code: 'TIMEOUT' });
  });

  test('does not deny that an actor or room exists when a silent member may have it', async () => {
    const a = await member('a');
    const b = await member('b', { seeds: [a.name] });
    await until(() => a.node.nodes().length === 1);
    const { client } = await toolOn(a);
    await expect(client.ask('room', { room: 'kitchen' })).rejects.toMatchObject({ code: 'UNKNOWN_ROOM' });
    b.system.suspend(b.system.whereis('inspection')!);
    const silent = { code: 'TIMEOUT', message: expect.stringContaining(b.name) };
    await Promise.all([
      expect(client.ask('room', { room: 'kitchen' })).rejects.toMatchObject(silent),
      expect(client.ask('kill', { id: 'rooms/kitchen', reason: 'x' })).rejects.toMatchObject(silent),
      expect(client.ask('placement-explain', { room: 'kitchen' })).rejects.toMatchObject(silent),
    ]);
    await expect(client.ask('room', { room: 'kitchen' }, { node: a.name })).rejects.toMatchObject({
      code: 'UNKNOWN_ROOM',
    });
  });
});
