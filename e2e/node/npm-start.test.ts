// Tests `npm start` under a supervisor that sends its signals to npm.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { repository } from '../harness/processes.js';
import { freePorts } from './support/program.js';

jest.setTimeout(60_000);

let folder: string;
let npm: ChildProcess | undefined;

beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'bloom-npm-start-'))));
afterEach(() => {
  npm?.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test('ends the node, which releases its port, on SIGTERM to npm', async () => {
  const { port, env } = await freePorts();
  npm = spawn('npm', ['start'], {
    cwd: repository,
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      ...env,
      JF_RESOURCES_BASE_PATH: folder,
    },
  });
  const ended = once(npm, 'exit');
  while (!(await isOpen(port))) await delay(100);
  npm.kill('SIGTERM');
  await ended;
  // npm may end before the node does.
  while (await isOpen(port)) await delay(100);
  expect(npm.exitCode ?? npm.signalCode).not.toBeNull();
});
