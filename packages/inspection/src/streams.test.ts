import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { ActorRef, Behaviour } from '@bloom/actors';
import type { PortMapperServer } from '@bloom/port-mapper';
import { defaultRoomConfig } from '@bloom/rooms';
import { until } from '@bloom/time/testing';
import { loadSchemas, type ItemOf, type OpenStream, type StreamFields, type StreamKind } from './index.js';
import { joinRoom, startMapper, startMember, startTool, type Member, type Tool } from './testing/nodes.js';

type Echo = { say: (message: { text: string; secret?: string }) => string; other: (message: object) => void };

const echo: Behaviour<Echo, null> = {
  kind: 'echo',
  init: () => null,
  handlers: { say: (_state, { text }) => text, other: () => {} },
};

describe('streams', () => {
  let mapper: PortMapperServer;
  let a: Member;
  let b: Member;
  let tool: Tool;
  let onA: ActorRef<Echo>;
  let onB: ActorRef<Echo>;

  beforeAll(async () => {
    mapper = await startMapper();
    a = await startMember('a', mapper);
    b = await startMember('b', mapper, { seeds: [a.name] });
    await until(() => a.node.nodes().length === 1 && b.node.nodes().length === 1);
    tool = await startTool(a, mapper);
    onA = a.system.spawn(echo, { name: 'here' });
    onB = b.system.spawn(echo, { name: 'there' });
  });
  afterAll(async () => {
    await tool?.stop();
    await b?.stop();
    await a?.stop();
    await mapper?.close();
  });
  // Nothing of a stream may remain, whatever ends it.
  afterEach(async () => {
    await until(() => [a, b].every(({ inspection }) => inspection?.inspector.openStreams === 0));
    await until(() => [a, b].every(({ system }) => system.list({ limit: 1_000, match: isRelay }).length === 0));
  });
  const isRelay = (path: string): boolean => path.includes('inspection-relay');

  const collect = async <K extends StreamKind>(
    kind: K,
    fields: StreamFields<K>,
    { node, asking = tool }: { node?: string; asking?: typeof tool } = {},
  ): Promise<{ stream: OpenStream; items: ItemOf<K>[] }> => {
    const items: ItemOf<K>[] = [];
    const stream = await asking.client.stream(kind, fields, {
      ...(node === undefined ? {} : { node }),
      // A profile stops the process of the tests until V8 has named all of its functions.
      timeoutMs: 20_000,
      onItem: (item) => void items.push(item),
    });

    return { stream, items };
  };

  test('ends only its own stream on an item that the tool cannot handle', async () => {
    const fields = { match: onA.path, limit: 2, type: 'say' };
    const other = await collect('trace', fields);
    const { ended } = await tool.client.stream('trace', fields, {
      onItem: () => {
        throw new Error('no such column');
      },
    });
    await a.system.call(onA, { type: 'say', text: 'one' });
    expect(await ended).toMatchObject({ reason: 'failed', message: 'no such column' });
    await a.system.call(onA, { type: 'say', text: 'two' });
    expect(await other.stream.ended).toMatchObject({ reason: 'limit', sent: 2 });
  });

  describe.each([
    ['of the asked node', () => a, () => onA],
    ['of another node, through the asked one', () => b, () => onB],
  ])('tracing an actor %s', (_where, member, ref) => {
    const say = (text: string) => member().system.call(ref(), { type: 'say', text, secret: 'sesame' });

    test('shows messages without secrets in a trace, which ends at its limit', async () => {
      const { stream, items } = await collect('trace', { match: ref().path, limit: 2, type: 'say' });
      expect(stream).toMatchObject({ node: member().name, limit: 2, withinMs: 10_000 });
      member().system.cast(ref(), { type: 'other' });
      await say('one');
      await say('two');
      await say('three');
      const end = await stream.ended;
      expect(end).toMatchObject({ reason: 'limit', sent: 2, costMs: expect.any(Number) });
      const { streams } = await loadSchemas();
      for (const item of items) expect(streams.trace.item.parse(item)).toEqual(item);
      expect(items).toMatchObject([
        {
          node: member().name,
          actor: ref().path,
          direction: 'in',
          type: 'say',
          payload: { text: 'one', secret: '********' },
        },
        { payload: { text: 'two' } },
      ]);
    });

    test('ends a trace when its time has passed', async () => {
      const { stream } = await collect('trace', { match: ref().path, withinMs: 60 });
      expect(await stream.ended).toMatchObject({ reason: 'time', sent: 0 });
    });

    test('ends a trace when the tool has enough', async () => {
      const { stream, items } = await collect('trace', { match: ref().path, withinMs: 60_000 });
      await say('one');
      await until(() => items.length === 1);
      stream.stop();
      expect(await stream.ended).toMatchObject({ reason: 'stopped', sent: 1 });
    });

    test('ends a trace with the tool', async () => {
      const other = await startTool(a, mapper, 'bloomctl-2-test');
      await collect('trace', { match: ref().path, withinMs: 60_000, limit: 1_000 }, { asking: other });
      expect(member().inspection?.inspector.openStreams).toBe(1);
      await other.stop();
      await until(() => member().inspection?.inspector.openStreams === 0);
      expect(await say('still there')).toBe('still there');
    });
  });

  test('shows a flood up to the limit, and counts the rest', async () => {
    const { stream, items } = await collect('trace', { match: 'here', limit: 10_000, withinMs: 60_000 });
    let sent = 0;
    while (sent < 3_000) {
      for (let i = 0; i < 200; i++) if (a.system.cast(onA, { type: 'other' })) sent++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await a.system.idle();
    stream.stop();
    const end = await stream.ended;
    expect(items.length).toBeGreaterThan(0);
    expect(end.dropped).toBeGreaterThan(0);
    expect(end.sent).toBe(items.length);
    expect(end.sent + end.dropped).toBe(sent);
  });

  test('traces several actors by a pattern, and refuses an unknown actor', async () => {
    const { stream, items } = await collect('trace', { match: '*here', limit: 2 }, { node: b.name });
    await b.system.call(onB, { type: 'say', text: 'x' });
    await b.system.call(onB, { type: 'say', text: 'y' });
    await stream.ended;
    expect(items.map(({ actor }) => actor)).toEqual(['/there', '/there']);
    await expect(collect('trace', { match: 'nobody' })).rejects.toMatchObject({ code: 'UNKNOWN_ACTOR' });
  });

  test('follows the log', async () => {
    b.log.info('before.that');
    const { stream, items } = await collect(
      'log-tail',
      { level: 'info', match: 'that', backlog: 1, limit: 3 },
      { node: b.name },
    );
    b.log.debug('not.that');
    b.log.warn('after.that', { apiToken: 'abc' });
    b.log.warn('this');
    b.log.error('that');
    expect(await stream.ended).toMatchObject({ reason: 'limit' });
    expect(items.map(({ event }) => event)).toEqual(['before.that', 'after.that', 'that']);
    expect(items[1]?.fields['api_token']).toBe('********');
  });

  test('shows the busiest actors repeatedly', async () => {
    const { stream, items } = await collect('top', { everyMs: 250, limit: 2, actors: 3, sort: 'in' }, { node: b.name });
    for (let i = 0; i < 50; i++) b.system.cast(onB, { type: 'other' });
    expect(await stream.ended).toMatchObject({ reason: 'limit', sent: 2 });
    const { streams } = await loadSchemas();
    for (const item of items) expect(streams.top.item.parse(item)).toEqual(item);
    expect(items[0]?.actors[0]).toMatchObject({ path: '/there', inPerS: expect.any(Number) });
    expect(items[0]?.actors).toHaveLength(3);
    expect(items[0]?.rssBytes).toBeGreaterThan(1e7);
  });

  test('reports cluster events', async () => {
    const { stream, items } = await collect('cluster-events', { limit: 4 });
    const c = await startMember('c', mapper, { seeds: [a.name] });
    await until(() => items.length === 1);
    await c.stop();
    await until(() => items.length === 2);
    await tool.client.ask('drain', {});
    await tool.client.ask('undrain', {});
    expect(await stream.ended).toMatchObject({ reason: 'limit' });
    expect(items.map(({ type, node }) => [type, node])).toEqual([
      ['up', c.name],
      ['down', c.name],
      ['draining', a.name],
      ['undrained', a.name],
    ]);
  });

  test.each(['cpu', 'heap'] as const)('delivers a complete %s profile, one at a time', async (what) => {
    const { stream, items } = await collect('profile', { what, forMs: 200 }, { node: b.name });
    await expect(collect('profile', { what, forMs: 200 }, { node: b.name })).rejects.toMatchObject({ code: 'BUSY' });
    expect(await stream.ended).toMatchObject({ reason: 'complete', dropped: 0 });
    const profile: unknown = JSON.parse(Buffer.concat(items.map(({ bytes }) => bytes)).toString());
    expect(profile).toHaveProperty(what === 'cpu' ? 'nodes' : 'head');
    const again = await collect('profile', { what, forMs: 60_000 }, { node: b.name });
    again.stream.stop();
    await again.stream.ended;
    const last = await collect('profile', { what, forMs: 100 }, { node: b.name });
    expect(await last.stream.ended).toMatchObject({ reason: 'complete' });
  });

  test.each(['a', 'b'] as const)('a stream of %s that opens after its tool gave up is ended', async (name) => {
    const member = { a, b }[name];
    const inspection = member.system.whereis('inspection')!;
    member.system.suspend(inspection);
    const asked = tool.client.stream(
      'profile',
      { what: 'cpu', forMs: 60_000 },
      { node: member.name, timeoutMs: 1, onItem: () => {} },
    );
    await expect(asked).rejects.toMatchObject({ code: 'TIMEOUT' });
    member.system.resume(inspection);
    await member.system.idle();
  });

  test('starts a capture with a file header and ends it with its time or its peer', async () => {
    const { room } = await b.rooms.createRoom({ ...defaultRoomConfig, roomId: 'kitchen' });
    const peer = await joinRoom(b, room.id);
    const { stream, items } = await collect('pcap', { room: room.id, peer: peer.id, withinMs: 200 });
    expect(stream.node).toBe(b.name);
    expect(await stream.ended).toMatchObject({ reason: 'time', dropped: 0 });
    expect(Buffer.concat(items.map(({ bytes }) => bytes))).toHaveLength(24);
    expect(b.log.recent.last().find(({ event }) => event === 'inspection.pcap')?.fields).toMatchObject({
      peer_id: peer.id,
      tool: tool.name,
    });
    await expect(collect('pcap', { room: room.id, peer: 'nobody' })).rejects.toMatchObject({ code: 'UNKNOWN_PEER' });
    await expect(collect('pcap', { room: 'hall', peer: 'x' })).rejects.toMatchObject({ code: 'UNKNOWN_ROOM' });
    const again = await collect('pcap', { room: room.id, peer: peer.id, withinMs: 60_000 });
    // A second capture would take packets from the first.
    await expect(collect('pcap', { room: room.id, peer: peer.id })).rejects.toMatchObject({ code: 'BUSY' });
    await b.rooms.deleteRoom(room.id);
    const end = await again.stream.ended;
    expect(['complete', 'failed']).toContain(end.reason);
  });

  test('refuses to profile a media worker that does not exist', async () => {
    await expect(collect('profile', { what: 'cpu', thread: 'media-1' })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      message: expect.stringContaining('media worker'),
    });
    await expect(collect('profile', { what: 'cpu', thread: 'media-0' })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  });

  test('ends streams through a node that stops as lost', async () => {
    const c = await startMember('c', mapper, { seeds: [a.name] });
    await until(() => [a, b, c].every(({ node }) => node.nodes().length === 2));
    const through = await collect('log-tail', {}, { node: c.name });
    const direct = await startTool(c, mapper, 'bloomctl-3-test');
    const own = await collect('log-tail', {}, { asking: direct });
    const relayed = await collect('log-tail', {}, { node: b.name, asking: direct });
    await c.stop();
    // Names the lost node rather than the one that reports the loss.
    expect(await through.stream.ended).toMatchObject({ reason: 'lost', node: c.name });
    expect(await own.stream.ended).toMatchObject({ reason: 'lost' });
    expect(await relayed.stream.ended).toMatchObject({ reason: 'lost' });
    await direct.stop();
  });

  test('limits the number of streams', async () => {
    const open = await Promise.all(Array.from({ length: 32 }, () => collect('log-tail', {})));
    await expect(collect('log-tail', {})).rejects.toMatchObject({ code: 'BUSY' });
    for (const { stream } of open) stream.stop();
    for (const { stream } of open) expect(await stream.ended).toMatchObject({ reason: 'stopped' });
  });
});
