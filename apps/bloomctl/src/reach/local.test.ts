import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { connectActors, openActorSystem, object, takes, text, unchecked } from '@bloom/actors';
import { openLocalServer } from '@bloom/inspection';
import { silentLog } from '@bloom/log';
import { Context } from '../context.js';
import { runProgram } from '../program.js';
import { testMachine } from '../testing/machine.js';

const uid = process.getuid?.() ?? 0;
const cleanUps: (() => unknown)[] = [];
let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'local-'));
  mkdirSync(join(cwd, 'bloom_resources'));
  cleanUps.push(() => rmSync(cwd, { recursive: true }));
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

type Asked = { ask: (message: { request: { kind: string } }) => object };

/** A node that answers only the handshake and `links`, which is enough to be found. */
async function startNode(name: string, members: readonly string[] = []): Promise<void> {
  const machine = { runtimePath: null, resourcesPath: join(cwd, 'bloom_resources'), temporaryPath: cwd, uid };
  const local = await openLocalServer(name, machine);
  if (!('server' in local)) throw new Error(local.reasons.join('; '));
  const system = openActorSystem({ log: silentLog });
  const remote = connectActors(system, { log: silentLog });
  const ref = system.spawn<Asked, null>({
    kind: 'inspection',
    shapes: { ask: takes({ request: object({ kind: text() }) }, unchecked<object>()) },
    init: () => null,
    handlers: {
      ask: (_state, { request }) => ({
        ok: true,
        v: 1,
        kind: request.kind,
        node: name,
        answer: { self: name, at: 0, links: members.map((node) => ({ node, kind: 'member' })) },
      }),
    },
  });
  system.register('inspection', ref);
  const mapper = { port: 0 };
  await remote.start({
    name,
    mode: 'sname',
    cookie: 'x',
    listen: false,
    localServer: local.server,
    mapper,
    log: silentLog,
  });
  cleanUps.push(async () => {
    await remote.close();
    await system.close();
  });
}

/** A node with a frozen process: its socket accepts connections and never answers. */
async function startFrozen(name: string): Promise<void> {
  const machine = { runtimePath: null, resourcesPath: join(cwd, 'bloom_resources'), temporaryPath: cwd, uid };
  const local = await openLocalServer(name, machine);
  if (!('server' in local)) throw new Error(local.reasons.join('; '));
  const { server } = local;
  const sockets: Socket[] = [];
  server.removeAllListeners('connection').on('connection', (socket) => sockets.push(socket));
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
}

/** Returns the node that was asked. */
async function asked(node?: string, timeout = 5_000): Promise<string> {
  const env = { ERL_EPMD_PORT: '1', XDG_RUNTIME_DIR: '/nonexistent' };
  const options = { timeout, ...(node === undefined ? {} : { node }) };
  const context = new Context(options, testMachine({ cwd, temporaryPath: cwd, uid, env }));
  try {
    return (await context.asker()).asked;
  } finally {
    await context.close();
  }
}

test('asks the only node without any option, cookie or port mapper', async () => {
  await startNode('a@desk');
  expect(await asked()).toBe('a@desk');
  expect(await asked('a')).toBe('a@desk');
  expect(await asked('a@desk')).toBe('a@desk');
  await expect(asked('b')).rejects.toMatchObject({ exit: 69 });
});

test('asks any of several nodes if they are members of one cluster', async () => {
  await startNode('a@desk', ['b@desk']);
  await startNode('b@desk', ['a@desk']);
  expect(await asked()).toBe('a@desk');
  expect(await asked('b')).toBe('b@desk');
});

test('does not ask a frozen node if another member answers for it', async () => {
  await startFrozen('a@desk');
  await startNode('b@desk', ['a@desk']);
  expect(await asked(undefined, 500)).toBe('b@desk');
});

test('lists several nodes without a common cluster', async () => {
  await startNode('a@desk');
  await startNode('b@desk');
  await expect(asked()).rejects.toMatchObject({
    exit: 64,
    message: 'several nodes run on this machine: a@desk, b@desk',
    advice: 'choose one, such as --node a@desk',
  });
  expect(await asked('b')).toBe('b@desk');
});

test('says where to look without a node of this user', async () => {
  await expect(asked()).rejects.toMatchObject({
    exit: 69,
    message: 'no node of this user runs on this machine, and no port mapper answers (port 1)',
  });
});

test('tests the node that doctor is given, not the one on this machine', async () => {
  await startNode('a@desk');
  const doctor = async (...args: readonly string[]): Promise<{ exit: number; out: string }> => {
    const env = { ERL_EPMD_PORT: '1', XDG_RUNTIME_DIR: '/nonexistent' };
    const machine = testMachine({ cwd, temporaryPath: cwd, uid, env });
    return { exit: await runProgram(['doctor', ...args], machine), out: machine.printed.out };
  };
  expect((await doctor('a')).out).toMatch(/ok +socket +.* of a@desk/);
  const { exit, out } = await doctor('b@127.0.0.1');
  expect(exit).toBe(69);
  expect(out).toEqual(expect.stringMatching(/FAIL +port mapper +no answer on 127\.0\.0\.1:1/));
  expect(out).not.toContain('a@desk');
});
