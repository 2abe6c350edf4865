import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { freeTcpPort } from '@bloom/net/testing';
import { until } from '@bloom/time/testing';
import { silentLog } from '@bloom/log';
import { ensureMapper, names, Registration } from '@bloom/port-mapper';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');
const program = join(root, 'apps/port-mapper/dist/main.js');

let port: number;
const children: ChildProcess[] = [];
const registrations: Registration[] = [];

beforeAll(() => run('npx', ['tsc', '-b', 'apps/port-mapper'], { cwd: root }), 120_000);
beforeEach(async () => {
  port = await freeTcpPort();
});
afterEach(async () => {
  for (const registration of registrations.splice(0)) registration.close();
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await until(async () => (await list()) === undefined || (await list())?.nodes.length === 0);
  // A mapper that lost the race to start may come up when the winner exits.
  let quiet = 0;
  await until(async () => {
    quiet = (await list()) === undefined ? quiet + 1 : 0;
    if (quiet === 0) await kill();
    return quiet >= 50;
  });
});

describe('the port mapper as a program', () => {
  test('exits with 0 if a mapper is already running, and with 1 if another program has the port', async () => {
    start();
    await until(async () => (await list()) !== undefined);
    const { stdout } = await run(process.execPath, [program], { env: { ERL_EPMD_PORT: String(port) } });
    expect(stdout).toContain(`a port mapper is already running on port ${port}`);

    const other = createServer((socket) => socket.resume().end('no mapper'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port: taken } = other.address() as { port: number };
    await expect(run(process.execPath, [program], { env: { ERL_EPMD_PORT: String(taken) } })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`port ${taken} is taken by a program that is not a port mapper`),
    });
    await new Promise((resolve) => other.close(resolve));
  });

  test('starts once for several nodes on a machine, and outlives them', async () => {
    const started = await Promise.all([1, 2, 3].map(() => ensureMapper({ program, port })));
    expect(started).toContain('started');
    expect(await ensureMapper({ program, port })).toBe('running');
    expect(await list()).toEqual({ mapperPort: port, nodes: [] });
  });

  test('restarts within 2.5 s through a node on the machine after it was killed', async () => {
    const mapper = start();
    await until(async () => (await list()) !== undefined);
    for (const name of ['one', 'two']) {
      registrations.push(
        await Registration.open({
          mapper: { host: '127.0.0.1', port },
          name,
          port: 9_000,
          hidden: true,
          revive: async () => void (await ensureMapper({ program, port })),
          log: silentLog,
        }),
      );
    }
    mapper.kill('SIGKILL');
    await until(() => registrations.every((registration) => !registration.registered));
    await until(() => registrations.every((registration) => registration.registered), 10_000);
    expect((await list())?.nodes.map(({ name }) => name).toSorted()).toEqual(['one', 'two']);
  }, 20_000);
});

function start(): ChildProcess {
  const child = spawn(process.execPath, [program], { env: { ERL_EPMD_PORT: String(port) }, stdio: 'ignore' });
  children.push(child);
  return child;
}

function list() {
  return names({ host: '127.0.0.1', port, timeoutMs: 1_000 }).catch(() => undefined);
}

/** Asks the mapper to exit, as `epmd -kill` does. */
function kill(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.end(Buffer.from([0, 1, 107])));
    socket.resume().on('error', () => {});
    socket.on('close', () => resolve());
  });
}
