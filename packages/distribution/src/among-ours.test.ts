import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { atom, tuple } from '@bloom/etf';
import { silentLog } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import { PortMapperServer, Registration } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { startMapper } from './testing/erlang.js';
import { DistributionNode } from './index.js';
import { TestNode } from './testing/test-node.js';

const cleanUps: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

async function mapper(): Promise<number> {
  const started = await startMapper('ours');
  cleanUps.push(() => started.stop());
  return started.port;
}

async function start(
  name: string,
  port: number,
  options: Parameters<typeof TestNode.start>[2] = {},
): Promise<TestNode> {
  const test = await TestNode.start(`${name}@127.0.0.1`, port, { announceForeign: false, ...options });
  cleanUps.push(() => test.stop());
  return test;
}

/** Checks that events about a node strictly alternate and that the last one matches the current state. */
function expectAlternating(nodes: readonly TestNode[]): void {
  for (const { events, node } of nodes) {
    const state = new Map<string, 'up' | 'down'>();
    for (const event of events) {
      const what = 'up' in event ? 'up' : 'down';
      const about = 'up' in event ? event.up : event.down;
      expect(state.get(about)).not.toBe(what);
      state.set(about, what);
    }
    const up = [...state].filter(([, what]) => what === 'up').map(([about]) => about);
    expect(up.toSorted()).toEqual(node.nodes('members').toSorted());
  }
}

describe('nodes of ours', () => {
  test('forms a full mesh of twenty nodes that join one seed at once, without a superfluous connection', async () => {
    const port = await mapper();
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => start(`n${String(i).padStart(2, '0')}`, port)));
    for (const { node } of all.slice(1)) node.seed(['n00@127.0.0.1']);
    await until(() => all.every(({ node }) => node.nodes().length === 19));
    expectAlternating(all);
    expect(all.map(({ events }) => events.length)).toEqual(all.map(() => 19));
  }, 20_000);

  test('connects nodes that know each other from their configuration, whichever dials first', async () => {
    const port = await mapper();
    const all = await Promise.all(['a', 'b', 'c', 'd'].map((name) => start(name, port)));
    for (const { node } of all) node.seed(all.map((other) => other.node.name));
    await until(() => all.every(({ node }) => node.nodes().length === 3));
    expectAlternating(all);
  });

  test('finds a node under the second address of its host when it does not listen on the first', async () => {
    const port = await mapper();
    const a = await start('a', port);
    const b = await start('b', port, { resolve: async () => ['::1', '127.0.0.1'] });
    await b.node.connect(a.node.name);
    expect(b.node.nodes('connected')).toEqual([a.node.name]);
  });

  test('reports the failure of the first address when no address of a host leads to a node', async () => {
    const port = await mapper();
    const b = await start('b', port, { resolve: async () => ['127.0.0.1', '::1'] });
    await expect(b.node.connect('a@127.0.0.1')).rejects.toMatchObject({ code: 'NODE_NOT_REGISTERED' });
    const c = await start('c', port, { resolve: async () => [] });
    await expect(c.node.connect('a@127.0.0.1')).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
  });

  test('lets in another node that it cannot find itself', async () => {
    const port = await mapper();
    const a = await start('a', port);
    const z = await start('z', port, { resolve: () => new Promise(() => {}) });
    z.node.seed([a.node.name]);
    const from = performance.now();
    await a.node.connect(z.node.name);
    expect(performance.now() - from).toBeLessThan(5_000);
    await until(() => [a, z].every(({ node }) => node.nodes().length === 1));
  });

  test('heals the mesh when every node is restarted in turn', async () => {
    const port = await mapper();
    const names = ['a', 'b', 'c', 'd'];
    const seeds = names.map((name) => `${name}@127.0.0.1`);
    const all = await Promise.all(names.map((name) => start(name, port)));
    for (const { node } of all) node.seed(seeds);
    await until(() => all.every(({ node }) => node.nodes().length === 3));
    for (let i = 0; i < names.length; i++) {
      await (all[i] as TestNode).stop();
      const others = all.filter((_, j) => j !== i);
      await until(() => others.every(({ node }) => node.nodes().length === 2));
      for (const { events } of others) expect(events.at(-1)).toMatchObject({ down: seeds[i], reason: 'leave' });
      all[i] = await start(names[i] as string, port);
      (all[i] as TestNode).node.seed(seeds);
      await until(() => all.every(({ node }) => node.nodes().length === 3));
      expectAlternating(all);
    }
  }, 30_000);

  test('heals the mesh after a partition without a duplicate or missing event', async () => {
    const west = await mapper();
    const east = await mapper();
    const all = await Promise.all([start('a', west), start('b', west), start('c', east), start('d', east)]);
    const proxies = await Promise.all(all.map((test, i) => proxy(test.node, i < 2 ? east : west)));
    for (const { node } of all) node.seed(all.map((other) => other.node.name));
    await until(() => all.every(({ node }) => node.nodes().length === 3));
    for (let round = 0; round < 2; round++) {
      for (const cut of proxies) cut.sever();
      await until(() => all.every(({ node }) => node.nodes().length === 1));
      // Each side has tried to reach the other again, in vain.
      await until(() => proxies.every(({ refused }) => refused > 0));
      for (const cut of proxies) cut.heal();
      await until(() => all.every(({ node }) => node.nodes().length === 3), 15_000);
      expectAlternating(all);
    }
    for (const { events } of all) expect(events).toHaveLength(3 + 2 * 2 * 2);
  }, 60_000);

  test('never announces a tool to a member', async () => {
    const port = await mapper();
    const [a, b] = [await start('a', port), await start('b', port)] as const;
    a.node.seed(['b@127.0.0.1']);
    await until(() => b.node.nodes().length === 1);
    const tool = await start('ctl', port, { tool: true, listen: false });
    expect(await tool.call({ node: 'a@127.0.0.1', name: 'calc' }, tuple(atom('add'), 2, 3))).toEqual({ reply: 5 });
    await until(() => a.node.kindOf('ctl@127.0.0.1') === 'tool');
    expect(a.node.nodes()).toEqual(['b@127.0.0.1']);
    expect(a.node.nodes('connected').toSorted()).toEqual(['b@127.0.0.1', 'ctl@127.0.0.1']);
    expect(tool.node.port).toBe(0);
    await tool.stop();
    await until(() => a.node.nodes('connected').length === 1);
    expect(a.events).toEqual([expect.objectContaining({ up: 'b@127.0.0.1' })]);
  });

  test('keeps the order of messages, and calls, monitors, links and spawns across nodes', async () => {
    const port = await mapper();
    const [a, b] = [await start('a', port), await start('b', port)] as const;
    await a.node.connect(b.node.name);
    const inbox = b.process('inbox');
    const own = a.process();
    for (let i = 0; i < 5_000; i++)
      a.node.send({ node: b.node.name, name: 'inbox' }, { n: i, text: `message ${i}` }, { from: own.pid });
    await until(() => inbox.messages.length === 5_000);
    expect(inbox.messages.map((message) => (message as { n: number }).n)).toEqual(
      Array.from({ length: 5_000 }, (_, i) => i),
    );

    expect(await a.call({ node: b.node.name, name: 'calc' }, tuple(atom('echo'), { deep: [1, { x: null }] }))).toEqual({
      reply: { deep: [1, { x: null }] },
    });
    expect(await a.call({ node: b.node.name, name: 'nosuch' }, 1)).toEqual({ down: atom('noproc') });
    expect(await a.erpcCall(b.node.name, ['calc', 'add'], [1, 2])).toEqual(tuple(atom('return'), 3));
    expect(await a.monitor({ name: 'nosuch', node: b.node.name })).toEqual({ down: atom('noproc') });

    a.node.link(own.pid, inbox.pid);
    const other = b.process();
    a.node.link(own.pid, other.pid);
    a.node.unlink(own.pid, other.pid);
    await a.node.ping(b.node.name);
    b.end(other.pid, 'unseen');
    b.end(inbox.pid, tuple(atom('shutdown'), 'done'));
    await until(() => own.exits.length === 1);
    expect(own.exits).toEqual([{ from: inbox.pid, reason: tuple(atom('shutdown'), 'done'), linked: true }]);
  });

  test('fires monitors and links once when the connection is lost', async () => {
    const port = await mapper();
    const [a, b] = [await start('a', port), await start('b', port)] as const;
    await a.node.connect(b.node.name);
    const [here, there] = [a.process(), b.process('there')];
    const watching = a.monitor(there.pid);
    const named = a.monitor({ name: 'there', node: b.node.name });
    a.node.link(here.pid, there.pid);
    b.node.link(there.pid, here.pid);
    await a.node.ping(b.node.name);
    a.node.disconnect(b.node.name);
    expect(await watching).toEqual({ down: atom('noconnection') });
    expect(await named).toEqual({ down: atom('noconnection') });
    await until(() => there.exits.length === 1);
    expect(here.exits).toMatchObject([{ reason: atom('noconnection'), linked: true }]);
    await expect(a.monitor(there.pid)).resolves.toEqual({ down: atom('noconnection') });
    expect(a.node.send(there.pid, 1, { from: here.pid })).toBe('no_connection');
    // A second exit would arrive before an answer over a new connection.
    await a.node.connect(b.node.name);
    await a.node.ping(b.node.name);
    expect(here.exits).toHaveLength(1);
    expect(there.exits).toHaveLength(1);
  });

  test('does not connect nodes with different cookies, and counts the failure', async () => {
    const port = await mapper();
    const a = await start('a', port);
    const b = await start('b', port, { cookie: 'another' });
    await expect(b.node.connect(a.node.name)).rejects.toMatchObject({ code: 'HANDSHAKE_FAILED', reason: 'closed' });
    expect(a.node.counters.handshakes).toEqual({ bad_cookie: 1 });
    expect(b.node.nodes('connected')).toEqual([]);
  });

  test('survives a handler that throws', async () => {
    const port = await mapper();
    const lines: string[] = [];
    const log = { ...silentLog, error: (event: string) => void lines.push(event) };
    const [a, b] = [await start('a', port, { log }), await start('b', port)] as const;
    const clumsy = a.process('clumsy');
    clumsy.onMessage = () => {
      throw new Error('oops');
    };
    await b.node.connect(a.node.name);
    b.node.send({ node: a.node.name, name: 'clumsy' }, 1, { from: b.process().pid });
    expect(await b.call({ node: a.node.name, name: 'calc' }, tuple(atom('add'), 1, 1))).toEqual({ reply: 2 });
    expect(lines).toEqual(['distribution.handler_failed']);
  });

  test('reports down before up for a connection that replaces one of an earlier lifetime', async () => {
    const port = await mapper();
    const a = await start('a', port);
    const first = await start('b', port);
    await first.node.connect(a.node.name);
    await until(() => a.events.length === 1);
    const second = await TestNode.start('b@127.0.0.1', port, { listen: false });
    cleanUps.push(() => second.stop());
    await second.node.connect(a.node.name);
    await until(() => a.events.length === 3);
    expect(a.events).toMatchObject([
      { up: 'b@127.0.0.1', creation: first.node.creation },
      { down: 'b@127.0.0.1', reason: 'replaced' },
      { up: 'b@127.0.0.1', creation: second.node.creation },
    ]);
  });
});

describe('starting a node', () => {
  test('takes the first free port of a range and fails when there is none', async () => {
    const port = await mapper();
    const minPort = await freeTcpPort();
    const a = await start('a', port, { listen: { minPort, maxPort: minPort + 3 } });
    expect(a.node.port).toBe(minPort);
    await expect(start('b', port, { listen: { minPort } })).rejects.toMatchObject({ code: 'CANNOT_LISTEN' });
    expect((await start('c', port, { listen: { minPort, maxPort: minPort + 3 } })).node.port).toBeGreaterThan(minPort);
  });

  test('fails on a bad name, on the wrong kind of name, and on a name in use', async () => {
    const port = await mapper();
    const options = { cookie: 'c', mapper: { port }, log: silentLog } as const;
    await expect(DistributionNode.start({ ...options, name: 'a', mode: 'name' })).rejects.toMatchObject({
      code: 'BAD_NODE_NAME',
    });
    await expect(DistributionNode.start({ ...options, name: 'a b@h', mode: 'sname' })).rejects.toMatchObject({
      code: 'BAD_NODE_NAME',
    });
    await expect(DistributionNode.start({ ...options, name: 'a@h', mode: 'name' })).rejects.toThrow(
      'a@h has a short host name',
    );
    await expect(DistributionNode.start({ ...options, name: 'a@h.x', mode: 'sname' })).rejects.toThrow(
      'a@h.x has a long host name',
    );
    await start('a', port);
    await expect(start('a', port)).rejects.toMatchObject({ code: 'NAME_IN_USE' });
    await expect(
      DistributionNode.start({ ...options, name: 'z@127.0.0.1', mode: 'name', mapper: { port: await freeTcpPort() } }),
    ).rejects.toMatchObject({
      code: 'PORT_MAPPER_UNREACHABLE',
    });
  });

  test('warns of a short cookie that other machines can try, and never logs it', async () => {
    const port = await mapper();
    const lines: string[] = [];
    const log = {
      ...silentLog,
      warn: (event: string, fields?: object) => void lines.push(`${event} ${JSON.stringify(fields)}`),
    };
    await start('a', port, { log, listen: { address: '0.0.0.0' }, cookie: 'hush' });
    await start('b', port, { log, listen: { address: '0.0.0.0' }, cookie: 'x'.repeat(20) });
    await start('c', port, { log, cookie: 'hush' });
    expect(lines).toEqual(['distribution.weak_cookie {"address":"0.0.0.0","atLeast":20}']);
  });

  test('dials short names from a node with a short name', async () => {
    const port = await mapper();
    const resolve = async (): Promise<string[]> => ['127.0.0.1'];
    const nodes: TestNode[] = [];
    for (const name of ['a@one', 'b@two']) {
      const node = await TestNode.start(name, port, { mode: 'sname', resolve });
      cleanUps.push(() => node.stop());
      nodes.push(node);
    }
    expect(await (nodes[0] as TestNode).node.ping('b@two')).toBe(true);
    await expect((nodes[0] as TestNode).node.connect('b@two.example')).rejects.toMatchObject({
      code: 'NAME_KIND_MISMATCH',
    });
    const lost = nodes[0] as TestNode;
    await expect(
      TestNode.start('c@three', port, { mode: 'sname', resolve: () => Promise.reject(new Error('ENOTFOUND')) }).then(
        async (c) => {
          cleanUps.push(() => c.stop());
          await c.node.connect(lost.node.name);
        },
      ),
    ).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
  });
});

describe('strangers without the cookie', () => {
  test('drops silent strangers, the oldest first, who never keep a node out', async () => {
    const port = await mapper();
    const a = await start('a', port, { limits: { maxPending: 3, stepTimeoutMs: 1_500 } });
    const sockets: Socket[] = [];
    for (let i = 0; i < 5; i++) sockets.push(await dialTcp(a.node.port));
    await until(() => sockets.filter((socket) => socket.destroyed).length >= 2);
    expect(sockets.slice(0, 2).every((socket) => socket.destroyed)).toBe(true);
    const b = await start('b', port);
    expect(await b.node.ping(a.node.name)).toBe(true);
    await until(() => sockets.every((socket) => socket.destroyed), 10_000);
    expect(a.node.counters.handshakes.timeout).toBeGreaterThan(0);
  });

  test('drops strangers above the rate immediately', async () => {
    const port = await mapper();
    const a = await start('a', port, { limits: { maxAcceptsPerSecond: 2 } });
    const sockets = await Promise.all(Array.from({ length: 10 }, () => dialTcp(a.node.port)));
    await until(() => (a.node.counters.handshakes.rate ?? 0) >= 6);
    for (const socket of sockets) socket.destroy();
  });

  test('disconnects strangers that send garbage without harm to the node', async () => {
    const port = await mapper();
    const a = await start('a', port, { limits: { maxAcceptsPerSecond: 1_000 } });
    for (let i = 0; i < 50; i++) {
      const socket = await dialTcp(a.node.port);
      socket.write(Buffer.from(Array.from({ length: 200 }, (_, j) => (i * 31 + j * 17) & 255)));
      if (i % 2 === 0) socket.destroy();
      else socket.end();
    }
    const b = await start('b', port);
    expect(await b.node.ping(a.node.name)).toBe(true);
  });
});

test('notices a lost port mapper, while calls keep working', async () => {
  const mapperPort = await freeTcpPort();
  const first = await PortMapperServer.open({ port: mapperPort, log: silentLog });
  const revived: PortMapperServer[] = [];
  const revive = async (): Promise<void> => {
    await PortMapperServer.open({ port: mapperPort, log: silentLog }).then(
      (server) => revived.push(server),
      () => {},
    );
  };
  cleanUps.push(() => Promise.all(revived.map((server) => server.close())));
  const [a, b] = [
    await start('a', mapperPort, { mapper: { port: mapperPort, revive } }),
    await start('b', mapperPort, { mapper: { port: mapperPort, revive } }),
  ] as const;
  await a.node.connect(b.node.name);
  await first.close();
  await until(() => !a.node.registered && !b.node.registered);
  expect(await a.call({ node: b.node.name, name: 'calc' }, tuple(atom('add'), 1, 2))).toEqual({ reply: 3 });
  const took = await until(() => a.node.registered && b.node.registered);
  expect(took).toBeLessThan(2_500);
  expect(revived).toHaveLength(1);
});

interface Cut {
  /** Number of connections refused since it was severed. */
  readonly refused: number;
  sever(): void;
  heal(): void;
}

/** Creates a proxy between a node and the nodes that use the other port mapper. */
async function proxy(node: DistributionNode, otherMapper: number): Promise<Cut> {
  const sockets = new Set<Socket>();
  let severed = false;
  let refused = 0;
  const server: Server = createServer((from) => {
    if (severed) {
      refused += 1;
      from.destroy();
      return;
    }
    const to = connect(node.port, '127.0.0.1');
    for (const [socket, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const registration = await Registration.open({
    mapper: { host: '127.0.0.1', port: otherMapper },
    name: node.name.split('@')[0] as string,
    port: (server.address() as { port: number }).port,
    hidden: true,
    log: silentLog,
  });
  const sever = (): void => {
    severed = true;
    refused = 0;
    for (const socket of sockets) socket.destroy();
  };
  cleanUps.push(async () => {
    registration.close();
    sever();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    get refused() {
      return refused;
    },
    sever,
    heal: () => {
      severed = false;
    },
  };
}

async function dialTcp(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {}).resume();
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}
