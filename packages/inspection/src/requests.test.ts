import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LOCAL, number, takes, text, type Behaviour, type Shapes } from '@bloom/actors';
import type { PortMapperServer } from '@bloom/port-mapper';
import { defaultRoomConfig } from '@bloom/rooms';
import { until } from '@bloom/time/testing';
import { InspectionError, loadSchemas, type RequestFields, type RequestKind } from './index.js';
import {
  COOKIE,
  joinRoom,
  SECRET,
  startMapper,
  startMember,
  startTool,
  type Member,
  type Tool,
} from './testing/nodes.js';

describe('requests', () => {
  let mapper: PortMapperServer;
  let a: Member;
  let b: Member;
  let tool: Tool;

  beforeAll(async () => {
    mapper = await startMapper();
    a = await startMember('a', mapper);
    b = await startMember('b', mapper, { seeds: [a.name] });
    await until(() => a.node.nodes().length === 1 && b.node.nodes().length === 1);
    tool = await startTool(a, mapper);
  });
  afterAll(async () => {
    await tool?.stop();
    await b?.stop();
    await a?.stop();
    await mapper?.close();
  });

  /** Asks, and checks that the answer matches its schema exactly. */
  const ask = async <K extends RequestKind>(kind: K, fields: RequestFields<K>, node?: string) => {
    const reply = await tool.client.ask(kind, fields, node === undefined ? {} : { node });
    const { requests } = await loadSchemas();
    expect(requests[kind].answer.parse(reply.answer)).toEqual(reply.answer);

    return reply;
  };
  const refusal = async (work: Promise<unknown>): Promise<[string, string]> => {
    const error = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(InspectionError);

    return [(error as InspectionError).code, (error as Error).message];
  };

  test('reports on hello who answers and what can be asked', async () => {
    const { node, answer } = await ask('hello', {});
    expect(node).toBe(a.name);
    expect(answer).toMatchObject({ node: a.name, version: '1.2.3', protocol: 1, mode: 'full', pid: process.pid });
    expect(answer.kinds).toContain('kill');
    expect(answer.streams).toContain('trace');
    expect((await ask('hello', {}, b.name)).answer.node).toBe(b.name);
  });

  test('lists nodes with their figures, without the tool', async () => {
    const { answer } = await ask('nodes', {});
    expect(answer.nodes.map(({ name }) => name)).toEqual([a.name, b.name]);
    expect(answer.nodes.map(({ links }) => links)).toEqual([
      { up: 1, known: 1 },
      { up: 1, known: 1 },
    ]);
    for (const { clockSkewMs, ageMs } of answer.nodes) {
      expect(Math.abs(clockSkewMs)).toBeLessThan(1_000);
      expect(ageMs).toBeLessThan(1_000);
    }
    expect(answer.unreachable).toEqual([]);
  });

  test('reports the cluster as whole when every node sees every other', async () => {
    const { answer } = await ask('cluster', {});
    expect(answer).toMatchObject({ verdict: 'whole', missing: [], groups: [[a.name, b.name]] });
    const links = answer.views[0]?.links ?? [];
    expect(links.find(({ node }) => node === tool.name)).toMatchObject({ kind: 'tool', state: 'up' });
    expect(links.find(({ node }) => node === b.name)).toMatchObject({ kind: 'member', state: 'up' });
  });

  test('lists actors as a tree, with rates when sampled twice', async () => {
    const { answer } = await ask('actors', { match: 'rooms*', sampleMs: 50 });
    expect(answer.actors.map(({ path }) => path)).toContain('/rooms');
    expect(answer.actors.every(({ inPerS }) => inPerS !== null)).toBe(true);
    expect(answer.sampledMs).toBeGreaterThanOrEqual(40);
    const few = await ask('actors', { limit: 1 });
    expect(few.answer.actors).toHaveLength(1);
    expect(few.answer.matched).toBeGreaterThan(1);
  });

  describe('requests about an actor', () => {
    type Counter = {
      add: (message: { by: number; password: string }) => number;
      fail: (message: object) => void;
      wait: (message: object) => void;
    };
    const COUNTER: Shapes<Counter> = {
      add: takes({ by: number, password: text() }, number),
      fail: LOCAL,
      wait: LOCAL,
    };
    const counter: Behaviour<Counter, { total: number; token: string; deep: object }> = {
      kind: 'counter',
      shapes: COUNTER,
      init: (context) => {
        context.setTimer('tick', 60_000, { type: 'wait' });
        return { total: 0, token: 'abc', deep: { er: { and: { deeper: { still: 1 } } } } };
      },
      handlers: {
        add: (state, { by }) => (state.total += by),
        fail: () => {
          throw new Error(`no luck with ${SECRET}`);
        },
        wait: () => {},
      },
      inspect: (state) => state,
    };

    const spawned = () => {
      const ref = b.system.spawn(counter, { supervise: 'restart' });
      return { ref, id: ref.path };
    };

    test('finds an actor on whichever node it lives', async () => {
      const { ref, id } = spawned();
      await b.system.call(ref, { type: 'add', by: 1, password: 'p' });
      await b.system.call(ref, { type: 'fail' }).catch(() => {});
      await b.system.idle();
      const { node, answer } = await ask('actor', { id });
      expect(node).toBe(b.name);
      expect(answer).toMatchObject({ path: ref.path, kind: 'counter', restarts: 1, failed: 1, status: 'idle' });
      expect(answer.lastError?.message).toBe('no luck with ********');
      expect(answer.timers).toEqual([{ name: 'tick', dueInMs: expect.any(Number) }]);
      expect(answer.supervision?.decision).toBe('restart');
      expect((await ask('actor', { id: ref.key.slice(1) })).answer.key).toBe(ref.key);
      expect(await refusal(ask('actor', { id: `${id}#999999` }))).toEqual([
        'UNKNOWN_ACTOR',
        expect.stringContaining('there is no actor'),
      ]);
    });

    test('shows the state of an actor cut to the limits and without secrets', async () => {
      const { id } = spawned();
      const { answer } = await ask('state', { id, depth: 3 });
      expect(answer).toMatchObject({
        shown: true,
        truncated: true,
        redacted: 1,
        state: { total: 0, token: '********', deep: { er: { and: '<nested>' } } },
      });
      expect((await ask('state', { id, path: 'deep.er.and' })).answer.state).toEqual({ deeper: { still: 1 } });
      expect((await ask('state', { id, path: '*.er' })).answer.state).toMatchObject({
        deep: { and: expect.anything() },
      });
      expect((await ask('state', { id, path: 'token' })).answer.state).toBe('********');
    });

    test('reports that an actor shows no state', async () => {
      const { answer } = await ask('state', { id: 'inspection' });
      expect(answer).toMatchObject({ shown: false, state: null });
    });

    test('shows the waiting messages of a suspended actor, which resumes automatically', async () => {
      const { ref, id } = spawned();
      const { answer } = await ask('suspend', { id, forMs: 1_500 });
      expect(answer.path).toBe(ref.path);
      const sum = b.system.call(ref, { type: 'add', by: 2, password: 'never seen' });
      b.system.cast(ref, { type: 'wait' });
      const box = (await ask('mailbox', { id })).answer;
      expect(box.queue).toBe(2);
      expect(box.types).toEqual(expect.arrayContaining([{ type: 'add', count: 1 }]));
      expect(box.messages[0]).toMatchObject({ type: 'add', payload: { by: 2, password: '********' } });
      for (const { waitedMs } of box.messages) expect(waitedMs).toBeLessThan(1_500);
      expect((await ask('actor', { id })).answer).toMatchObject({
        status: 'suspended',
        suspendedUntil: expect.any(Number),
      });
      expect((await ask('faults', {}, b.name)).answer.faults).toMatchObject([
        { kind: 'suspend', target: ref.path, tool: tool.name },
      ]);
      expect(await sum).toBe(2);
      await until(async () => (await ask('faults', {}, b.name)).answer.faults.length === 0);
      expect(b.log.recent.last().map(({ event }) => event)).toEqual(
        expect.arrayContaining(['inspection.suspend', 'inspection.undone']),
      );
    });

    test('resumes a suspended actor on request', async () => {
      const { ref, id } = spawned();
      await ask('suspend', { id, forMs: 60_000 });
      expect((await ask('resume', { id })).answer.wasSuspended).toBe(true);
      expect(await b.system.call(ref, { type: 'add', by: 3, password: '' })).toBe(3);
      expect((await ask('resume', { id })).answer.wasSuspended).toBe(false);
      expect((await ask('faults', {}, b.name)).answer.faults).toEqual([]);
    });

    test('kills an actor as if it had failed', async () => {
      const { ref, id } = spawned();
      await ask('kill', { id, reason: 'to see what happens' });
      await until(() => b.system.info(ref)?.restarts === 1);
      expect((await ask('actor', { id })).answer.lastError?.message).toContain('to see what happens');
      expect(b.log.recent.last().find(({ event }) => event === 'inspection.kill')?.fields).toMatchObject({
        tool: tool.name,
        actor: ref.path,
      });
    });

    test('refuses to change the actor that answers the tools', async () => {
      expect((await refusal(ask('suspend', { id: 'inspection', forMs: 1_000 })))[0]).toBe('BAD_REQUEST');
      expect((await refusal(ask('kill', { id: '/inspection' })))[0]).toBe('BAD_REQUEST');
    });

    test('requires the name of the node to change an actor that exists on several nodes', async () => {
      const twins = [a, b].map(({ system }) => system.spawn(counter, { name: 'twin' }));
      expect((await ask('actor', { id: 'twin' })).node).toBe(a.name);
      expect((await ask('actor', { id: 'twin' }, b.name)).node).toBe(b.name);
      for (const [i, member] of [a, b].entries()) await member.system.stop(twins[i]!);
    });

    test('follows a request across nodes through its actors', async () => {
      const { ref } = spawned();
      b.system.register('adder', ref);
      const target = a.remote.remote(b.name, 'adder', COUNTER);
      await a.system.forRequest('req-1', 'http').call(target, { type: 'add', by: 1, password: 'p' });
      a.system.note('req-1', { where: 'http', what: 'POST /x' });
      const { answer } = await ask('path', { id: 'req-1' });
      expect(answer.hops.map(({ node, actor, what }) => [node, actor, what])).toEqual(
        expect.arrayContaining([
          [b.name, ref.path, 'add'],
          [a.name, 'http', 'POST /x'],
        ]),
      );
      expect(answer.hops[0]?.offsetMs).toBe(0);
      expect(answer.unreachable).toEqual([]);
    });
  });

  test('reports the figures of a process', async () => {
    const { answer } = await ask('ps', {}, b.name);
    expect(answer.pid).toBe(process.pid);
    expect(answer.memory.rssBytes).toBeGreaterThan(1e7);
    expect(answer.actors.total).toBe(b.system.size);
    if (process.platform === 'linux') {
      expect(answer.openFiles).toBeGreaterThan(3);
      expect(answer.udp.sockets.filter(({ address }) => address === '127.0.0.1').length).toBeGreaterThanOrEqual(2);
    }
  });

  describe('requests about rooms', () => {
    test('finds the rooms of all nodes with their peers, whichever node is asked', async () => {
      const { room } = await b.rooms.createRoom({
        ...defaultRoomConfig,
        roomId: 'kitchen',
        webhookUrl: 'http://u:p@h/x?k=1',
      });
      const ann = await joinRoom(b, room.id);
      ann.act({
        type: 'publish',
        tracks: [{ trackId: 't1', kind: 'video', codec: 'vp8', metadata: null, encodings: [], disabledEncodings: [] }],
      });
      await until(() => (b.host.views()[0]?.peers[0]?.tracks.length ?? 0) === 1);

      const list = (await ask('rooms', {})).answer;
      expect(list.rooms).toEqual([{ id: 'kitchen', node: b.name, peers: 1, connected: 1, components: {}, tracks: 1 }]);
      expect((await ask('rooms', { scope: 'node' })).answer.total).toBe(0);
      expect((await ask('rooms', { match: 'hall*' })).answer.total).toBe(0);

      const { node, answer } = await ask('room', { room: 'kitchen' });
      expect(node).toBe(b.name);
      expect(answer.peerList).toMatchObject([{ id: ann.id, name: 'Ann', status: 'connected', tracks: [{ id: 't1' }] }]);
      expect(JSON.stringify(answer)).not.toContain('u:p');
      const peer = (await ask('peer', { room: 'kitchen', peer: ann.id, sampleMs: 100 })).answer;
      expect(peer).toMatchObject({
        status: 'connected',
        name: 'Ann',
        metadata: { name: 'Ann', token: '********' },
        transport: { ice: 'new', dtls: 'new', usedBps: 0 },
      });
      const media = (await ask('media', { room: 'kitchen' })).answer;
      expect(media.peerList).toEqual([
        { id: ann.id, name: 'Ann', local: peer.transport?.local, worker: 0, why: 'is the only one' },
      ]);
      expect(media).toMatchObject({
        node: b.name,
        workers: [{ worker: 0, transports: 1, rooms: 1 }],
        packetsCrossed: 0,
      });
      expect(peer).not.toHaveProperty('permissions');
      await b.rooms.updatePeer('kitchen', ann.id, {
        metadata: { name: 'Anna' },
        permissions: { publish: ['video'] },
      });
      await b.rooms.muteTrack('kitchen', { peerId: ann.id, trackId: 't1', muted: true });
      expect((await ask('peer', { room: 'kitchen', peer: ann.id, sampleMs: 100 })).answer).toMatchObject({
        name: 'Anna',
        permissions: { publish: ['video'], subscribe: true, metadata: true },
      });
      expect((await ask('room', { room: 'kitchen' })).answer.peerList).toMatchObject([
        { name: 'Anna', tracks: [{ id: 't1', muted: true }] },
      ]);
      expect(await refusal(ask('peer', { room: 'kitchen', peer: 'nobody' }))).toEqual([
        'UNKNOWN_PEER',
        'the room kitchen has no peer nobody',
      ]);
      expect((await refusal(ask('room', { room: 'hall' })))[0]).toBe('UNKNOWN_ROOM');
      expect((await refusal(ask('media', { room: 'hall' })))[0]).toBe('UNKNOWN_ROOM');
      expect((await refusal(ask('component', { room: 'kitchen', component: 'c' })))[0]).toBe('UNKNOWN_COMPONENT');
      expect((await ask('components', {})).answer).toMatchObject({ total: 0, components: [] });

      const states = await Promise.all(
        b.system
          .list({ limit: 1_000 })
          .map(({ ref }) => ask('state', { id: ref.key, depth: 10, bytes: 65_536 }, b.name)),
      );
      const everything = JSON.stringify([list, answer, peer, states]);
      for (const secret of [COOKIE, SECRET, ann.token, 'a token in the metadata']) {
        expect(everything).not.toContain(secret);
      }
      await b.rooms.deleteRoom('kitchen');
    });

    test("explains a room's placement on the node that decided it", async () => {
      const { room } = await b.registry.createRoom({ ...defaultRoomConfig, roomId: 'attic' });
      const { answer } = await ask('placement-explain', { room: room.id });
      expect(answer).toMatchObject({ room: 'attic', asked: b.name, policy: 'least-loaded', conflicts: [] });
      expect(answer.nodes.map(({ node }) => node).toSorted()).toEqual([a.name, b.name]);
      expect(answer.nodes.map(({ verdict }) => verdict)).toContain('chosen');
      expect((await refusal(ask('placement-explain', { room: 'cellar' })))[0]).toBe('UNKNOWN_DECISION');

      const next = (await ask('placement-dry-run', {})).answer;
      expect(next.chosen).toBe(answer.chosen === a.name ? b.name : a.name);
      const load = (await ask('load', {})).answer;
      expect(load.nodes.map(({ rooms }) => rooms).toSorted()).toEqual([0, 1]);
      expect(a.host.load().rooms + b.host.load().rooms).toBe(1);
      await b.rooms.deleteRoom('attic');
    });
  });

  test('moves a room from wherever it is to the node that is named, and explains that', async () => {
    await a.host.createRoom({ ...defaultRoomConfig, roomId: 'porch' });
    const order = { room: 'porch', to: b.name };
    expect(await refusal(ask('room-move', order))).toEqual(['NOT_SUPPORTED', 'This node is not part of a cluster']);
    await expect(ask('drain', { moveMs: 30_000 })).rejects.toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(a.host.draining).toBe(false);
    for (const { host, registry } of [a, b]) host.drainOrder.moveThrough(registry.departures);
    expect(await refusal(ask('room-move', { room: 'cellar' }))).toEqual([
      'UNKNOWN_ROOM',
      `${a.name} has no room cellar`,
    ]);
    expect(await refusal(ask('room-move', { room: 'porch', to: 'z@127.0.0.1' }))).toEqual([
      'UNKNOWN_NODE',
      `no member is called "z@127.0.0.1"; the members are: ${a.name}, ${b.name}`,
    ]);

    const moved = { room: 'porch', from: a.name, to: b.name, reason: null, ms: expect.any(Number) };
    expect((await ask('room-move', order)).answer).toEqual(moved);
    expect(a.log.recent.last().find(({ event }) => event === 'room.move_ordered')?.fields).toMatchObject({
      by: tool.name,
    });
    const stays = { ...moved, from: b.name, to: null, reason: `it is on ${b.name} already`, ms: 0 };
    expect((await ask('room-move', order)).answer).toEqual(stays);
    expect((await ask('room-move', { room: 'porch', to: 'b' })).answer).toEqual(stays);
    // The latest decision counts, whichever node made it.
    expect((await ask('placement-explain', { room: 'porch' })).answer).toMatchObject({
      asked: a.name,
      chosen: b.name,
      policy: 'ordered',
      nodes: [
        { node: a.name, verdict: 'not ordered' },
        { node: b.name, verdict: 'chosen' },
      ],
    });
    await b.rooms.deleteRoom('porch');
  });

  test('denies no room that an order to move cannot reach', async () => {
    for (const { host, registry } of [a, b]) host.drainOrder.moveThrough(registry.departures);
    await a.host.createRoom({ ...defaultRoomConfig, roomId: 'attic' });
    const never = new Promise<never>(() => {});
    const carry = { offer: async () => null, given: () => never, over: () => undefined };
    expect(await a.host.giveRoom('attic', carry)).toBeNull();
    expect((await ask('room-move', { room: 'attic' })).answer).toMatchObject({
      to: null,
      reason: 'it is moving already',
    });

    const c = await startMember('c', mapper, { seeds: [a.name, b.name], mode: 'off' });
    await c.host.createRoom({ ...defaultRoomConfig, roomId: 'cellar' });
    await until(() => a.registry.directory.find('cellar') !== undefined);
    const closed = `${c.name} does not answer tools: JF_INSPECTION=off, or an older version`;
    expect(await refusal(ask('room-move', { room: 'cellar' }))).toEqual(['NOT_SUPPORTED', closed]);
    a.node.cut(c.name, 60_000);
    await until(() => a.registry.directory.find('cellar')?.reachable === false);
    const lost = `Room cellar is on ${c.name}, which is currently unreachable`;
    expect(await refusal(ask('room-move', { room: 'cellar' }))).toEqual(['TIMEOUT', lost]);
    await c.stop();
    await until(() => b.node.nodes('members').length === 1);
  });

  test('accepts no rooms on a drained node until its time has passed', async () => {
    const { answer } = await ask('drain', { deadlineMs: 1_500 }, b.name);
    expect(answer).toMatchObject({ rooms: 0, peers: 0, roomIds: [] });
    expect(b.host.draining).toBe(true);
    const nodes = (await ask('nodes', {})).answer.nodes;
    expect(nodes.find(({ name }) => name === b.name)).toMatchObject({ state: 'draining', drain: { rooms: 0 } });
    expect((await ask('placement-dry-run', {})).answer.chosen).toBe(a.name);
    await until(() => !b.host.draining);

    await ask('drain', {}, b.name);
    expect((await ask('faults', {}, b.name)).answer.faults).toMatchObject([{ kind: 'drain', until: null }]);
    expect((await ask('undrain', {}, b.name)).answer.wasDraining).toBe(true);
    expect(b.host.draining).toBe(false);
    b.host.drain('starting');
    expect((await ask('undrain', {}, b.name)).answer).toEqual({ wasDraining: false, draining: true });
    b.host.undrain('starting');
    expect(b.node.events.last(4).map(({ event }) => event)).toEqual(['draining', 'undrained', 'draining', 'undrained']);
  });

  test('reads the log and raises its level for a while', async () => {
    b.log.debug('too.quiet');
    b.log.warn('kettle.boils', { room: 'Kitchen', cookie: COOKIE, note: `x ${SECRET}` });
    const { lines } = (await ask('logs', { match: 'KETTLE', level: 'warning' }, b.name)).answer;
    expect(lines).toMatchObject([
      { node: b.name, level: 'warning', event: 'kettle.boils', fields: { room: 'Kitchen' } },
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/cookie that|secret key/);
    expect((await ask('logs', { match: 'too.quiet' }, b.name)).answer.lines).toEqual([]);

    expect((await ask('log-level', { level: 'debug', forMs: 60_000 }, b.name)).answer.before).toBe('info');
    expect((await ask('log-level', { level: 'error', forMs: 1_000 }, b.name)).answer.before).toBe('info');
    expect(b.log.level).toBe('error');
    await until(() => b.log.level === 'info');
  });

  test('answers as many simultaneous requests as a node allows, and refuses the others as busy', async () => {
    const code = ({ code: why }: InspectionError): string => why;
    const asked = Array.from({ length: 80 }, () => tool.client.ask('actors', { sampleMs: 200 }).catch(code));
    expect((await Promise.all(asked)).filter((answer) => answer === 'BUSY')).toHaveLength(16);
    await ask('hello', {});
  });

  test('refuses what it cannot answer with a reason', async () => {
    expect(await refusal(ask('actors', { limit: 0 }))).toEqual(['BAD_REQUEST', expect.stringContaining('limit')]);
    expect((await refusal(ask('node', {}, 'z@127.0.0.1')))[0]).toBe('UNKNOWN_NODE');
    expect((await refusal(ask('link-cut', { to: 'z@127.0.0.1', forMs: 1_000 })))[0]).toBe('UNKNOWN_NODE');
    expect(await refusal(tool.client.ask('fly' as 'node', {}))).toEqual([
      'NOT_SUPPORTED',
      expect.stringContaining('fly'),
    ]);
  });
});
