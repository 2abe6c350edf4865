import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { freeTcpPort } from '@bloom/net/testing';
import { codePoint, fuzzRuns, ManualClock, until } from '@bloom/time/testing';
import fc from 'fast-check';
import { Conversation } from './conversation.js';
import { ensureMapper, lookUp, names, PortMapperServer, Registration } from './index.js';
import {
  alive2Request,
  namesRequest,
  NODE_TYPE,
  parseAlive2Reply,
  parseNamesReply,
  parsePort2Reply,
  parseRequest,
  portPlease2Request,
} from './protocol.js';
import { MAX_RELEASED, Registry } from './registry.js';
import { say } from './testing/sockets.js';

const RUNS = fuzzRuns(2_000);

const entry = (name: string) => ({
  name,
  port: 9_000,
  nodeType: 72,
  protocol: 0,
  highest: 6,
  lowest: 6,
  extra: Buffer.alloc(0),
});
const options = { port: 0, log: silentLog };
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function start(changes: Partial<Parameters<typeof PortMapperServer.open>[0]> = {}): Promise<PortMapperServer> {
  const server = await PortMapperServer.open({ ...options, ...changes });
  closers.push(() => server.close());
  return server;
}

async function register(port: number, name: string, changes: Partial<Parameters<typeof Registration.open>[0]> = {}) {
  const registration = await Registration.open({
    mapper: { host: '127.0.0.1', port },
    name,
    port: 9_000,
    hidden: true,
    log: silentLog,
    random: () => 0,
    ...changes,
  });
  closers.push(() => registration.close());
  return registration;
}

test('gives up in time on a silent program that holds the port', async () => {
  const mute = createServer(() => {});
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  closers.push(() => mute.close());
  const { port } = mute.address() as { port: number };
  const from = performance.now();
  const mapper = { program: '/dev/null', port, timeoutMs: 500 };
  await expect(ensureMapper(mapper)).rejects.toMatchObject({ code: 'PORT_MAPPER_UNREACHABLE' });
  expect(performance.now() - from).toBeLessThan(6_000);
}, 30_000);

describe('the server', () => {
  test('closes connections that stay silent, and keeps registered ones', async () => {
    // The time must suffice for a registration even on a busy machine.
    const server = await start({ idleMs: 1_500 });
    const node = await register(server.port, 'quiet');
    const silent = await Promise.all([say(server.port, []), say(server.port, [Buffer.from([0])])]);
    expect(silent.map(({ closed }) => closed)).toEqual([true, true]);
    expect(node.registered).toBe(true);
    expect(server.size).toBe(1);
  });

  test('closes connections above its limit', async () => {
    const { port } = await start({ maxConnections: 2 });
    await register(port, 'a');
    await register(port, 'b');
    expect(await say(port, [namesRequest()])).toMatchObject({ closed: true, bytes: Buffer.alloc(0) });
  });

  test('stops nodes and exits on request in relaxed mode', async () => {
    const server = await start({ relaxed: true });
    const node = await register(server.port, 'victim', { clock: new ManualClock() });
    const stop = (name: string) =>
      say(server.port, [Buffer.concat([Buffer.from([0, name.length + 1]), Buffer.from(`s${name}`)])]);
    expect(String((await stop('nobody')).bytes)).toBe('NOEXIST');
    expect(String((await stop('victim')).bytes)).toBe('STOPPED');
    await until(() => !node.registered);
    await register(server.port, 'other', { clock: new ManualClock() });
    expect(String((await say(server.port, [Buffer.from([0, 1, 107])])).bytes)).toBe('OK');
    await server.closed;
  });

  test('listens on loopback of both families and on the given addresses', async () => {
    const { port } = await start({ addresses: ['0.0.0.0'] });
    expect((await names({ host: '127.0.0.2', port })).mapperPort).toBe(port);
    const second = await start();
    await expect(names({ host: '127.0.0.2', port: second.port })).rejects.toMatchObject({
      code: 'PORT_MAPPER_UNREACHABLE',
    });
  });

  test('refuses local-only requests from other machines without sending a byte', () => {
    const registry = new Registry(1_000, () => 0.5);
    const stranger = () => new Conversation(registry, { connection: 1, local: false, port: 4369 }, true);
    for (const request of [
      alive2Request(entry('x')),
      Buffer.from([0, 1, 100]),
      Buffer.from([0, 1, 107]),
      Buffer.from([0, 2, 115, 120]),
    ]) {
      expect(stranger().data(request)).toEqual({ close: true });
    }
    expect(stranger().data(namesRequest()).reply).toHaveLength(4);
    expect(stranger().data(portPlease2Request('x')).reply?.toString('hex')).toBe('7701');
    expect(registry.size).toBe(0);
  });

  test('refuses a registration with fewer extra bytes than its length field declares', () => {
    const registry = new Registry(1_000, () => 0.5);
    const request = alive2Request({ ...entry('x'), extra: Buffer.alloc(0) });
    request.writeUInt16BE(5, request.length - 2);
    const conversation = new Conversation(registry, { connection: 1, local: true, port: 4369 }, true);
    expect(conversation.data(request)).toEqual({ close: true });
    expect(registry.size).toBe(0);
  });

  test('distinguishes a running mapper from another program on its port', async () => {
    const { port } = await start();
    await expect(PortMapperServer.open({ ...options, port })).rejects.toMatchObject({ code: 'PORT_MAPPER_RUNNING' });
    const other = createServer((socket) => socket.resume().end('HTTP/1.1 400 Bad Request'));
    const taken = await listening(other);
    await expect(PortMapperServer.open({ ...options, port: taken })).rejects.toMatchObject({ code: 'PORT_TAKEN' });
  });

  test('keeps answering lookups when every name is taken', async () => {
    const { port } = await start({ maxConnections: 8 });
    for (let i = 0; i < 7; i++) await register(port, `n${i}`);
    await expect(register(port, 'late')).rejects.toMatchObject({ code: 'PORT_MAPPER_PROTOCOL' });
    expect(await lookUp({ host: '127.0.0.1', port }, 'n0')).toMatchObject({
      name: 'n0',
      port: 9_000,
      nodeType: NODE_TYPE.hidden,
    });
    expect((await names({ host: '127.0.0.1', port })).nodes).toHaveLength(7);
  });

  test.each(['a\nname b at port 1', 'tab\there', 'del\u007f', 'nel\u0085', 'line\u2028'])(
    'refuses the name %j, which would forge lines of the listing',
    async (text) => {
      const { port } = await start();
      await expect(register(port, text)).rejects.toMatchObject({ code: 'NAME_IN_USE' });
      expect((await names({ host: '127.0.0.1', port })).nodes).toEqual([]);
    },
  );

  test('answers any bytes in any pieces or ends the connection, and leaves no name behind', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.uint8Array({ maxLength: 60 }), goodRequest, halfGood), { maxLength: 5 }),
        fc.boolean(),
        (pieces, relaxed) => {
          const registry = new Registry(1_000, () => 0.5);
          const conversation = new Conversation(registry, { connection: 1, local: true, port: 4369 }, relaxed);
          for (const piece of pieces) if (conversation.data(Buffer.from(piece)).close) break;
          conversation.end();
          expect(registry.size).toBe(0);
        },
      ),
      { numRuns: RUNS },
    );
  });
});

const name = fc.string({ unit: codePoint(fc), maxLength: 20 });
const goodRequest = fc.oneof(
  name.map((text) => alive2Request(entry(text))),
  name.map(portPlease2Request),
  fc.constantFrom(110, 100, 107, 115).map((tag) => Buffer.from([0, 1, tag])),
);
const halfGood = fc.tuple(goodRequest, fc.nat(), fc.nat(255)).map(([request, at, value]) => {
  const bytes = Buffer.from(request);
  bytes[at % bytes.length] = value;
  return bytes;
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as { port: number }).port;
}

describe('the registry', () => {
  test('never assigns the creations of old nodes, and wraps around them', () => {
    const registry = new Registry(1_000, () => 0.999_999_999_9);
    const seen: number[] = [];
    for (let i = 0; i < 6; i++) {
      seen.push(registry.register(entry('x'), i)?.creation as number);
      registry.release('x');
    }
    for (const creation of seen) expect(creation > 3 && creation < 0xffff_ffff).toBe(true);
    expect(new Set(seen).size).toBe(6);
  });

  test('forgets the oldest of many released names and holds a limited number', () => {
    const registry = new Registry(1_000, () => 0);
    for (let i = 0; i < MAX_RELEASED + 10; i++) {
      registry.register(entry(`n${i}`), i);
      registry.release(`n${i}`);
    }
    expect(registry.released()).toHaveLength(MAX_RELEASED);
    expect(registry.released()[0]?.[0]).toBe('n10');
    for (let i = 0; i < 1_000; i++) registry.register(entry(`m${i}`), i);
    expect(registry.full).toBe(true);
    expect(
      new Conversation(registry, { connection: 1, local: true, port: 1 }, false).data(alive2Request(entry('late'))),
    ).toEqual({ close: true });
  });
});

describe('the client', () => {
  test('reports a name that is in use', async () => {
    const { port } = await start();
    await register(port, 'one');
    await expect(register(port, 'one')).rejects.toMatchObject({ code: 'NAME_IN_USE' });
    expect(await names({ host: '127.0.0.1', port })).toEqual({
      mapperPort: port,
      nodes: [{ name: 'one', port: 9_000 }],
    });
  });

  test('reports a missing mapper, a foreign answer and a missing answer', async () => {
    const port = await freeTcpPort();
    await expect(names({ host: '127.0.0.1', port })).rejects.toMatchObject({ code: 'PORT_MAPPER_UNREACHABLE' });
    const foreign = await listening(createServer((socket) => socket.resume().end('hello')));
    await expect(lookUp({ host: '127.0.0.1', port: foreign }, 'x')).rejects.toThrow(
      'does not answer like a port mapper',
    );
    const silent = await listening(createServer((socket) => closers.push(() => socket.destroy())));
    await expect(lookUp({ host: '127.0.0.1', port: silent, timeoutMs: 20 }, 'x')).rejects.toThrow(
      'did not answer in time',
    );
  });

  test('registers the same name again after the mapper came back, and keeps its creation', async () => {
    const clock = new ManualClock();
    const first = await start();
    const node = await register(first.port, 'steady', { clock });
    const { creation } = node;
    await first.close();
    await until(() => !node.registered);
    clock.advance(399);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    expect(clock.pending).toBe(0);
    await until(() => clock.pending === 1);
    clock.advance(1_599);
    expect(clock.pending).toBe(1);
    const second = await start({ port: first.port });
    clock.advance(1);
    await until(() => node.registered);
    expect(node.creation).toBe(creation);
    expect(second.size).toBe(1);
    node.close();
    await until(() => second.size === 0);
  });

  test('restarts a mapper when nothing listens on its port', async () => {
    const clock = new ManualClock();
    const first = await start();
    const node = await register(first.port, 'phoenix', {
      clock,
      revive: async () => void (await start({ port: first.port })),
    });
    await first.close();
    await until(() => !node.registered);
    clock.advance(400);
    await until(() => node.registered);
    expect(await lookUp({ host: '127.0.0.1', port: first.port }, 'phoenix')).toBeDefined();
  });

  test('reads random replies as an answer, incomplete, or invalid', () => {
    const reply = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc.uint8Array({ maxLength: 60 }).map((rest) => new Uint8Array([119, 0, ...rest])),
    );
    fc.assert(
      fc.property(reply, (bytes) => {
        for (const parse of [parseAlive2Reply, parsePort2Reply, parseNamesReply, parseRequest])
          parse(Buffer.from(bytes));
      }),
      { numRuns: RUNS },
    );
  });
});
