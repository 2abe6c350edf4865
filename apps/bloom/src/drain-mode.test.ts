// SIGTERM with JF_DRAIN_MODE: what becomes of the rooms of a node that closes.
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createLogger } from '@bloom/log';
import { PortMapperServer } from '@bloom/port-mapper';
import { until } from '@bloom/time/testing';
import { startTestNode, type TestNode } from './testing/test-node.js';

let mapper: PortMapperServer;
let nodes: TestNode[];
let lines: string[];

beforeEach(async () => {
  mapper = await PortMapperServer.open({ port: 0, log: createLogger({ sink: () => undefined }) });
  nodes = [];
  lines = [];
});
afterEach(async () => {
  for (const node of nodes) await node.dispose();
  await mapper.close();
});

async function start(env: Record<string, string>): Promise<TestNode> {
  const node = await startTestNode(env, { log: createLogger({ sink: (line) => lines.push(line) }) });
  nodes.push(node);
  return node;
}

/** Two members; rooms are created on the first one, which closes. */
async function pair(env: Record<string, string>): Promise<[TestNode, TestNode]> {
  const names = ['closes@127.0.0.1', 'stays@127.0.0.1'];
  const [closes, stays] = await Promise.all(
    names.map((name) =>
      start({
        JF_DIST_ENABLED: 'true',
        JF_DIST_MODE: 'name',
        JF_DIST_NODE_NAME: name,
        JF_DIST_COOKIE: 'a_cookie_for_the_tests_of_drains',
        JF_DIST_IP: '127.0.0.1',
        JF_DIST_NODES: names.join(' '),
        JF_SECRET_KEY_BASE: 'a secret that both members have',
        ERL_EPMD_PORT: String(mapper.port),
        ...env,
      }),
    ),
  );
  if (closes === undefined || stays === undefined) throw new Error('a node is missing');
  await until(() => [closes, stays].every(({ cluster }) => cluster?.node.nodes('members').length === 1));
  stays.rooms.drain('starting');
  return [closes, stays];
}

async function closed(node: TestNode): Promise<number> {
  const from = performance.now();
  await node.close();
  return performance.now() - from;
}

test('moves rooms to another member, whose people hear 1012, and then ends without waiting', async () => {
  const [closes, stays] = await pair({ JF_DRAIN_MODE: 'move' });
  const roomId = await closes.createRoom();
  const { token } = await closes.addPeer(roomId);
  const client = await closes.peerSocket();
  await client.authenticate(token);
  stays.rooms.undrain('starting');
  const server = await stays.serverSocket();

  expect(await closed(closes)).toBeLessThan(7_000);
  expect(await client.closed).toBe('1012 Room moved');
  expect(stays.rooms.view(roomId)?.peers).toHaveLength(1);
  expect(server.news).toEqual([]);
}, 30_000);

test('ends rooms that no other member takes when the drain timeout has passed', async () => {
  const [closes, stays] = await pair({ JF_DRAIN_MODE: 'move', JF_DRAIN_TIMEOUT: '1' });
  await closes.createRoom();
  const server = await stays.serverSocket();
  expect(await closed(closes)).toBeGreaterThanOrEqual(1_000);
  await until(() => server.news.includes('roomDeleted'));
  expect(lines.join()).toContain('no other node can take it');
}, 30_000);

test('ends rooms at once by default, also in a cluster', async () => {
  const [closes, stays] = await pair({});
  const roomId = await closes.createRoom();
  stays.rooms.undrain('starting');
  const server = await stays.serverSocket();
  await closes.close();
  await until(() => server.news.includes('roomDeleted'));
  expect(stays.rooms.view(roomId)).toBeUndefined();
}, 30_000);

test('ends the rooms of a node without a cluster at once, and says why they do not move', async () => {
  const alone = await start({ JF_DRAIN_MODE: 'move' });
  await alone.createRoom();
  await alone.close();
  expect(lines.join()).toContain('node.moves_refused');
  expect(lines.join()).not.toContain('node.draining');
});
