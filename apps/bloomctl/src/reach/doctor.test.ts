import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DistributionNode } from '@bloom/distribution';
import { silentLog } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { runProgram } from '../program.js';
import { testMachine } from '../testing/machine.js';

const COOKIE = 'a-cookie-of-this-test';
/** A port below those given to servers, because another test could be given the port of a closed server. */
const REFUSING = 1;

let mapper: PortMapperServer;
const nodes: DistributionNode[] = [];
const servers: Server[] = [];
const sockets: Socket[] = [];
const children: ChildProcess[] = [];

beforeEach(async () => {
  mapper = await PortMapperServer.open({ port: 0, log: silentLog });
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
  for (const node of nodes.splice(0)) await node.stop();
  await mapper.close();
});

async function startNode(alive: string, host = '127.0.0.1'): Promise<DistributionNode> {
  const node = await DistributionNode.start({
    name: `${alive}@${host}`,
    mode: host === 'localhost' ? 'sname' : 'name',
    cookie: COOKIE,
    mapper: { port: mapper.port },
    log: silentLog,
  });
  nodes.push(node);
  return node;
}

/** Registers a name like a program that speaks these versions. */
async function register(name: string, port: number, versions = { highest: 6, lowest: 6 }): Promise<void> {
  const body = Buffer.alloc(13 + name.length);
  body[0] = 120;
  body.writeUInt16BE(port, 1);
  body[3] = 77;
  body.writeUInt16BE(versions.highest, 5);
  body.writeUInt16BE(versions.lowest, 7);
  body.writeUInt16BE(name.length, 9);
  body.write(name, 11);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(body.length);
  const socket = connect(mapper.port, '127.0.0.1');
  sockets.push(socket);
  socket.write(Buffer.concat([length, body]));
  await once(socket, 'data');
}

async function listen(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    onConnection(socket);
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A port that never answers, as behind a firewall: its connection queue is full. */
async function filteredPort(): Promise<number> {
  const program = `const server = require('node:net').createServer();
    server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port));`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'ignore'] });
  children.push(child);
  const [data] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const port = Number(data.toString());
  child.kill('SIGSTOP');
  for (let i = 0; i < 4; i++) sockets.push(connect(port, '127.0.0.1').on('error', () => {}));
  await new Promise((resolve) => setTimeout(resolve, 50));
  return port;
}

async function doctor(args: readonly string[], env: Record<string, string> = { BLOOM_COOKIE: COOKIE }) {
  const machine = testMachine({ env, columns: 100, isTTY: false });
  const exit = await runProgram(
    ['doctor', '--mapper-port', String(mapper.port), '--timeout', '500ms', ...args],
    machine,
  );
  const normal = machine.printed.out
    .replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replaceAll(/listens on \d+/g, 'listens on PORT')
    .replaceAll(/Open port \d+/g, 'Open port PORT')
    .replaceAll(/ +\d+ ms$/gm, '');
  return { exit, lines: normal.trimEnd().split('\n'), err: machine.printed.err };
}
const OK = {
  resolve: '  ok    resolve      127.0.0.1 is an address',
  mapper: '  ok    port mapper  127.0.0.1:PORT knows: b',
  name: '  ok    name         b listens on PORT',
  tcp: '  ok    tcp          127.0.0.1:PORT connected',
  handshake: '  ok    handshake    distribution version 6, flags accepted',
};

describe("stops at the first failing layer, gives advice, and exits with that layer's code", () => {
  test('reports a cookie file that others can read', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bloomctl-'));
    const file = join(folder, 'cookie');
    writeFileSync(file, COOKIE);
    chmodSync(file, 0o644);
    const { exit, lines } = await doctor(['b@127.0.0.1', '--cookie-file', file]);
    rmSync(folder, { recursive: true });
    expect(exit).toBe(78);
    expect(lines[0]).toMatch(/^ {2}FAIL {2}settings +the cookie file .* has mode 0644/);
    // Long paths are wrapped.
    expect(lines.join(' ')).toContain('chmod 600');
  });

  test('reports a host that does not exist', async () => {
    // A label of 64 characters is not a valid name, so no server is asked.
    const host = `${'x'.repeat(64)}.example`;
    const { exit, lines } = await doctor([`b@${host}`]);
    expect(exit).toBe(69);
    expect(lines.join(' ')).toMatch(/FAIL {2}resolve .* has no address/);
    expect(lines.join(' ')).toContain('Check its spelling');
  });

  test('reports a missing port mapper', async () => {
    const { exit, lines } = await doctor(['b@127.0.0.1', '--mapper-port', String(REFUSING)]);
    expect(exit).toBe(69);
    expect(lines).toEqual([
      OK.resolve,
      '  FAIL  port mapper  no answer on 127.0.0.1:PORT (ECONNREFUSED)',
      '',
      '  No port mapper runs there, so no node does either; or it uses another port.',
      '  Start the node with JF_DIST_ENABLED=true; when ERL_EPMD_PORT is set for the',
      '  nodes, set it here too.',
    ]);
  });

  test("reports another program on the mapper's port", async () => {
    const port = await listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const { exit, lines } = await doctor(['b@127.0.0.1', '--mapper-port', String(port)]);
    expect(exit).toBe(69);
    expect(lines[1]).toContain('FAIL  port mapper');
    expect(lines.join(' ')).toContain('is not a port mapper');
  });

  test('reports an unknown name', async () => {
    await startNode('a2');
    const { exit, lines } = await doctor(['b@127.0.0.1']);
    expect(exit).toBe(65);
    expect(lines.slice(0, 5)).toEqual([
      OK.resolve,
      '  ok    port mapper  127.0.0.1:PORT knows: a2',
      '  FAIL  name         b is not registered; there: a2',
      '',
      '  No node called b runs on 127.0.0.1. Start it, or use one of the registered',
    ]);
  });

  test('reports a port without a listener', async () => {
    await register('b', REFUSING);
    const { exit, lines } = await doctor(['b@127.0.0.1']);
    expect(exit).toBe(69);
    expect(lines.slice(0, 5)).toEqual([
      OK.resolve,
      OK.mapper,
      OK.name,
      '  FAIL  tcp          127.0.0.1:PORT: ECONNREFUSED',
      '',
    ]);
    expect(lines.join(' ')).toContain('JF_DIST_IP');
  });

  test('reports a filtered port', async () => {
    await register('b', await filteredPort());
    const { exit, lines } = await doctor(['b@127.0.0.1']);
    expect(exit).toBe(69);
    expect(lines).toEqual([
      OK.resolve,
      OK.mapper,
      OK.name,
      '  FAIL  tcp          127.0.0.1:PORT: no answer within 500 ms',
      '',
      '  The port mapper can be reached, the node cannot: packets to its port are',
      '  dropped. Open port PORT between the two machines. JF_DIST_MIN_PORT and',
      '  JF_DIST_MAX_PORT choose which ports nodes use.',
    ]);
  });

  test('reports another version of the protocol', async () => {
    await register('b', await listen(() => {}), { highest: 5, lowest: 5 });
    const { exit, lines } = await doctor(['b@127.0.0.1']);
    expect(exit).toBe(69);
    expect(lines[4]).toBe('  FAIL  handshake    b speaks distribution version 5, not 6');
  });

  test.each<[string, (socket: Socket) => void, [code: number, text: string]]>([
    [
      'speaks HTTP',
      (socket: Socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
      [69, 'no distribution protocol of version 6'],
    ],
    ['closes immediately', (socket: Socket) => void socket.end(), [69, 'closed without an answer']],
    ['says nothing', () => {}, [75, 'silent for 500 ms']],
    [
      'does not allow us',
      (socket: Socket) => void socket.write(Buffer.from('\0\x0csnot_allowed', 'latin1')),
      [77, 'not allowed'],
    ],
  ])('reports a program that %s', async (_what, onConnection, [code, text]) => {
    await register('b', await listen(onConnection));
    const { exit, lines } = await doctor(['b@127.0.0.1']);
    expect(lines[4]).toBe(`  FAIL  handshake    ${text}`);
    expect(exit).toBe(code);
  });

  test('reports missing flags', async () => {
    const port = await listen((socket) => {
      const body = Buffer.alloc(19 + 11);
      body[0] = 78;
      body.writeBigUInt64BE(0xd077f8fbcn & ~0x400000000n, 1);
      body.writeUInt16BE(11, 17);
      body.write('b@127.0.0.1', 19);
      socket.write(Buffer.concat([Buffer.from('\0\x03sok\0\x1e', 'latin1'), body]));
    });
    await register('b', port);
    const { exit, lines } = await doctor(['b@127.0.0.1']);
    expect(exit).toBe(69);
    expect(lines[4]).toMatch(/^ {2}FAIL {2}handshake +flags missing: .*v4Nc/);
  });

  test('reports a node with a different name', async () => {
    await startNode('b');
    const { exit, lines } = await doctor(['b@localhost']);
    expect(exit).toBe(65);
    expect(lines.find((line) => line.includes('FAIL'))).toBe(
      '  FAIL  handshake    the node there calls itself b@127.0.0.1',
    );
    expect(lines.join(' ')).toContain('bloomctl doctor b@127.0.0.1');
  });

  test('reports a wrong cookie, which it does not show', async () => {
    await startNode('b');
    const { exit, lines, err } = await doctor(['b@127.0.0.1'], { BLOOM_COOKIE: 'secret' });
    expect(exit).toBe(77);
    expect(lines).toEqual([
      OK.resolve,
      OK.mapper,
      OK.name,
      OK.tcp,
      OK.handshake,
      '  FAIL  cookie       refused. ours 2bb8…, from the environment (BLOOM_COOKIE)',
      '',
      '  b@127.0.0.1 does not accept this cookie. Set the same value on all nodes and',
      '  for this tool. The value is not shown; compare hashes with `bloomctl doctor`',
      '  on the machine of that node.',
    ]);
    expect(lines.join('') + err).not.toContain('secret');
  });

  test('reports a node with inspection off', async () => {
    await startNode('b');
    // No name is given: the only node on this machine states its full name itself.
    const { exit, lines } = await doctor([]);
    expect(exit).toBe(77);
    expect(lines.slice(0, 6)).toEqual([
      '  ok    resolve      this machine -> 127.0.0.1',
      OK.mapper,
      OK.name,
      OK.tcp,
      OK.handshake,
      expect.stringMatching(/^ {2}ok {4}cookie {7}accepted\. ours [0-9a-f]{4}…, from the environment/),
    ]);
    expect(lines[6]).toMatch(/FAIL {2}service {6}b@127\.0\.0\.1 does not answer tools: JF_INSPECTION=off/);
    expect(lines.join(' ').replaceAll(/ +/g, ' ')).toContain('Set JF_INSPECTION=full or read');
  });

  test.each([[[]], [['b']], [['b@localhost']]])('reaches a node with a short name, given as %j', async (args) => {
    await startNode('b', 'localhost');
    const { exit, lines } = await doctor(args);
    expect(exit).toBe(77);
    expect(lines[6]).toEqual(expect.stringContaining('service      b@localhost does not answer tools'));
  });

  test('reports several nodes if none was named', async () => {
    await startNode('a');
    await startNode('b');
    const { exit, lines } = await doctor([]);
    expect(exit).toBe(64);
    expect(lines[2]).toBe('  FAIL  name         2 nodes are registered');
  });
});

test('exits with 75 in every command if a node is not reached in time', async () => {
  await register('b', await listen(() => {}));
  const machine = testMachine({ env: { BLOOM_COOKIE: COOKIE } });
  const args = ['nodes', '--node', 'b@127.0.0.1', '--timeout', '300ms', '--mapper-port', String(mapper.port)];
  expect(await runProgram(args, machine)).toBe(75);
  expect(machine.printed.err).toContain('bloomctl doctor b@127.0.0.1');
});

test('names the layer in the diagnosis as a document too', async () => {
  const machine = testMachine({ env: { BLOOM_COOKIE: COOKIE } });
  const exit = await runProgram(['doctor', 'b@127.0.0.1', '--json', '--mapper-port', String(mapper.port)], machine);
  expect(exit).toBe(65);
  expect(JSON.parse(machine.printed.out)).toMatchObject({
    kind: 'doctor',
    v: 1,
    ok: false,
    target: 'b@127.0.0.1',
    node: null,
    failed: { layer: 'name', exit: 65 },
  });
});
