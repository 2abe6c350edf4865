// Tests connections to the distribution port from programs that are not nodes of this cluster.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { Api } from '../harness/api.js';
import { repository } from '../harness/processes.js';
import { nightly } from '../harness/needs.js';
import { type Node, startProgram } from '../node/support/program.js';
import { until } from './until.js';

jest.setTimeout(120_000);

const connections = nightly ? 30_000 : 1_500;

let mapper: ChildProcess;
let mapperPort: string;
let distributionPort: number;
let node: Node;

function member(name: string, env: Readonly<Record<string, string>> = {}): Promise<Node> {
  return startProgram({
    JF_DIST_ENABLED: 'true',
    JF_DIST_MODE: 'name',
    JF_DIST_NODE_NAME: `${name}@127.0.0.1`,
    JF_DIST_NODES: 'one@127.0.0.1',
    JF_DIST_COOKIE: 'of-this-cluster',
    JF_DIST_IP: '127.0.0.1',
    ERL_EPMD_PORT: mapperPort,
    ...env,
  });
}

beforeAll(async () => {
  mapperPort = String(await freeTcpPort());
  distributionPort = await freeTcpPort();
  const program = join(repository, 'apps', 'port-mapper', 'dist', 'main.js');
  mapper = spawn(process.execPath, [program], { env: { ERL_EPMD_PORT: mapperPort }, stdio: 'ignore' });
  const port = String(distributionPort);
  node = await member('one', { JF_DIST_MIN_PORT: port, JF_DIST_MAX_PORT: port });
});
afterAll(async () => {
  await node?.dispose();
  mapper?.kill();
});

/** Returns integers from 0 to `below`, the same in every run. */
let state = 1;
function random(below: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
}

const framed = (body: Buffer): Buffer => Buffer.concat([Buffer.from([body.length >> 8, body.length & 255]), body]);

/** Returns the first handshake message of a node with that name. */
function hello(name: string): Buffer {
  const head = Buffer.from('4e0000000d07df7fbd00000007', 'hex');
  return framed(Buffer.concat([head, Buffer.from([0, name.length]), Buffer.from(name)]));
}

/** Returns various garbage: random bytes, parts of a handshake, a frame that only a connected node may send. */
function nonsense(): Buffer {
  const bytes = Buffer.from(Array.from({ length: 1 + random(300) }, () => random(256)));
  const whole = hello(`stranger${random(5)}@127.0.0.1`);
  if (random(2) === 0) whole[2 + random(whole.length - 2)] = random(256);
  const answer = framed(Buffer.concat([Buffer.from('r'), Buffer.from(Array.from({ length: 20 }, () => random(256)))]));

  return [
    bytes,
    framed(bytes),
    whole,
    Buffer.concat([whole, answer]),
    whole.subarray(0, random(whole.length)),
    Buffer.concat([Buffer.from([0, 0, 0, 4, 112]), bytes]),
    Buffer.from([0xff, 0xff, 0xff, 0xff]),
  ][random(7)] as Buffer;
}

async function visit(): Promise<void> {
  const socket = connect(distributionPort, '127.0.0.1');
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => undefined);
  socket.resume();
  socket.write(nonsense());
  // Some wait for an answer in vain, some leave immediately, some send nothing.
  if (random(3) === 0) socket.end();
  else setTimeout(() => socket.destroy(), random(40));
  await closed;
}

const residentMiB = (): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${node.child.pid}/status`, 'utf8'))?.[1]) / 1_024;

async function visits(count: number): Promise<void> {
  for (let done = 0; done < count; done += 50) await Promise.all(Array.from({ length: 50 }, visit));
}

test('stays intact and logs little, however many strangers connect', async () => {
  const api = new Api(node.url);
  await visits(500);
  const before = residentMiB();
  const linesBefore = node.output().split('\n').length;
  await visits(connections);

  expect((await api.request('GET', '/health')).body.data.distribution).toEqual({
    enabled: true,
    nodeStatus: 'UP',
    nodesInCluster: 1,
  });
  const room = await api.createRoom();
  await api.deleteRoom(room);
  expect(residentMiB() - before).toBeLessThan(40);
  // One line per minute and refused stranger, and the strangers share a few names and one address.
  expect(node.output().split('\n').length - linesBefore).toBeLessThan(40);
  expect(node.output()).not.toMatch(/\[error\]/);

  // A node that knows the cookie still gets in.
  await delay(1_000);
  const other = await member('two');
  try {
    await until('both see each other', async () => {
      const seen = await Promise.all([node, other].map((one) => new Api(one.url).request('GET', '/health')));
      return seen.every(({ body }) => body.data.distribution.nodesInCluster === 2);
    });
  } finally {
    other.child.kill('SIGTERM');
    await once(other.child, 'exit');
    await other.dispose();
  }
});
