import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { atom, encode, Pid, tuple } from '@bloom/etf';
import { silentLog } from '@bloom/log';
import { PortMapperServer, Registration } from '@bloom/port-mapper';
import { ManualClock, until } from '@bloom/time/testing';
import { FLAG, ownFlags } from './handshake/flags.js';
import { Acceptor, digest, framed, type Identity, nameMessage } from './handshake/handshake.js';
import { bindServer, Listener, portOf } from './handshake/listener.js';
import { COOKIE, TestNode } from './testing/test-node.js';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

async function mapper(): Promise<number> {
  const server = await PortMapperServer.open({ port: 0, log: silentLog });
  cleanUps.push(() => server.close());
  return server.port;
}

async function start(
  name: string,
  port: number,
  options: Parameters<typeof TestNode.start>[2] = {},
): Promise<TestNode> {
  const node = await TestNode.start(`${name}@127.0.0.1`, port, options);
  cleanUps.push(() => node.stop());
  return node;
}

const identity = (name: string): Identity => ({ name, creation: 99, flags: ownFlags(false) });

/** Connects from a loopback address and claims a name. */
async function claim(
  port: number,
  name: string,
  localAddress = '127.0.0.2',
): Promise<{ socket: Socket; heard: string }> {
  const socket = connect({ host: '127.0.0.1', port, localAddress }).on('error', () => {});
  cleanUps.push(() => socket.destroy());
  const claimed = { socket, heard: '' };
  socket.on('data', (bytes) => {
    claimed.heard += bytes.toString('latin1');
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write(framed(nameMessage(identity(name))));
  return claimed;
}

const nameless = (host: string): Identity => ({ name: host, creation: 0, flags: ownFlags(false) | FLAG.nameMe });

/** Asks for a name as `erl -sname undefined` does, and proves the cookie. Resolves with the name given. */
async function askName(port: number, identity = nameless('127.0.0.1')): Promise<{ socket: Socket; name: string }> {
  const socket = connect({ host: '127.0.0.1', port }).on('error', () => {});
  cleanUps.push(() => socket.destroy());
  let heard = Buffer.alloc(0);
  socket.on('data', (bytes) => {
    heard = Buffer.concat([heard, bytes]);
  });
  socket.write(framed(nameMessage(identity)));
  const messages = (): Buffer[] => {
    const found: Buffer[] = [];
    for (let at = 0; at + 2 <= heard.length; at += 2 + heard.readUInt16BE(at)) {
      const message = heard.subarray(at + 2, at + 2 + heard.readUInt16BE(at));
      if (message.length === heard.readUInt16BE(at)) found.push(message);
    }
    return found;
  };
  await until(() => messages().length >= 2 || socket.destroyed);
  const [status, challenge] = messages() as [Buffer, Buffer];
  const prefix = 'snamed:'.length;
  const name = status.toString('utf8', prefix + 2, prefix + 2 + status.readUInt16BE(prefix));
  const reply = Buffer.alloc(21, 7);
  reply[0] = 114;
  digest(COOKIE, challenge.readUInt32BE(9)).copy(reply, 5);
  socket.write(framed(reply));
  await until(() => messages().length >= 3);
  return { socket, name };
}

describe('nodes that ask for a name', () => {
  test('gives each a separate name of at most 23 characters, and makes none a member', async () => {
    const node = (await start('a', await mapper())).node;
    const { name: first, socket } = await askName(node.port);
    const { name: second } = await askName(node.port);
    expect(first).toMatch(/^[0-9A-Za-z_-]{1,23}@127\.0\.0\.1$/);
    expect(second).not.toBe(first);
    await until(() => node.nodes('hidden').length === 2);
    expect(node.kindOf(first)).toBe('foreign');

    const hello = tuple(atom('hello'), 1, atom(first), new Map(), [atom('evil@127.0.0.1')]);
    const control = tuple(6, new Pid(first, 1, 0, 4), atom(''), atom('bloom_mesh'));
    const before = node.linkCounters(first)?.framesIn ?? 0;
    const body = Buffer.concat([Buffer.of(112), encode(control), encode(hello)]);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(body.length);
    socket.write(Buffer.concat([length, body]));
    await until(() => (node.linkCounters(first)?.framesIn ?? 0) > before);
    expect(node.nodes('members')).toEqual([]);
    expect(node.links().map((link) => link.node)).not.toContain('evil@127.0.0.1');
  });

  test('does not give a name that another node has taken', async () => {
    const port = await mapper();
    const { node } = await start('a', port);
    const { name: first } = await askName(node.port);
    const [creation] = first.split('_');
    await start(`${creation}_2`, port).then((other) => other.node.connect(node.name));
    expect((await askName(node.port)).name).toBe(`${creation}_3@127.0.0.1`);
  });

  test.each([
    ['a host with a name in it', nameless('x@127.0.0.1')],
    ['a host with a line break', nameless('h\nh')],
    ['an empty host', nameless('')],
    ['a host that makes the name too long', nameless('h'.repeat(250))],
    ['a visible node', { ...nameless('h'), flags: ownFlags(true) | FLAG.nameMe }],
  ])('gives %s no name', async (_, identity) => {
    const { node } = await start('a', await mapper());
    const socket = connect({ host: '127.0.0.1', port: node.port }).on('error', () => {});
    cleanUps.push(() => socket.destroy());
    const heard: Buffer[] = [];
    socket.on('data', (bytes) => heard.push(bytes)).write(framed(nameMessage(identity)));
    await until(() => socket.destroyed);
    expect(Buffer.concat(heard).toString('latin1', 2)).toBe('snot_allowed');
  });

  test('keeps no node out, and holds none of them, for a stranger that asks for a thousand names', async () => {
    const port = await mapper();
    const { node } = await start('a', port, { limits: { maxAcceptsPerSecond: 10_000 } });
    for (let i = 0; i < 1_000; i += 1) {
      const socket = connect({ host: '127.0.0.1', port: node.port, localAddress: '127.0.0.2' }).on('error', () => {});
      cleanUps.push(() => socket.destroy());
      socket.write(framed(nameMessage(nameless('h'))));
    }
    const b = await start('b', port);
    await b.node.connect(node.name);
    expect(node.nodes('connected')).toEqual([b.node.name]);
    expect((await askName(node.port)).name.length).toBeLessThanOrEqual(23 + '@127.0.0.1'.length);
  });
});

describe('strangers without the cookie', () => {
  test('does not end an attempt because a stranger claims the name of the node being dialled', async () => {
    const port = await mapper();
    const a = await start('a', port);
    // This name is the greater one, so its own attempt would win. It answers once the stranger has been served.
    const Z = 'z@127.0.0.1';
    let answer: (() => void) | undefined;
    const server: Server = createServer((socket) => {
      const secrets = { cookie: () => COOKIE, challenge: () => 7 };
      const machine = new Acceptor(identity(Z), () => 'ok', secrets);
      const received: Buffer[] = [];
      const feed = (bytes: Buffer): void => void socket.write(Buffer.concat(machine.data(bytes).send));
      const collect = (bytes: Buffer): void => void received.push(bytes);
      socket.on('data', collect).on('error', () => {});
      cleanUps.push(() => socket.destroy());
      answer = () => {
        socket.off('data', collect).on('data', feed);
        feed(Buffer.concat(received));
      };
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanUps.push(() => server.close());
    const entry = {
      mapper: { host: '127.0.0.1', port },
      name: 'z',
      port: portOf(server),
      hidden: true,
      log: silentLog,
    };
    const registration = await Registration.open(entry);
    cleanUps.push(() => registration.close());

    const connected = a.node.connect(Z);
    await until(() => answer !== undefined);
    const stranger = await claim(a.node.port, Z);
    await until(() => stranger.heard.includes('sok_simultaneous'));
    answer?.();
    await connected;
    expect(a.node.isConnected(Z)).toBe(true);
  });

  test('lets a connected node return although a stranger claims its name', async () => {
    const port = await mapper();
    const a = await start('a', port);
    const b = await start('b', port, { listen: false });
    await b.node.connect(a.node.name);
    const stranger = await claim(a.node.port, 'b@127.0.0.1');
    await until(() => stranger.heard.includes('salive'));
    const again = await start('b', port, { listen: false });
    await again.node.connect(a.node.name);
    expect(await again.node.ping(a.node.name)).toBe(true);
  });

  test('keeps no node out for a stranger that connects 300 times', async () => {
    const port = await mapper();
    const a = await start('a', port, { limits: { maxPending: 16 } });
    for (let i = 0; i < 300; i++) {
      const socket = connect({ host: '127.0.0.1', port: a.node.port, localAddress: '127.0.0.2' });
      socket.on('error', () => {});
      cleanUps.push(() => socket.destroy());
    }
    const names = Array.from({ length: 10 }, (_, i) => `n${i}`);
    const nodes = await Promise.all(names.map((name) => start(name, port, { listen: false })));
    await Promise.all(nodes.map(({ node }) => node.connect(a.node.name)));
    expect(nodes.every(({ node }) => a.node.isConnected(node.name))).toBe(true);
    await until(() => (a.node.counters.handshakes.rate ?? 0) > 0);
  });

  test('drops a stranger before a known address, even if that has more handshakes in progress', async () => {
    const port = await mapper();
    const a = await start('a', port, { limits: { maxPending: 4 } });
    const b = await start('b', port, { listen: false });
    await b.node.connect(a.node.name);
    const shake = async (name: string, address: string): Promise<Socket> => {
      const claimed = await claim(a.node.port, name, address);
      await until(() => claimed.heard.includes('sok'));
      return claimed.socket;
    };
    const known = [await shake('c@127.0.0.1', '127.0.0.1'), await shake('d@127.0.0.1', '127.0.0.1')];
    const strangers = [await shake('x@127.0.0.2', '127.0.0.2'), await shake('y@127.0.0.3', '127.0.0.3')];
    await shake('z@127.0.0.4', '127.0.0.4');
    await until(() => strangers[0]?.closed);
    expect(known.map((socket) => socket.closed)).toEqual([false, false]);
    expect(strangers[1]?.closed).toBe(false);
  });

  test('gives a stranger that sends a byte now and then no more than the time of one step', async () => {
    const clock = new ManualClock();
    const server = await bindServer({});
    cleanUps.push(() => server.close());
    const failures: string[] = [];
    const listener = new Listener(server, {
      self: identity('a@127.0.0.1'),
      secrets: { cookie: () => COOKIE, challenge: () => 7 },
      clock,
      stepTimeoutMs: 7_000,
      maxPending: 4,
      maxAcceptsPerSecond: 100,
      decide: () => 'ok',
      up: ({ socket }) => socket.destroy(),
      failed: (why) => failures.push(why),
    });
    cleanUps.push(() => listener.stop());
    const socket = connect({ host: '127.0.0.1', port: portOf(server) });
    cleanUps.push(() => socket.destroy());
    let received = 0;
    server.on('connection', (accepted) => accepted.on('data', (bytes) => (received += bytes.length)));
    for (let sent = 1; failures.length === 0 && sent < 10; sent++) {
      // The length of a message of 100 bytes, and some of its bytes.
      socket.write(Buffer.from([sent === 2 ? 100 : 0]));
      await until(() => received === sent);
      clock.advance(3_000);
    }
    expect(failures).toEqual(['timeout']);
    expect(clock.now()).toBe(9_000);
  });
});
