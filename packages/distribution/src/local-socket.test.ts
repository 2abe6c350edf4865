import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { until } from '@bloom/time/testing';
import { bindSocket } from './index.js';
import { TestNode } from './testing/test-node.js';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

test('lets a tool reach a node through its Unix socket, without port mapper or cookie and without becoming a member', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'socket-'));
  cleanUps.push(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 's');
  const localServer = await bindSocket(path);
  const node = await TestNode.start('a@127.0.0.1', 0, { listen: false, localServer });
  cleanUps.push(() => node.stop());
  const tool = await TestNode.start('tool@127.0.0.1', 0, { listen: false, tool: true, via: path, cookie: 'another' });
  cleanUps.push(() => tool.stop());

  await tool.node.connect('a@127.0.0.1');
  expect(await tool.node.ping('a@127.0.0.1')).toBe(true);
  expect(node.node.nodes('connected')).toEqual(['tool@127.0.0.1']);
  expect(node.node.nodes('members')).toEqual([]);
  expect(node.node.port).toBe(0);
  await expect(tool.node.connect('b@127.0.0.1')).rejects.toMatchObject({ reason: 'name_mismatch' });

  await node.stop();
  await until(() => tool.node.nodes('connected').length === 0);
  await expect(tool.node.connect('a@127.0.0.1')).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
});
