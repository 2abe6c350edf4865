// Tests `npm start` under a supervisor that sends its signals to npm.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
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
let npm: ChildProcess;
let port: number;
let env: Record<string, string>;

function npmStart(): ChildProcess {
  const child = spawn('npm', ['start'], {
    cwd: repository,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      ...env,
      JF_SERVER_API_TOKEN: 'of-a-test',
      JF_RESOURCES_BASE_PATH: folder,
    },
  });
  child.stderr.setEncoding('utf8');

  return child;
}

async function isOpen(): Promise<boolean> {
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

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bloom-npm-start-'));
  ({ port, env } = await freePorts());
  npm = npmStart();
  while (!(await isOpen())) await delay(100);
});
afterEach(async () => {
  if (npm.exitCode === null && npm.signalCode === null) {
    npm.kill('SIGTERM');
    await once(npm, 'exit');
  }
  // npm may end before the node does.
  while (await isOpen()) await delay(100);
  rmSync(folder, { recursive: true, force: true });
});

test('ends the node, which releases its port, on SIGTERM to npm', async () => {
  npm.kill('SIGTERM');
  await once(npm, 'exit');
  while (await isOpen()) await delay(100);
  expect(npm.exitCode ?? npm.signalCode).not.toBeNull();
});

test('says where the node already runs when started a second time', async () => {
  const second = npmStart();
  let output = '';
  second.stderr?.on('data', (text: string) => (output += text));
  const [code] = await once(second, 'close');
  expect(output).toContain(`Bloom is already running at http://127.0.0.1:${port}.`);
  expect(code).toBe(1);
});

test('reports the commit of the checkout', async () => {
  const answer = await fetch(`http://127.0.0.1:${port}/health`, { headers: { authorization: 'Bearer of-a-test' } });
  const { data } = await answer.json();
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: repository, encoding: 'utf8' }).trim();
  expect(data.gitCommit.replace('-dirty', '')).toBe(commit);
});
