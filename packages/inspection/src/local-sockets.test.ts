import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { findLocalSockets, openLocalServer, type LocalServer, type LocalMachine } from './local-sockets.js';

const uid = process.getuid?.() ?? 0;
let root: string;
let machine: LocalMachine;
const opened: LocalServer[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 's-'));
  for (const folder of ['run-time', 'resources', 'tmp']) mkdirSync(join(root, folder));
  machine = {
    runtimePath: join(root, 'run-time'),
    resourcesPath: join(root, 'resources'),
    temporaryPath: join(root, 'tmp'),
    uid,
  };
});
afterEach(async () => {
  for (const local of opened.splice(0)) if ('server' in local) local.server.close();
  rmSync(root, { recursive: true });
});

async function open(node: string, fields: Partial<LocalMachine> = {}): Promise<LocalServer> {
  const local = await openLocalServer(node, { ...machine, ...fields });
  opened.push(local);

  return local;
}

test('opens the socket in a folder that only its user can open, and finds it there', async () => {
  const path = join(root, 'run-time/bloom/a@desk.sock');
  expect(await open('a@desk')).toMatchObject({ path });
  expect(statSync(join(root, 'run-time/bloom')).mode & 0o777).toBe(0o700);
  expect(await findLocalSockets(machine)).toEqual([{ node: 'a@desk', path }]);
});

test('opens the socket below the resources without a folder of the user, or with a relative one', async () => {
  expect(await open('a@desk', { runtimePath: null })).toMatchObject({ path: join(root, 'resources/run/a@desk.sock') });
  expect(await open('b@desk', { runtimePath: 'x' })).toMatchObject({ path: join(root, 'resources/run/b@desk.sock') });
  expect(await findLocalSockets(machine)).toHaveLength(2);
});

test('uses another folder when the path of the resources is too long for a socket', async () => {
  const resourcesPath = join(root, 'r'.repeat(90));
  mkdirSync(resourcesPath);
  const path = join(root, `tmp/bloom-${uid}/a@desk.sock`);
  expect(await open('a@desk', { runtimePath: null, resourcesPath })).toMatchObject({ path });
});

test('neither uses nor searches a folder that others can enter or that is a link', async () => {
  const shared = join(root, 'run-time/bloom');
  mkdirSync(shared);
  chmodSync(shared, 0o755);
  symlinkSync(root, join(root, 'resources/run'));
  writeFileSync(join(root, `tmp/bloom-${uid}`), '');
  expect(await open('a@desk')).toEqual({
    reasons: [
      `${shared}: it is open to other users (mode 0755)`,
      `${join(root, 'resources/run')}: it is not a folder`,
      `${join(root, `tmp/bloom-${uid}`)}: it is not a folder`,
    ],
  });
  writeFileSync(join(shared, 'a@desk.sock'), '');
  // Search as a user other than root, who may ask every node and skips this check.
  expect(await findLocalSockets({ ...machine, uid: uid + 1 })).toEqual([]);
});

test('replaces the socket of a dead process, but not that of a living one', async () => {
  const path = join(root, 'run-time/bloom/a@desk.sock');
  await open('a@desk');
  expect(await open('a@desk', { resourcesPath: '/nonexistent', temporaryPath: '/nonexistent' })).toMatchObject({
    reasons: [expect.stringContaining('another process listens there'), expect.anything(), expect.anything()],
  });
  // The leftover of a killed process: a socket file on which nothing listens.
  const left = join(root, 'run-time/bloom/left.sock');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(left, resolve));
  renameSync(left, `${left}et`);
  await new Promise((resolve) => server.close(resolve));
  renameSync(`${left}et`, left);
  expect(existsSync(left)).toBe(true);
  expect(await open('left')).toMatchObject({ path: left });
  expect(existsSync(path)).toBe(true);
});
